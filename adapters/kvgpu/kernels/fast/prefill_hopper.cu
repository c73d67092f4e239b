/* Attention of many queries over 16-bit rows, for compute capability 9.0 alone. A text of its own, behind prelude_cuda.h,
 * warp_cuda.h, warp_rows.cu, warp_deal.cu, warp_parts.cu, hopper_cuda.h and hopper_rows.cu. It ran under emulation only.
 *
 * It is compiled for the same combinations as `prefill_warps.cu`, where widths are 64 or 128 and rows do not lie singly,
 * with WARP_GROUPS groups of four warps that compute, and STAGE positions in a stage.
 *
 * A block takes 64 * WARP_GROUPS columns, heads of successive queries. One warp of a last group brings the rows: it fills two
 * stages by turns, and waits for `read` of a stage before it fills it again. The other groups wait for `filled`, and
 * multiply their 64 columns by the keys, [64, STAGE], then the weights by the values, [64, V_DIM]. Queries, in parts, keys
 * and values are in shared memory, where a product reads them; weights stay in the registers that the scores came in.
 */
#define QUERY_BYTES (PARTS * (K_DIM / 64) * QUERY_SLAB) /* of a group */
#define KEY_BYTES (K_DIM / 64 * SLAB)
#define STAGE_BYTES (KEY_BYTES + V_DIM / 64 * SLAB)

/* Where things are in shared memory. */
struct Places {
  u32 begin;

  DEVICE_METHOD u32 keys(int stage) const { return begin + (stage & 1) * STAGE_BYTES; }
  DEVICE_METHOD u32 values(int stage) const { return keys(stage) + KEY_BYTES; }
  DEVICE_METHOD u32 queries(int group) const { return begin + 2 * STAGE_BYTES + group * QUERY_BYTES; }
  DEVICE_METHOD u32 filled(int stage) const { return queries(WARP_GROUPS) + (stage & 1) * 8; }
  DEVICE_METHOD u32 read(int stage) const { return filled(stage) + 16; }
};

/* A group of warps that computes: what its lanes know of their two columns, l / 4 and 8 further on, of its warp's 16. Of
 * sums of n columns, lane l has those of columns 8 i + 2 (l % 4) and the one behind, for all i. */
struct Group {
  float m[2] = {NOTHING, NOTHING}, l[2] = {}, raise[2], factor[2], a[V_DIM / 2] = {};
  int from[2], stop[2];

  /* Adds products of one part of the queries. */
  DEVICE_METHOD static void multiply(float (&s)[STAGE / 2], u32 queries, u32 keys, int part, bool adds) {
#pragma unroll
    for (int k = 0; k < K_DIM / 16; ++k) {
      const u32 slab = k / 4, within = k % 4 * 32; /* 16 elements have 32 bytes */
      const u32 q = queries + (part * (K_DIM / 64) + slab) * QUERY_SLAB + within, key = keys + slab * SLAB + within;
      PRODUCT_OF(multiply)(s, described(q, 16, EIGHT_ROWS), described(key, 16, EIGHT_ROWS), adds || k > 0);
    }
  }
  /* Scores of a stage; of all parts of the queries if any is left behind the first. */
  DEVICE_METHOD void score(float (&s)[STAGE / 2], u32 queries, u32 keys, bool left) const {
    if (left) {
      fence_products(s);
#pragma unroll
      for (int part = 1; part < PARTS; ++part) multiply(s, queries, keys, part, part > 1);
      end_products();
      products_made<0>(s);
#ifdef ROW_F16
#pragma unroll
      for (int i = 0; i < STAGE / 2; ++i) s[i] *= REST;
#endif
    }
    fence_products(s);
    multiply(s, queries, keys, 0, left);
    end_products();
    products_made<0>(s);
#pragma unroll
    for (int i = 0; i < STAGE / 2; ++i) s[i] *= factor[i / 2 % 2];
  }
  /* Hides the positions from p on that a column does not see. */
  DEVICE_METHOD void hide(float (&s)[STAGE / 2], int p, int lane) const {
#pragma unroll
    for (int i = 0; i < STAGE / 2; ++i) {
      const int at = p + i / 4 * 8 + (lane & 3) * 2 + i % 2, c = i / 2 % 2;
      if (at < from[c] || at >= stop[c]) s[i] = NOTHING;
    }
  }
  /* Turns scores into weights below the new maximum, and scales the sums down to it. */
  DEVICE_METHOD void weigh(float (&s)[STAGE / 2], u32 (&weights)[TILES][4]) {
    float less[2];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float most = m[c];
#pragma unroll
      for (int i = 0; i < STAGE / 4; ++i) most = fmaxf(most, s[i / 2 * 4 + c * 2 + i % 2]);
      most = fmaxf(most, __shfl_xor_sync(ALL, most, 1));
      most = fmaxf(most, __shfl_xor_sync(ALL, most, 2));
      const float below = most == NOTHING ? 0.0f : most;
      less[c] = power_of_2(m[c] - below);
      m[c] = most, l[c] *= less[c];
#pragma unroll
      for (int i = 0; i < STAGE / 4; ++i) {
        float &of = s[i / 2 * 4 + c * 2 + i % 2];
        of = power_of_2(of - below);
      }
    }
#pragma unroll
    for (int i = 0; i < STAGE / 4; ++i) {
      const u32 pair = PAIR(s[i * 2], s[i * 2 + 1]);
      weights[i / 4][i % 4] = pair;
      l[i % 2] += LOW(pair) + HIGH(pair);
    }
#pragma unroll
    for (int i = 0; i < V_DIM / 2; ++i) a[i] *= less[i / 2 % 2];
  }
  /* Adds values, weighted. */
  DEVICE_METHOD void add(const u32 (&weights)[TILES][4], u32 values) {
    fence_products(a);
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
      PRODUCT_OF(multiply_turned)(a, weights[tile], described(values + tile * BOX_BYTES, SLAB, EIGHT_ROWS));
    end_products();
    products_made<0>(a);
  }
  /* The same where something is not finite: a column may not even multiply by 0 what it does not see. */
  DEVICE_METHOD void add_seen(const u32 (&weights)[TILES][4], const unsigned char *values, int p, int lane) {
#pragma unroll 1
    for (int t = 0; t < STAGE; ++t) {
      u32 mine[2] = {};
#pragma unroll
      for (int i = 0; i < TILES * 4; ++i)
        if (i / 2 == t / 8) mine[i % 2] = weights[i / 4][i % 4];
      const int owner = (lane & ~3) + t % 8 / 2, shift = t % 2 * 16;
      float weight[2];
#pragma unroll
      for (int c = 0; c < 2; ++c) weight[c] = LOW(__shfl_sync(ALL, mine[c], owner) >> shift & 0xffffu);
#pragma unroll
      for (int i = 0; i < V_DIM / 8; ++i) {
        const u32 pair = *(const u32 *)(values + chunk_at<STAGE>(t, i) + (lane & 3) * 4);
#pragma unroll
        for (int c = 0; c < 2; ++c)
          if (p + t >= from[c] && p + t < stop[c])
            a[i * 4 + c * 2] += weight[c] * LOW(pair), a[i * 4 + c * 2 + 1] += weight[c] * HIGH(pair);
      }
    }
  }
};

/* Blocks are of 32 x WARPS items: WARP_GROUPS groups, and one of which a warp brings rows. */
extern "C" __global__ void __launch_bounds__(LANES *WARPS, 1)
    ATTEND(ARGUMENTS, const __grid_constant__ TensorMap key_map, const __grid_constant__ TensorMap value_map) {
  DYNAMIC_SHARED(memory);
  __shared__ u32 before_me, left_of[WARPS];
  __shared__ Piece piece;
  const int lane = threadIdx.x, warp = same(threadIdx.y), group = warp / 4;
  const Places at = {shared_address(memory)};
  const Entries its = ENTRIES;
  if (warp == 0) deal(&piece, its, (int)entries, (int)workers, (int)worth, blockIdx.x, lane);
  __syncthreads();
  if (!piece.splits) return;
  const int asked = its.asked(piece.entry), runs = RUNS(asked), last = asked - 1;
  const int kv_head = piece.cell / runs, begins = piece.cell % runs * BLOCK_COLUMNS;
  const i64 line = its.line(piece.entry, kv_head);

  const Sight sight = its.sight(piece.entry);
  const Columns all = {line, (int)count, 0, 0, asked, begins};
  const Columns columns = {line, (int)count, 0, 0, asked, begins + warp * 16};
  Rows rows;
  rows.keys = keys + keys_at * SIZE, rows.values = values + values_at * SIZE;
  LIE(rows, piece.entry, kv_head, sight.end);
  rows.low = sight.from(all.query(0)), rows.high = max(sight.stop(min(all.query(BLOCK_COLUMNS - 1), last)), rows.low);

  const int first_stage = rows.low / STAGE, stages = (rows.high + STAGE - 1) / STAGE - first_stage;
  const int each = (stages + piece.splits - 1) / piece.splits, begin = first_stage + piece.split * each;
  const int stop = min(begin + each, first_stage + stages);
  const int first_of_it = same(begin), stop_of_it = same(stop);

  Group of;
  u32 left = 0;
  if (warp == 0 && lane == 0) {
#pragma unroll
    for (int i = 0; i < 2; ++i) begin_barrier(at.filled(i), 1), begin_barrier(at.read(i), WARP_GROUPS * 4);
    show_barriers();
  }
  if (group < WARP_GROUPS)
    left = put_queries<PARTS>(of.raise, of.factor, queries + queries_at, columns, at.queries(group), warp % 4, lane);
  show_puts();
  left = !__all_sync(ALL, left == 0);
  if (lane == 0) left_of[warp] = left;
  __syncthreads();

  if (group == WARP_GROUPS) {
    fewer_registers<56>();
    if (warp == WARP_GROUPS * 4) {
      ready_map(key_map), ready_map(value_map);
      bring_stages(rows, key_map, value_map, at, begin, stop, lane);
    }
    more_registers<168>(); /* as at the beginning: the group joins as the others do */
  } else {
    more_registers<224>();
    const u32 *its_left = left_of + group * 4;
    const bool some_left = same(its_left[0] | its_left[1] | its_left[2] | its_left[3]); /* of its columns */
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int query = columns.query((lane >> 2) + c * 8);
      of.from[c] = sight.from(query), of.stop[c] = sight.stop(query);
    }
    const int from_query = all.query(group * GROUP_ROWS), to_query = min(all.query((group + 1) * GROUP_ROWS - 1), last);
    const int any_from = same(sight.from(from_query)), any_stop = same(from_query > last ? 0 : sight.stop(to_query));
    const int all_from = same(sight.from(to_query)), all_stop = same(sight.stop(from_query));
    for (int i = first_of_it; i < stop_of_it; ++i) {
      const int p = i * STAGE, stage = i - first_of_it;
      wait_at(at.filled(stage), stage / 2 & 1);
      if (p < any_stop && p + STAGE > any_from) {
        const bool whole = p >= all_from && p + STAGE <= all_stop;
        const unsigned char *values = memory + (at.values(stage) - at.begin);
        float s[STAGE / 2];
        u32 weights[TILES][4];
        of.score(s, at.queries(group), at.keys(stage), some_left);
        if (!whole) of.hide(s, p, lane);
        of.weigh(s, weights);
        if (whole || all_finite(values, STAGE_BYTES - KEY_BYTES, lane)) of.add(weights, at.values(stage));
        else of.add_seen(weights, values, p, lane);
      }
      __syncwarp();
      if (lane == 0) arrive(at.read(stage));
    }

    float *part = parts + COUNTERS + (((i64)piece.slot + piece.split) * BLOCK_COLUMNS + warp * 16) * PART;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int column = (lane >> 2) + c * 8;
      const bool real = columns.real(column);
      float l = of.l[c];
      l += __shfl_xor_sync(ALL, l, 1);
      l += __shfl_xor_sync(ALL, l, 2);
      if (piece.splits > 1 && (lane & 3) == 0) part[column * PART] = of.m[c], part[column * PART + 1] = l;
      float *to = piece.splits > 1 ? part + column * PART + 2 : out + out_at + (real ? columns.at(column) * V_DIM : 0);
#pragma unroll
      for (int i = 0; i < V_DIM / 4; ++i) {
        const int d = i / 2 * 8 + (lane & 3) * 2 + i % 2;
        const float a = of.a[i / 2 * 4 + c * 2 + i % 2];
        if (piece.splits > 1) to[d] = a;
        else if (real) to[d] = divided(a, l);
      }
    }
    fewer_registers<168>();
  }
  if (piece.splits > 1) join<BLOCK_COLUMNS>(&before_me, parts, piece.slot, piece.splits, all, out + out_at, warp, lane);
}
