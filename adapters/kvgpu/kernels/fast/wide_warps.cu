/* Attention of few queries over rows that are too wide for `attend_warps.cu`: rows of 16 bits wider than 256, such as the
 * latent rows of DeepSeek (576 and 512), and f32 rows of 129 to 320. A text of its own, behind prelude_cuda.h,
 * warp_cuda.h, warp_rows.cu, warp_deal.cu and warp_parts.cu. It is compiled for the same combinations as
 * `attend_warps.cu`, without UNITS; widths are multiples of 64.
 *
 * A block takes what a block of `attend_warps.cu` takes, but no warp has registers for outputs as wide. So all warps work
 * on the same tile, and each on its share of the steps of 16 that a row has. A warp multiplies its share of the keys by
 * its share of the queries; the warps add up their scores in shared memory. Then each knows all scores, makes the same
 * weights of them, and adds its share of the values to its share of the outputs. Meanwhile asynchronous copies bring the
 * next tile of keys and values.
 */

#define STAGE_BYTES (2 * UNIT_BYTES)

/* Starts the copies of the tile from position p on: a unit of keys, then one of values. */
DEVICE void fetch_stage(const Rows &rows, int p, int item, u32 to) {
  rows.fetch<K_DIM, LANES * WARPS>(rows.keys, p, item, to);
  rows.fetch<V_DIM, LANES * WARPS>(rows.values, p, item, to + UNIT_BYTES);
  end_group();
}

/* Adds up the scores of all warps: each gets the same sums. `all` is in shared memory. */
DEVICE void add_up(float (&s)[EIGHTS][4], float (&all)[WARPS][EIGHTS * 4][LANES], int warp, int lane) {
#pragma unroll
  for (int i = 0; i < EIGHTS * 4; ++i) all[warp][i][lane] = s[i / 4][i % 4];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < EIGHTS * 4; ++i) {
    s[i / 4][i % 4] = all[0][i][lane];
#pragma unroll
    for (int w = 1; w < WARPS; ++w) s[i / 4][i % 4] += all[w][i][lane];
  }
}

/* Blocks are of 32 x WARPS items. */
extern "C" __global__ void __launch_bounds__(LANES *WARPS, 2) ATTEND(ARGUMENTS) {
  DYNAMIC_SHARED(memory);
  __shared__ u32 before_me;
  __shared__ Piece piece;
  __shared__ float scores[WARPS][EIGHTS * 4][LANES];
  const int lane = threadIdx.x, warp = threadIdx.y, item = warp * LANES + lane, gid = lane >> 2, tig = lane & 3;
  const Entries its = ENTRIES;
  if (warp == 0) deal(&piece, its, (int)entries, (int)workers, (int)worth, blockIdx.x, lane);
  __syncthreads();
  if (!piece.splits) return;
  const int its_queries = its.asked(piece.entry), runs = (its_queries + QUERIES - 1) / QUERIES;
  const int asked = piece.cell % runs * QUERIES, pass = piece.cell / runs % PASSES;
  const int kv_head = piece.cell / runs / PASSES;
  const i64 line = its.line(piece.entry, kv_head);

  const Sight sight = its.sight(piece.entry);
  const Columns columns = {line, (int)count, pass * PER_PASS, asked, min(its_queries, asked + QUERIES), 0};
  Rows rows;
  rows.keys = keys + keys_at * SIZE, rows.values = values + values_at * SIZE;
  LIE(rows, piece.entry, kv_head, sight.end);
  rows.low = sight.from(asked), rows.high = max(sight.stop(columns.until - 1), rows.low);

  const int first_tile = rows.low / TILE, tiles = (rows.high + TILE - 1) / TILE - first_tile;
  const int each = (tiles + piece.splits - 1) / piece.splits, begin = first_tile + piece.split * each;
  const int stop = min(begin + each, first_tile + tiles);
  const u32 two = shared_address(memory);
  if (begin < stop) fetch_stage(rows, begin * TILE, item, two + (begin & 1) * STAGE_BYTES);

  Queries of;
  Sums sums;
  of.share = sums.share = warp;
  of.take(queries + queries_at, columns, lane);
  sums.begin();
  const int all_from = sight.from(columns.until - 1), all_stop = sight.stop(asked); /* what every query sees */

  for (int i = begin; i < stop; ++i) {
    const u32 stage = two + (i & 1) * STAGE_BYTES;
    const int p = i * TILE;
    const bool whole = p >= all_from && p + TILE <= all_stop;
    float s[1][EIGHTS][4];
    u32 weights[1][EIGHTS][ROW_PARTS][2];
    arrived<0>();
    __syncthreads(); /* it is there for all warps, and no warp reads the tile or the scores that come next */
    if (i + 1 < stop) fetch_stage(rows, p + TILE, item, two + (i + 1 & 1) * STAGE_BYTES);
    score<PARTS>(s, of, stage, lane);
    add_up(s[0], scores, warp, lane);
    if (!whole) sight.hide(s[0], p, lane, columns);
    sums.weigh(s, weights);
    sums.add_seen(weights[0], stage + UNIT_BYTES, lane, QUERIES == 1 || whole, p, columns, sight);
  }

  float *part = parts + COUNTERS + ((i64)piece.slot + piece.split) * COLUMNS * PART;
#pragma unroll
  for (int i = 0; i < EIGHTS * 2; ++i) {
    const int e = i / 2, c = i % 2, column = e * 8 + tig * 2 + c;
    const float l = sums.weight(e, c);
    if (column >= COLUMNS) continue;
    const bool real = columns.real(column);
    if (piece.splits > 1 && item < 4) part[column * PART] = sums.m[e][c], part[column * PART + 1] = l;
    float *to = piece.splits > 1 ? part + column * PART + 2 : out + out_at + (real ? columns.at(column) * V_DIM : 0);
#pragma unroll
    for (int j = 0; j < STEPS(V_DIM) * 2; ++j) {
      const float a = sums.a[e][j / 2][c + j % 2 * 2];
      const int d = (warp + j / 2 * SHARES) * 16 + j % 2 * 8 + gid;
      if (piece.splits > 1) to[d] = a;
      else if (real) to[d] = divided(a, l);
    }
  }
  if (piece.splits > 1) join<COLUMNS>(&before_me, parts, piece.slot, piece.splits, columns, out + out_at, warp, lane);
}
