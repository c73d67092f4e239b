/* Attention of many queries over 16-bit rows, for compute capability 9.0 alone. A text of its own, behind prelude_cuda.h,
 * warp_cuda.h, warp_rows.cu, warp_deal.cu, warp_parts.cu and hopper_cuda.h. It ran under emulation only.
 *
 * It is compiled for the same combinations as `prefill_warps.cu`, where widths are 64 or 128 and rows do not lie singly,
 * with WARP_GROUPS groups of four warps that compute, and STAGE positions in a stage.
 *
 * A block takes 64 * WARP_GROUPS columns, heads of successive queries. One warp of a last group brings the rows: it fills two
 * stages by turns, and waits for `read` of a stage before it fills it again. The other groups wait for `filled`, and
 * multiply their 64 columns by the keys, [64, STAGE], then the weights by the values, [64, V_DIM]. Queries, in parts, keys
 * and values are in shared memory, where a product reads them; weights stay in the registers that the scores came in.
 *
 * A tile of 16 positions that lie side by side, and are all seen, comes by boxes of 64 elements of each row. Lanes copy the
 * other tiles themselves: those at the ends of what is seen, of which the rest are zeros, and those where a ring turns.
 */
#define QUERY_SLAB (GROUP_ROWS * LINE)
#define QUERY_BYTES (PARTS * (K_DIM / 64) * QUERY_SLAB) /* of a group */
#define SLAB (STAGE * LINE)
#define KEY_BYTES (K_DIM / 64 * SLAB)
#define STAGE_BYTES (KEY_BYTES + V_DIM / 64 * SLAB)
#define TILES (STAGE / TILE)
#define BOX_BYTES (TILE * LINE)
#ifdef ROW_F16
#define MULTIPLY_SHARED multiply_f16
#define MULTIPLY_TURNED multiply_turned_f16
#else
#define MULTIPLY_SHARED multiply_bf16
#define MULTIPLY_TURNED multiply_turned_bf16
#endif

/* The same for all lanes of a warp, and known to the compiler as that: products may stand behind branches on it. */
DEVICE int same(int x) { return __shfl_sync(ALL, x, 0); }

/* Where things are in shared memory. */
struct Places {
  u32 begin;

  DEVICE_METHOD u32 keys(int stage) const { return begin + (stage & 1) * STAGE_BYTES; }
  DEVICE_METHOD u32 values(int stage) const { return keys(stage) + KEY_BYTES; }
  DEVICE_METHOD u32 queries(int group) const { return begin + 2 * STAGE_BYTES + group * QUERY_BYTES; }
  DEVICE_METHOD u32 filled(int stage) const { return queries(WARP_GROUPS) + (stage & 1) * 8; }
  DEVICE_METHOD u32 read(int stage) const { return filled(stage) + 16; }
};

/* Whether all of a tile is seen and lies side by side. */
DEVICE bool in_boxes(const Rows &rows, int p) {
  if (p < rows.low || p + TILE > rows.high) return false;
#ifdef PAGES
  return true;
#else
  return p + TILE <= rows.turn || p >= rows.turn;
#endif
}

/* Brings the boxes of a tile whose number among those of its stage is `tile`, of keys or values; a lane has one of each
 * 32. */
template <int dim> DEVICE void bring(const Rows &rows, const TensorMap &map, int p, int lane, u32 to, u32 barrier) {
  for (int box = lane; box < TILES * (dim / 64); box += LANES) {
    const int tile = box % TILES, slab = box / TILES, at = p + tile * TILE;
    if (in_boxes(rows, at)) copy_box(to + slab * SLAB + tile * BOX_BYTES, map, slab * 64, (int)rows.row(at), barrier);
  }
}

/* Copies a tile that does not come in boxes; what nobody sees becomes zeros. */
template <int dim> DEVICE void bring_rows(const Rows &rows, const char *from, int p, int tile, int lane, u32 to) {
  constexpr int chunks = dim / 8;
#pragma unroll 1
  for (int i = lane; i < TILE * chunks; i += LANES) {
    const int r = i / chunks, chunk = i % chunks, at = p + tile * TILE + r;
    const bool seen = at >= rows.low && at < rows.high;
    uint4 x = {0, 0, 0, 0};
    if (seen) x = *(const uint4 *)(from + rows.row(at) * (dim * SIZE) + chunk * 16);
    put_16(to + chunk_at<STAGE>(tile * TILE + r, chunk), x);
  }
}

/* What the warp that brings rows does. */
DEVICE void bring_stages(const Rows &rows, const TensorMap &keys, const TensorMap &values, const Places &at, int begin,
                         int stop, int lane) {
  for (int i = begin; i < stop; ++i) {
    const int p = i * STAGE, stage = i - begin;
    if (stage >= 2) wait_at(at.read(stage), (stage / 2 - 1) & 1);
    u32 boxed = 0;
#pragma unroll 1
    for (int tile = 0; tile < TILES; ++tile) {
      if (in_boxes(rows, p + tile * TILE)) ++boxed;
      else {
        bring_rows<K_DIM>(rows, rows.keys, p, tile, lane, at.keys(stage));
        bring_rows<V_DIM>(rows, rows.values, p, tile, lane, at.values(stage));
      }
    }
    show_puts();
    __syncwarp();
    if (lane == 0) arrive_before(at.filled(stage), boxed * (K_DIM + V_DIM) / 64 * BOX_BYTES);
    __syncwarp();
    bring<K_DIM>(rows, keys, p, lane, at.keys(stage), at.filled(stage));
    bring<V_DIM>(rows, values, p, lane, at.values(stage), at.filled(stage));
  }
}

/* The queries of the 16 columns of a warp, in parts, into shared memory. Lane l is given the factors of the scores of
 * columns l / 4 and l / 4 + 8. Gives what is not 0 if a part behind the first is not. */
DEVICE u32 put_queries(float (&factor)[2], const float *queries, const Columns &columns, u32 to, int warp, int lane) {
  u32 left = 0;
#pragma unroll 1
  for (int column = 0; column < 16; ++column) {
    const float *q = columns.real(column) ? queries + columns.at(column) * K_DIM : nullptr;
    float up = 1.0f, down = SCALE;
#ifdef ROW_F16
    float most = 0.0f;
    for (int d = lane; q && d < K_DIM; d += LANES) most = fmaxf(most, fabsf(q[d]));
#pragma unroll
    for (int flip = 1; flip < LANES; flip *= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, flip));
    const int exponent = min(max((int)(__float_as_uint(most) >> 23), 14), 254); /* as in warp_parts.cu */
    up = __uint_as_float((u32)(267 - exponent) << 23);
    down = __uint_as_float((u32)max(exponent - 13, 1) << 23) * SCALE;
#endif
    if (column % 8 == lane >> 2) factor[column / 8] = down;
#pragma unroll
    for (int d = 0; d < K_DIM; d += 2 * LANES) {
      const int at = d + lane * 2;
      float a = q ? q[at] * up : 0.0f, b = q ? q[at + 1] * up : 0.0f;
#pragma unroll
      for (int part = 0; part < PARTS; ++part) {
        const u32 x = PAIR(a, b);
        put(to + part * (K_DIM / 64) * QUERY_SLAB + chunk_at<GROUP_ROWS>(warp * 16 + column, at / 8) + at % 8 * 2, x);
        if (part) left |= x & 0x7fff7fffu;
        a = (a - LOW(x)) * (1.0f / REST), b = (b - HIGH(x)) * (1.0f / REST);
      }
    }
  }
  return left;
}

/* A group of warps that computes: what its lanes know of their two columns, l / 4 and 8 further on, of its warp's 16. Of
 * sums of n columns, lane l has those of columns 8 i + 2 (l % 4) and the one behind, for all i. */
struct Group {
  float m[2] = {NOTHING, NOTHING}, l[2] = {}, factor[2], a[V_DIM / 2] = {};
  int from[2], stop[2];

  /* Adds products of one part of the queries. */
  DEVICE_METHOD static void multiply(float (&s)[STAGE / 2], u32 queries, u32 keys, int part, bool adds) {
#pragma unroll
    for (int k = 0; k < K_DIM / 16; ++k) {
      const u32 slab = k / 4, within = k % 4 * 32; /* 16 elements have 32 bytes */
      const u32 q = queries + (part * (K_DIM / 64) + slab) * QUERY_SLAB + within, key = keys + slab * SLAB + within;
      MULTIPLY_SHARED(s, described(q, 16, EIGHT_ROWS), described(key, 16, EIGHT_ROWS), adds || k > 0);
    }
  }
  /* Scores of a stage; of all parts of the queries if any is left behind the first. */
  DEVICE_METHOD void score(float (&s)[STAGE / 2], u32 queries, u32 keys, bool left) const {
    if (left) {
      fence_products();
#pragma unroll
      for (int part = 1; part < PARTS; ++part) multiply(s, queries, keys, part, part > 1);
      end_products();
      products_made<0>();
#ifdef ROW_F16
#pragma unroll
      for (int i = 0; i < STAGE / 2; ++i) s[i] *= REST;
#endif
    }
    fence_products();
    multiply(s, queries, keys, 0, left);
    end_products();
    products_made<0>();
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
    fence_products();
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
      MULTIPLY_TURNED(a, weights[tile], described(values + tile * BOX_BYTES, SLAB, EIGHT_ROWS));
    end_products();
    products_made<0>();
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

/* Whether all values of a stage are finite; each warp looks at all of them. */
DEVICE bool all_finite(const unsigned char *values, int lane) {
  u32 far = 0;
#pragma unroll 4
  for (int i = lane; i < (STAGE_BYTES - KEY_BYTES) / 4; i += LANES)
    far |= (((const u32 *)values)[i] & EXPONENT) + (EXPONENT & ~(EXPONENT << 1));
  return __all_sync(ALL, (far & 0x80008000u) == 0);
}

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
  if (group < WARP_GROUPS) left = put_queries(of.factor, queries + queries_at, columns, at.queries(group), warp % 4, lane);
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
        if (whole || all_finite(values, lane)) of.add(weights, at.values(stage));
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
