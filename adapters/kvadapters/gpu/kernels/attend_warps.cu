/* Attention over 16-bit rows as tensor cores want it; a text of its own, behind prelude_cuda.h, warp_cuda.h, warp_parts.cu.
 *
 * Compiled for each ROW_F16 or ROW_BF16 (how keys and values are stored), K_DIM and V_DIM (multiples of 32 up to 256),
 * QUERY_HEADS (that share a kv head) in PASSES of at most PER_PASS, QUERIES (that a block takes together), SCALE, by
 * which scores are multiplied: they are counted in powers of 2, and UNITS, how many units of copies a warp has in
 * turn. With PAGES rows lie in pages that tiles of 16 positions fit into, with ROWS in pages of any size, else in runs.
 *
 * A block takes one pass of heads of one kv head of one entry, for QUERIES queries, and one split of the positions that
 * these see. Its warps take tiles of 16 positions by turns, and each has a ring of UNITS units, a tile of keys or of
 * values, that it fills by asynchronous copies as it goes: warps wait for each other only at the end. A column is one
 * head of one query. Scores are keys times queries, [16 positions, columns], so that few heads waste nothing; they are
 * weighed below the running maximum m of their column; outputs are values times weights, [V_DIM, columns].
 *
 * Queries are f32, and rows are multiplied by 16-bit numbers: so a query is taken in parts, the first rounded to 16
 * bits, the next what is left. bf16 takes three, which leave nothing; f16 two, the second times 2^11 and both scaled by
 * a power of 2 that brings the largest element near 2^13. Weights are rounded to 16 bits, and are summed as rounded.
 *
 * The last block of a cell joins the splits. Its counter has come to 0 again by then, so that a graph may run it anew.
 */

/* Arguments and layouts are those of `attend_rows.cl`, but that `parts` begins with COUNTERS numbers, zeros, one for
 * each cell that may be split, and that a part is m, l and a of the columns of a block: [cells, splits, COLUMNS, PART].
 * Blocks are of 32 x 4 items; there is one for each split of each cell. */
extern "C" __global__ void __launch_bounds__(LANES *WARPS, 2)
    ATTEND(const float *queries, const char *keys, const char *values, const i64 *lengths, float *parts, float *out,
#if defined(PAGES) || defined(ROWS)
           const int *tables,
#endif
           i64 entries, i64 kv_heads, i64 count, i64 splits, i64 queries_at, i64 out_at, i64 keys_at, i64 values_at,
           i64 slots, i64 apart,
#if defined(PAGES) || defined(ROWS)
           i64 tables_at, i64 tables_stride,
#else
           i64 start, i64 before, i64 then,
#endif
           i64 first, i64 given, i64 reads, i64 lengths_at, i64 lengths_stride, i64 causal, i64 window) {
  DYNAMIC_SHARED(memory);
  __shared__ float warp_m[WARPS][COLUMNS], warp_l[WARPS][COLUMNS];
  __shared__ u32 before_me;
  const int lane = threadIdx.x, warp = threadIdx.y, item = warp * LANES + lane, gid = lane >> 2, tig = lane & 3;
  const u32 runs = ((u32)count + QUERIES - 1) / QUERIES, cell = blockIdx.x / (u32)splits;
  if (cell >= (u32)entries * (u32)kv_heads * PASSES * runs) return;
  const int split = (int)(blockIdx.x - cell * (u32)splits), asked = (int)(cell % runs) * QUERIES;
  const int pass = (int)(cell / runs % PASSES), kv_head = (int)(cell / runs / PASSES % (u32)kv_heads);
  const i64 entry = cell / runs / PASSES / (u32)kv_heads, head = (entry * kv_heads + kv_head) * QUERY_HEADS;

  const int end = (int)(reads ? lengths[lengths_at + entry * lengths_stride] : given), none_before = (int)first;
  const Sight sight = {end - (int)count + asked, end, none_before, (int)min(window, (i64)end + 1), (int)causal};
  const int here = min((int)count - asked, QUERIES);
  Rows rows;
  rows.keys = keys + keys_at * 2, rows.values = values + values_at * 2;
#if defined(PAGES) || defined(ROWS)
  rows.table = tables + tables_at + entry * tables_stride;
  rows.slots = (int)slots, rows.apart = apart, rows.base = kv_head * slots;
#else
  rows.turn = (int)min(first + before, (i64)end);
  rows.base = entry * apart + kv_head * slots + start - first, rows.behind = rows.base - start + then - before;
#endif
  rows.low = sight.from(0), rows.high = max(sight.stop(here - 1), rows.low);

  const int first_tile = rows.low / TILE, tiles = (rows.high + TILE - 1) / TILE - first_tile;
  const int each = (tiles + (int)splits - 1) / (int)splits, begin = first_tile + split * each;
  const int stop = min(begin + each, first_tile + tiles), mine = max(stop - begin - warp + WARPS - 1, 0) / WARPS;
  const u32 ring = shared_address(memory) + warp * UNITS * UNIT_BYTES;
  u32 written = 0;
#define POSITION(i) ((begin + warp + (i)*WARPS) * TILE)
#define FETCH(i, is_value)                                                                            \
  {                                                                                                   \
    if ((i) < mine) {                                                                                 \
      if (is_value) rows.fetch<V_DIM>(rows.values, POSITION(i), lane, ring + written * UNIT_BYTES);   \
      else rows.fetch<K_DIM>(rows.keys, POSITION(i), lane, ring + written * UNIT_BYTES);              \
    }                                                                                                 \
    end_group();                                                                                      \
    written = written + 1 == UNITS ? 0 : written + 1;                                                 \
  }
#pragma unroll
  for (int u = 0; u < UNITS - 1; ++u) FETCH(u / 2, u % 2)

  Queries of;
  Sums sums;
#pragma unroll
  for (int e = 0; e < EIGHTS; ++e) {
    const int column = e * 8 + gid, i = column / PER_PASS, g = pass * PER_PASS + column % PER_PASS;
    const bool real = i < here && g < QUERY_HEADS;
    of.take(e, real ? queries + queries_at + ((head + g) * count + asked + i) * K_DIM : nullptr, lane);
#pragma unroll
    for (int c = 0; c < 2; ++c) sums.m[e][c] = NOTHING, sums.l[e][c] = 0.0f;
#pragma unroll
    for (int j = 0; j < V_DIM / 16; ++j) sums.a[e][j][0] = sums.a[e][j][1] = sums.a[e][j][2] = sums.a[e][j][3] = 0.0f;
  }
  const int all_from = sight.from(here - 1), all_stop = sight.stop(0); /* the positions that every query sees */

  u32 read = 0;
  for (int i = 0; i < mine; ++i) {
    const int p = POSITION(i);
    const bool whole = p >= all_from && p + TILE <= all_stop;
    float s[EIGHTS][4];
    u32 weights[EIGHTS][2];
    arrived<UNITS - 2>();
    __syncwarp();
    FETCH(i + (UNITS - 1) / 2, (UNITS - 1) % 2)
    score(s, of, ring + read * UNIT_BYTES, lane);
    if (!whole) sight.hide(s, p, lane);
    sums.weigh(s, weights);
    read = read + 1 == UNITS ? 0 : read + 1;
    arrived<UNITS - 2>();
    __syncwarp();
    FETCH(i + UNITS / 2, UNITS % 2)
    if (QUERIES == 1 || whole) sums.add(weights, ring + read * UNIT_BYTES, lane);
    else
      for (int one = 0; one < here; ++one)
        sums.add_one(weights, ring + read * UNIT_BYTES, lane, one, bits_of(p, sight.from(one), sight.stop(one)));
    read = read + 1 == UNITS ? 0 : read + 1;
  }

  /* The warps of the block put what they have into shared memory, where the rows were. */
  arrived<0>();
  __syncthreads();
  float *warp_a = (float *)memory; /* [WARPS, COLUMNS, V_DIM + 4]: so that columns begin in different banks */
#pragma unroll
  for (int i = 0; i < EIGHTS * 2; ++i) {
    const int e = i / 2, c = i % 2, column = e * 8 + tig * 2 + c;
    float l = sums.l[e][c];
#pragma unroll
    for (int flip = 4; flip < LANES; flip *= 2) l += __shfl_xor_sync(ALL, l, flip);
    if (column >= COLUMNS) continue;
    if (gid == 0) warp_m[warp][column] = sums.m[e][c], warp_l[warp][column] = l;
#pragma unroll
    for (int j = 0; j < V_DIM / 8; ++j)
      warp_a[(warp * COLUMNS + column) * (V_DIM + 4) + j * 8 + gid] = sums.a[e][j / 2][c + j % 2 * 2];
  }
  __syncthreads();
  float *part = parts + COUNTERS + ((i64)cell * splits + split) * COLUMNS * PART;
#define FINISH(column, d, l, a)                                                                                \
  {                                                                                                            \
    const int i_ = (column) / PER_PASS, g_ = pass * PER_PASS + (column) % PER_PASS;                            \
    if (i_ < here && g_ < QUERY_HEADS)                                                                         \
      out[out_at + ((head + g_) * count + asked + i_) * V_DIM + (d)] = (l) == 0.0f ? 0.0f : (a) / (l);         \
  }
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
    if (splits == 1) FINISH(column, d, l, a)
    else {
      part[column * PART + 2 + d] = a;
      if (d == 0) part[column * PART] = m, part[column * PART + 1] = l;
    }
  }
  if (splits == 1) return;

  /* The block that comes last joins what all have: who counts up to splits - 1 finds it there, and leaves 0. */
  __threadfence();
  __syncthreads();
  if (item == 0) before_me = atomicInc((u32 *)parts + cell, (u32)splits - 1);
  __syncthreads();
  if (before_me != (u32)splits - 1) return;
  __threadfence();
  for (int column = warp; column < COLUMNS; column += WARPS) {
    const float *one = parts + COUNTERS + ((i64)cell * splits * COLUMNS + column) * PART;
    float m = NOTHING, l = 0.0f, a[V_DIM / LANES];
    for (int i = lane; i < (int)splits; i += LANES) m = fmaxf(m, __ldcg(one + i * COLUMNS * PART));
#pragma unroll
    for (int flip = 1; flip < LANES; flip *= 2) m = fmaxf(m, __shfl_xor_sync(ALL, m, flip));
#pragma unroll
    for (int j = 0; j < V_DIM / LANES; ++j) a[j] = 0.0f;
#pragma unroll 4
    for (int i = 0; i < (int)splits; ++i) {
      const float *its = one + i * COLUMNS * PART, its_m = __ldcg(its);
      const float less = its_m == NOTHING ? 0.0f : power_of_2(its_m - m);
      l += less * __ldcg(its + 1);
#pragma unroll
      for (int j = 0; j < V_DIM / LANES; ++j) a[j] += less * __ldcg(its + 2 + lane + j * LANES);
    }
#pragma unroll
    for (int j = 0; j < V_DIM / LANES; ++j) FINISH(column, lane + j * LANES, l, a[j])
  }
}
