/* Attention of many queries over 16-bit rows: a block reads rows once for WARPS * COLUMNS heads of queries. A text of
 * its own, behind prelude_cuda.h, warp_cuda.h, warp_rows.cu, warp_deal.cu and warp_parts.cu.
 *
 * It is compiled for the same combinations as `attend_warps.cu`, with one pass of all heads, COLUMNS columns of each
 * warp, and TILES tiles of 16 positions in a stage.
 *
 * A block takes the heads of successive queries as its columns, all of one kv head of one entry, and one split of the
 * positions that they see. Its warps share the rows: while all compute on one stage of keys and values, asynchronous
 * copies bring the next. Each warp weighs a stage for its own columns, as the warps of `attend_warps.cu` weigh a tile,
 * unless its columns see nothing of the stage. Then it writes their outputs.
 */

#define STAGE (TILES * TILE)
#define STAGE_BYTES (2 * TILES * UNIT_BYTES)
/* Lanes that copy a unit together. */
#define COPIERS (LANES * WARPS / (2 * TILES))

/* Starts the copies of the stage from position p on: TILES units of keys, then as many of values. */
DEVICE void fetch_stage(const Rows &rows, int p, int item, u32 to) {
  const int unit = item / COPIERS, lane = item % COPIERS, at = p + unit % TILES * TILE;
  if (unit < TILES) rows.fetch<K_DIM, COPIERS>(rows.keys, at, lane, to + unit * UNIT_BYTES);
  else rows.fetch<V_DIM, COPIERS>(rows.values, at, lane, to + unit * UNIT_BYTES);
  end_group();
}

/* Blocks are of 32 x WARPS items. */
extern "C" __global__ void __launch_bounds__(LANES *WARPS, 2) ATTEND(ARGUMENTS) {
  DYNAMIC_SHARED(memory);
  __shared__ u32 before_me;
  __shared__ Piece piece;
  const int lane = threadIdx.x, warp = threadIdx.y, gid = lane >> 2, tig = lane & 3;
  const Entries its = ENTRIES;
  if (warp == 0) deal(&piece, its, (int)entries, (int)workers, (int)worth, blockIdx.x, lane);
  __syncthreads();
  if (!piece.splits) return;
  const int asked = its.asked(piece.entry), runs = RUNS(asked), last = asked - 1;
  const int kv_head = piece.cell / runs, begins = piece.cell % runs * BLOCK_COLUMNS;
  const i64 line = its.line(piece.entry, kv_head);

  const Sight sight = its.sight(piece.entry);
  const Columns all = {line, (int)count, 0, 0, asked, begins};
  const Columns columns = {line, (int)count, 0, 0, asked, begins + warp * COLUMNS};
  Rows rows;
  rows.keys = keys + keys_at * SIZE, rows.values = values + values_at * SIZE;
  LIE(rows, piece.entry, kv_head, sight.end);
  rows.low = sight.from(all.query(0)), rows.high = max(sight.stop(min(all.query(BLOCK_COLUMNS - 1), last)), rows.low);

  const int first_stage = rows.low / STAGE, stages = (rows.high + STAGE - 1) / STAGE - first_stage;
  const int each = (stages + piece.splits - 1) / piece.splits, begin = first_stage + piece.split * each;
  const int stop = min(begin + each, first_stage + stages), item = warp * LANES + lane;
  const u32 two = shared_address(memory);
  if (begin < stop) fetch_stage(rows, begin * STAGE, item, two + (begin & 1) * STAGE_BYTES);

  Queries of;
  of.others = (u32 *)(memory + 2 * STAGE_BYTES + warp * OTHER_BYTES) + lane * 2;
  Sums sums;
  of.take(queries + queries_at, columns, lane);
  sums.begin();
  const bool left = !__all_sync(ALL, of.left == 0); /* some have more than 16 bits */
  const int from_query = columns.query(0), to_query = min(columns.query(COLUMNS - 1), last);
  const int any_from = sight.from(from_query), any_stop = from_query > last ? 0 : sight.stop(to_query);
  const int all_from = sight.from(to_query), all_stop = sight.stop(from_query);

  for (int i = begin; i < stop; ++i) {
    const u32 stage = two + (i & 1) * STAGE_BYTES;
    const int p = i * STAGE;
    arrived<0>();
    __syncthreads(); /* it is there for all warps, and no warp reads the stage that the next copies overwrite */
    if (i + 1 < stop) fetch_stage(rows, p + STAGE, item, two + (i + 1 & 1) * STAGE_BYTES);
    if (p < any_stop && p + STAGE > any_from) {
      const bool whole = p >= all_from && p + STAGE <= all_stop;
      float s[TILES][EIGHTS][4];
      u32 weights[TILES][EIGHTS][ROW_PARTS][2];
      if (left) score<PARTS>(s, of, stage, lane); /* a branch around both, and not in them: loads run ahead of products */
      else score<1>(s, of, stage, lane);
#pragma unroll
      for (int t = 0; t < TILES; ++t)
        if (!whole) sight.hide(s[t], p + t * TILE, lane, columns);
      sums.weigh(s, weights);
#pragma unroll
      for (int t = 0; t < TILES; ++t)
        sums.add_seen(weights[t], stage + (TILES + t) * UNIT_BYTES, lane, whole, p + t * TILE, columns, sight);
    }
  }

  float *part = parts + COUNTERS + (((i64)piece.slot + piece.split) * BLOCK_COLUMNS + warp * COLUMNS) * PART;
#pragma unroll
  for (int i = 0; i < EIGHTS * 2; ++i) {
    const int e = i / 2, c = i % 2, column = e * 8 + tig * 2 + c;
    const float l = sums.weight(e, c);
    const bool real = columns.real(column);
    if (piece.splits > 1 && gid == 0) part[column * PART] = sums.m[e][c], part[column * PART + 1] = l;
    float *to = piece.splits > 1 ? part + column * PART + 2 : out + out_at + (real ? columns.at(column) * V_DIM : 0);
#pragma unroll
    for (int j = 0; j < V_DIM / 8; ++j) {
      const float a = sums.a[e][j / 2][c + j % 2 * 2];
      if (piece.splits > 1) to[j * 8 + gid] = a;
      else if (real) to[j * 8 + gid] = divided(a, l);
    }
  }
  if (piece.splits > 1) join<BLOCK_COLUMNS>(&before_me, parts, piece.slot, piece.splits, all, out + out_at, warp, lane);
}
