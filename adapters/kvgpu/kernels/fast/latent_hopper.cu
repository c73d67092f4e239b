/* Attention over latent rows of 16 bits, whose value is the beginning of their key, for compute capability 9.0 alone. A text
 * of its own, behind prelude_cuda.h, warp_cuda.h, warp_rows.cu, warp_deal.cu, warp_parts.cu, hopper_cuda.h and
 * hopper_rows.cu. It ran under emulation only.
 *
 * Widths are multiples of 64, at most 576; V_DIM is 128, 256 or 512, and no more than K_DIM. A stage has STAGE positions, 64.
 *
 * A block takes 64 columns, heads of successive queries, and reads each row once. A warp brings the rows, as in
 * `prefill_hopper.cu`. Two groups of four warps compute on the same stage. For scores each group takes all columns and half
 * of the positions, so it needs few registers; for outputs all positions and half of V_DIM, which is 128 registers a lane of
 * 512 elements. Between the two the groups tell each other the maxima of their scores, and their weights.
 *
 * A group begins the scores of the next stage before the outputs of this one, and looks for their maxima while outputs are
 * made: products follow each other, but for the time that weights take.
 *
 * Shared memory has room for one part of the queries. If others are not 0, queries of more than 16 bits, lanes make them
 * again for each stage, and multiply them from registers. That is slow.
 */
#define GROUPS_OF 2 /* that compute */
#define HALF (V_DIM / GROUPS_OF)
#define OWN (STAGE / GROUPS_OF) /* positions whose scores a group makes */
#define STAGE_BYTES (K_DIM / 64 * SLAB)

/* Where things are in shared memory. */
struct Places {
  u32 begin;

  DEVICE_METHOD u32 keys(int stage) const { return begin + (stage & 1) * STAGE_BYTES; }
  DEVICE_METHOD u32 values(int stage) const { return keys(stage); }
  DEVICE_METHOD u32 queries() const { return begin + 2 * STAGE_BYTES; }
  DEVICE_METHOD u32 weights() const { return queries() + K_DIM / 64 * QUERY_SLAB; } /* [64, STAGE], a slab */
  DEVICE_METHOD u32 filled(int stage) const { return weights() + QUERY_SLAB + (stage & 1) * 8; }
  DEVICE_METHOD u32 read(int stage) const { return filled(stage) + 16; }
  DEVICE_METHOD u32 told() const { return filled(0) + 32; }
  DEVICE_METHOD u32 weighed() const { return told() + 8; }
};

/* What the groups tell each other about each column: a maximum, or a sum of weights. */
typedef float Told[GROUPS_OF][GROUP_ROWS];

/* A group of warps that computes: what its lanes know of their two columns, which are number `column` and 8 further on. Of
 * sums of n columns, lane l has those of columns 8 i + 2 (l % 4) and the one behind, for all i. */
struct Group {
  int group, column, lane;
  float m[2] = {NOTHING, NOTHING}, l[2] = {}, raise[2], factor[2], a[HALF / 2] = {};
  int from[2], stop[2];
  const float *queries[2]; /* of its columns; null where there is none */

  /* Begins the scores of its positions in a stage; `left` if queries have more parts than the first. */
  DEVICE_METHOD void begin_scores(float (&s)[OWN / 2], const Places &at, int stage, bool left) const {
    const u32 its = at.queries(), keys = at.keys(stage) + group * OWN * LINE;
    wait_at(at.filled(stage), stage / 2 & 1);
    if (left) score_rest(s, keys);
    fence_products(s);
#pragma unroll
    for (int k = 0; k < K_DIM / 16; ++k) {
      const u32 slab = k / 4, within = k % 4 * 32; /* 16 elements have 32 bytes */
      const matrix q = described(its + slab * QUERY_SLAB + within, 16, EIGHT_ROWS);
      PRODUCT_OF(multiply)(s, q, described(keys + slab * SLAB + within, 16, EIGHT_ROWS), left || k > 0);
    }
    end_products();
  }
  /* The parts behind the first of 16 elements of its queries, as a first factor. */
  DEVICE_METHOD void rest_of(u32 (&rest)[PARTS - 1][4], int k) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float *q = queries[i % 2];
      const int d = k * 16 + i / 2 * 8 + (lane & 3) * 2;
      float x = q ? q[d] * raise[i % 2] : 0.0f, y = q ? q[d + 1] * raise[i % 2] : 0.0f;
#pragma unroll
      for (int part = 0; part < PARTS; ++part) {
        const u32 pair = PAIR(x, y);
        if (part) rest[part - 1][i] = pair;
        x = (x - LOW(pair)) * (1.0f / REST), y = (y - HIGH(pair)) * (1.0f / REST);
      }
    }
  }
  /* Scores of those parts. */
  DEVICE_METHOD void score_rest(float (&s)[OWN / 2], u32 keys) const {
#pragma unroll 1
    for (int k = 0; k < K_DIM / 16; ++k) {
      u32 rest[PARTS - 1][4];
      rest_of(rest, k);
      const matrix key = described(keys + k / 4 * SLAB + k % 4 * 32, 16, EIGHT_ROWS);
      fence_products(s);
#pragma unroll
      for (int part = 0; part < PARTS - 1; ++part) PRODUCT_OF(multiply)(s, rest[part], key, k + part > 0);
      end_products();
      products_made<0>(s);
    }
#ifdef ROW_F16
#pragma unroll
    for (int i = 0; i < OWN / 2; ++i) s[i] *= REST;
#endif
  }
  /* Hides those of its positions, from p on, that a column does not see. */
  DEVICE_METHOD void hide(float (&s)[OWN / 2], int p) const {
#pragma unroll
    for (int i = 0; i < OWN / 2; ++i) {
      const int at = p + i / 4 * 8 + (lane & 3) * 2 + i % 2, c = i / 2 % 2;
      if (at < from[c] || at >= stop[c]) s[i] = NOTHING;
    }
  }
  /* Tells the other group one number of each column, the same in the lanes of a column, and gives the other's. */
  DEVICE_METHOD void exchange(float (&its)[2], Told &told, u32 barrier, int time) const {
    if ((lane & 3) == 0) told[group][column] = its[0], told[group][column + 8] = its[1];
    __syncwarp();
    if (lane == 0) arrive(barrier);
    wait_at(barrier, time & 1);
    its[0] = told[group ^ 1][column], its[1] = told[group ^ 1][column + 8];
  }
  /* Finds the maxima of the scores of its positions, from p on, where what is not seen is hidden. */
  DEVICE_METHOD void find_most(float (&most)[2], float (&s)[OWN / 2], int p, bool whole) const {
#pragma unroll
    for (int i = 0; i < OWN / 2; ++i) s[i] *= factor[i / 2 % 2];
    if (!whole) hide(s, p);
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      most[c] = m[c];
#pragma unroll
      for (int i = 0; i < OWN / 4; ++i) most[c] = fmaxf(most[c], s[i / 2 * 4 + c * 2 + i % 2]);
      most[c] = fmaxf(most[c], __shfl_xor_sync(ALL, most[c], 1));
      most[c] = fmaxf(most[c], __shfl_xor_sync(ALL, most[c], 2));
    }
  }
  /* Turns scores into weights below the new maximum, in shared memory, and scales the sums down to it. */
  DEVICE_METHOD void weigh(const float (&s)[OWN / 2], const float (&own)[2], Told &told, const Places &at, int stage) {
    float most[2], less[2], others[2] = {own[0], own[1]};
    exchange(others, told, at.told(), stage);
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      most[c] = fmaxf(own[c], others[c]);
      const float below = most[c] == NOTHING ? 0.0f : most[c];
      less[c] = power_of_2(m[c] - below);
      m[c] = most[c], l[c] *= less[c];
#pragma unroll
      for (int e = 0; e < OWN / 8; ++e) {
        const float x = power_of_2(s[e * 4 + c * 2] - below), y = power_of_2(s[e * 4 + c * 2 + 1] - below);
        const u32 pair = PAIR(x, y);
        l[c] += LOW(pair) + HIGH(pair);
        put(at.weights() + chunk_at<GROUP_ROWS>(column + c * 8, group * (OWN / 8) + e) + (lane & 3) * 4, pair);
      }
    }
    show_puts();
    __syncwarp();
    if (lane == 0) arrive(at.weighed());
    if (!__all_sync(ALL, less[0] == 1.0f && less[1] == 1.0f))
#pragma unroll
      for (int i = 0; i < HALF / 2; ++i) a[i] *= less[i / 2 % 2];
    wait_at(at.weighed(), stage & 1);
  }
  /* Begins to add its half of the values of a stage from p on, weighted. Where that cannot be, because something is not
   * finite and not seen by all, it waits for scores that are under way, and then adds them. */
  DEVICE_METHOD void begin_adding(float (&s)[OWN / 2], const unsigned char *memory, const Places &at, int stage, int p,
                                  bool whole) {
    const u32 half = at.values(stage) + group * (HALF / 64) * SLAB;
    if (whole || all_finite(memory + (half - at.begin), HALF / 64 * SLAB, lane)) {
      begin_products(at.weights(), half);
    } else {
      products_made<0>(s);
      add_seen(memory + (at.weights() - at.begin), memory + (half - at.begin), p);
    }
  }
  DEVICE_METHOD void begin_products(u32 weights, u32 values) {
    fence_products(a);
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
      PRODUCT_OF(multiply_turned)(a, described(weights + tile * 32, 16, EIGHT_ROWS),
                                  described(values + tile * BOX_BYTES, SLAB, EIGHT_ROWS));
    end_products();
  }
  /* A column may not even multiply by 0 what it does not see. */
  DEVICE_METHOD void add_seen(const unsigned char *weights, const unsigned char *values, int p) {
#pragma unroll 1
    for (int t = 0; t < STAGE; ++t) {
      float weight[2];
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const u32 near = chunk_at<GROUP_ROWS>(column + c * 8, t / 8) + t % 8 / 2 * 4;
        weight[c] = LOW(*(const u32 *)(weights + near) >> t % 2 * 16 & 0xffffu);
      }
#pragma unroll
      for (int i = 0; i < HALF / 8; ++i) {
        const u32 pair = *(const u32 *)(values + chunk_at<STAGE>(t, i) + (lane & 3) * 4);
#pragma unroll
        for (int c = 0; c < 2; ++c)
          if (p + t >= from[c] && p + t < stop[c])
            a[i * 4 + c * 2] += weight[c] * LOW(pair), a[i * 4 + c * 2 + 1] += weight[c] * HIGH(pair);
      }
    }
  }
};

/* Blocks are of 32 x WARPS items: two groups that compute, and one of which a warp brings rows. */
extern "C" __global__ void __launch_bounds__(LANES *WARPS, 1)
    ATTEND(ARGUMENTS, const __grid_constant__ TensorMap key_map) {
  DYNAMIC_SHARED(memory);
  __shared__ u32 before_me, left_of[WARPS];
  __shared__ Piece piece;
  __shared__ Told told;
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
  const Columns columns = {line, (int)count, 0, 0, asked, begins + warp % 4 * 16};
  Rows rows;
  rows.keys = keys + keys_at * SIZE, rows.values = rows.keys;
  LIE(rows, piece.entry, kv_head, sight.end);
  const int last_of_it = min(all.query(BLOCK_COLUMNS - 1), last);
  rows.low = sight.from(all.query(0)), rows.high = max(sight.stop(last_of_it), rows.low);

  const int first_stage = rows.low / STAGE, stages = (rows.high + STAGE - 1) / STAGE - first_stage;
  const int each = (stages + piece.splits - 1) / piece.splits, begin = first_stage + piece.split * each;
  const int stop = min(begin + each, first_stage + stages);
  const int first_of_it = same(begin), count_of_it = same(max(stop - begin, 0));

  Group of;
  of.group = same(group), of.column = warp % 4 * 16 + (lane >> 2), of.lane = lane;
  u32 left = 0;
  if (warp == 0 && lane == 0) {
#pragma unroll
    for (int i = 0; i < 2; ++i) begin_barrier(at.filled(i), 1), begin_barrier(at.read(i), GROUPS_OF * 4);
    begin_barrier(at.told(), GROUPS_OF * 4), begin_barrier(at.weighed(), GROUPS_OF * 4);
    show_barriers();
  }
  if (group == 0) left = put_queries<1>(of.raise, of.factor, queries + queries_at, columns, at.queries(), warp, lane);
  if (group == 1) put_queries<0>(of.raise, of.factor, queries + queries_at, columns, at.queries(), warp % 4, lane);
  show_puts();
  left = !__all_sync(ALL, left == 0);
  if (lane == 0) left_of[warp] = left;
  __syncthreads();

  if (group == GROUPS_OF) {
    fewer_registers<56>();
    if (warp == GROUPS_OF * 4) {
      ready_map(key_map);
      bring_stages(rows, key_map, key_map, at, begin, stop, lane);
    }
    more_registers<168>(); /* as at the beginning: the group joins as the others do */
  } else {
    more_registers<224>();
    const bool some_left = same(left_of[0] | left_of[1] | left_of[2] | left_of[3]);
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int column = (lane >> 2) + c * 8, query = columns.query(column);
      of.from[c] = sight.from(query), of.stop[c] = sight.stop(query);
      of.queries[c] = columns.real(column) ? queries + queries_at + columns.at(column) * K_DIM : nullptr;
    }
    const int all_from = same(sight.from(last_of_it)), all_stop = same(sight.stop(all.query(0)));
    float s[OWN / 2], most[2];
    bool whole = true;
    if (count_of_it) {
      const int p = first_of_it * STAGE;
      of.begin_scores(s, at, 0, some_left);
      products_made<0>(s);
      whole = p >= all_from && p + STAGE <= all_stop;
      of.find_most(most, s, p + of.group * OWN, whole);
      of.weigh(s, most, told, at, 0);
    }
#pragma unroll 1
    for (int stage = 0; stage + 1 < count_of_it; ++stage) {
      const int p = (first_of_it + stage) * STAGE, next = p + STAGE;
      of.begin_scores(s, at, stage + 1, some_left);
      of.begin_adding(s, memory, at, stage, p, whole);
      products_made<1>(s);
      whole = next >= all_from && next + STAGE <= all_stop;
      of.find_most(most, s, next + of.group * OWN, whole);
      products_made<0>(of.a);
      __syncwarp();
      if (lane == 0) arrive(at.read(stage));
      of.weigh(s, most, told, at, stage + 1);
    }
    if (count_of_it) {
      const int stage = count_of_it - 1;
      of.begin_adding(s, memory, at, stage, (first_of_it + stage) * STAGE, whole);
      products_made<0>(of.a);
    }

    float sums[2];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      of.l[c] += __shfl_xor_sync(ALL, of.l[c], 1);
      of.l[c] += __shfl_xor_sync(ALL, of.l[c], 2);
      sums[c] = of.l[c];
    }
    of.exchange(sums, told, at.told(), count_of_it);
    float *part = parts + COUNTERS + (((i64)piece.slot + piece.split) * BLOCK_COLUMNS + warp % 4 * 16) * PART;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int column = (lane >> 2) + c * 8;
      const bool real = columns.real(column), first = of.group == 0 && (lane & 3) == 0;
      const float l = of.l[c] + sums[c];
      if (piece.splits > 1 && first) part[column * PART] = of.m[c], part[column * PART + 1] = l;
      float *to = piece.splits > 1 ? part + column * PART + 2 : out + out_at + (real ? columns.at(column) * V_DIM : 0);
#pragma unroll
      for (int i = 0; i < HALF / 4; ++i) {
        const int d = of.group * HALF + i / 2 * 8 + (lane & 3) * 2 + i % 2;
        const float a = of.a[i / 2 * 4 + c * 2 + i % 2];
        if (piece.splits > 1) to[d] = a;
        else if (real) to[d] = divided(a, l);
      }
    }
    fewer_registers<168>();
  }
  if (piece.splits > 1) join<BLOCK_COLUMNS>(&before_me, parts, piece.slot, piece.splits, all, out + out_at, warp, lane);
}
