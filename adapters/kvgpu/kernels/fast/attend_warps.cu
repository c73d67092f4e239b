/* Attention of few queries on tensor cores; a text of its own, behind prelude_cuda.h, warp_cuda.h,
 * warp_rows.cu, warp_deal.cu and warp_parts.cu. `prefill_warps.cu` does the same for many queries. It is compiled for
 * each combination of
 *
 *   ROW_F16, ROW_BF16 or ROW_F32   how keys and values are stored; f32 only up to a width of 128
 *   K_DIM, V_DIM          their widths, multiples of 32 up to 256
 *   QUERY_HEADS           query heads that share a kv head, in PASSES of at most PER_PASS
 *   QUERIES               queries that a block takes together
 *   COLUMNS               heads times queries that a block takes together
 *   SCALE                 the factor of scores; it has log2(e) in it, because weights are powers of 2
 *   WARPS, UNITS          warps of a block; units in a warp's ring of copies
 *   PAGES, ROWS, or none  how rows lie: in pages that tiles of 16 positions fit into, in pages of any size, else in runs
 *
 * A block takes one pass of heads of one kv head of one entry, for QUERIES queries, and one split of the positions that
 * these see. Its warps take tiles of 16 positions by turns. Each warp fills a ring of UNITS units, a tile of keys or of
 * values each, by asynchronous copies as it goes: warps wait for each other only at the end. A column is one head of
 * one query. Scores are keys times queries, [16 positions, columns], so that few heads waste nothing. They become
 * weights below the running maximum m of their column. Outputs are values times weights, [V_DIM, columns].
 *
 * Queries are f32, but tensor cores multiply 16-bit numbers. So a query is taken in parts: the first is the query
 * rounded to 16 bits, the next is the rest, rounded too. bf16 takes three parts, which leave no rest. f16 takes two, the
 * second times 2^11, after a power of 2 has brought the largest element near 2^13. Weights are rounded to 16 bits, and
 * the rounded ones are summed. f32 rows, and weights for them, are three bf16 parts too, and products of parts are left
 * out where both are small: below 2^-24 of the whole.
 *
 * The last block of a cell joins the splits, and leaves the cell's counter at 0, so that a graph may run it again.
 */

/* Blocks are of 32 x WARPS items. */
extern "C" __global__ void __launch_bounds__(LANES *WARPS, 2) ATTEND(ARGUMENTS) {
  DYNAMIC_SHARED(memory);
  __shared__ u32 before_me;
  __shared__ Piece piece;
  __shared__ float warp_m[WARPS][COLUMNS], warp_l[WARPS][COLUMNS];
  const int lane = threadIdx.x, warp = threadIdx.y, item = warp * LANES + lane, gid = lane >> 2, tig = lane & 3;
  const Entries all = ENTRIES;
  if (warp == 0) deal(&piece, all, (int)entries, (int)workers, (int)worth, blockIdx.x, lane);
  __syncthreads();
  if (!piece.splits) return;
  const int its_queries = all.asked(piece.entry), runs = (its_queries + QUERIES - 1) / QUERIES;
  const int asked = piece.cell % runs * QUERIES, pass = piece.cell / runs % PASSES;
  const int kv_head = piece.cell / runs / PASSES;
  const i64 line = all.line(piece.entry, kv_head);

  const Sight sight = all.sight(piece.entry);
  const Columns columns = {line, (int)count, pass * PER_PASS, asked, min(its_queries, asked + QUERIES), 0};
  Rows rows;
  rows.keys = keys + keys_at * SIZE, rows.values = values + values_at * SIZE;
  LIE(rows, piece.entry, kv_head, sight.end);
  rows.low = sight.from(asked), rows.high = max(sight.stop(columns.until - 1), rows.low);

  const int first_tile = rows.low / TILE, tiles = (rows.high + TILE - 1) / TILE - first_tile;
  const int each = (tiles + piece.splits - 1) / piece.splits, begin = first_tile + piece.split * each;
  const int stop = min(begin + each, first_tile + tiles), mine = max(stop - begin - warp + WARPS - 1, 0) / WARPS;
  const u32 ring = shared_address(memory) + warp * UNITS * UNIT_BYTES;
  u32 written = 0;
#define POSITION(i) ((begin + warp + (i)*WARPS) * TILE)
#define FETCH(i, is_value)                                                                                 \
  {                                                                                                        \
    if ((i) < mine) {                                                                                      \
      if (is_value) rows.fetch<V_DIM, LANES>(rows.values, POSITION(i), lane, ring + written * UNIT_BYTES); \
      else rows.fetch<K_DIM, LANES>(rows.keys, POSITION(i), lane, ring + written * UNIT_BYTES);            \
    }                                                                                                      \
    end_group();                                                                                           \
    written = written + 1 == UNITS ? 0 : written + 1;                                                      \
  }
#pragma unroll
  for (int u = 0; u < UNITS - 1; ++u) FETCH(u / 2, u % 2)

  Queries of;
  Sums sums;
  of.take(queries + queries_at, columns, lane);
  sums.begin();
  const bool left = ROW_PARTS > 1 || !__all_sync(ALL, of.left == 0); /* some have more than 16 bits */
  const int all_from = sight.from(columns.until - 1), all_stop = sight.stop(asked); /* what every query sees */

  u32 read = 0;
  for (int i = 0; i < mine; ++i) {
    const int p = POSITION(i);
    const bool whole = p >= all_from && p + TILE <= all_stop;
    float s[1][EIGHTS][4];
    u32 weights[1][EIGHTS][ROW_PARTS][2];
    arrived<UNITS - 2>();
    __syncwarp();
    FETCH(i + (UNITS - 1) / 2, (UNITS - 1) % 2)
    if (left) score<PARTS>(s, of, ring + read * UNIT_BYTES, lane); /* a branch around both, and not in them: loads run ahead of products */
    else score<1>(s, of, ring + read * UNIT_BYTES, lane);
    if (!whole) sight.hide(s[0], p, lane, columns);
    sums.weigh(s, weights);
    read = read + 1 == UNITS ? 0 : read + 1;
    arrived<UNITS - 2>();
    __syncwarp();
    FETCH(i + UNITS / 2, UNITS % 2)
    sums.add_seen(weights[0], ring + read * UNIT_BYTES, lane, QUERIES == 1 || whole, p, columns, sight);
    read = read + 1 == UNITS ? 0 : read + 1;
  }

  /* The warps of the block put what they have into shared memory, where the rows were. */
  arrived<0>();
  __syncthreads();
  float *warp_a = (float *)memory; /* [WARPS, COLUMNS, V_DIM + 4]: so that columns begin in different banks */
#pragma unroll
  for (int i = 0; i < EIGHTS * 2; ++i) {
    const int e = i / 2, c = i % 2, column = e * 8 + tig * 2 + c;
    const float l = sums.weight(e, c);
    if (column >= COLUMNS) continue;
    if (gid == 0) warp_m[warp][column] = sums.m[e][c], warp_l[warp][column] = l;
#pragma unroll
    for (int j = 0; j < V_DIM / 8; ++j)
      warp_a[(warp * COLUMNS + column) * (V_DIM + 4) + j * 8 + gid] = sums.a[e][j / 2][c + j % 2 * 2];
  }
  __syncthreads();
  float *part = parts + COUNTERS + ((i64)piece.slot + piece.split) * COLUMNS * PART;
  for (int x = item; x < COLUMNS * V_DIM; x += LANES * WARPS) {
    const int column = x / V_DIM, d = x % V_DIM;
    float m = NOTHING, l = 0.0f, a = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) m = fmaxf(m, warp_m[w][column]);
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      const float less = warp_m[w][column] == NOTHING ? 0.0f : power_of_2(warp_m[w][column] - m);
      l += less * warp_l[w][column], a += less * warp_a[(w * COLUMNS + column) * (V_DIM + 4) + d];
    }
    if (piece.splits > 1) {
      part[column * PART + 2 + d] = a;
      if (d == 0) part[column * PART] = m, part[column * PART + 1] = l;
    } else if (columns.real(column)) out[out_at + columns.at(column) * V_DIM + d] = divided(a, l);
  }
  if (piece.splits > 1) join<COLUMNS>(&before_me, parts, piece.slot, piece.splits, columns, out + out_at, warp, lane);
}
