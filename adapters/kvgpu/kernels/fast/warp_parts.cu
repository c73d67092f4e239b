/* The queries and the sums of a warp in `attend_warps.cu`, `prefill_warps.cu` and `wide_warps.cu`; behind warp_rows.cu.
 *
 * Widths are worked on in steps of 16. A warp takes all of them; in `wide_warps.cu` only its share: step number i of warp
 * `share` is step share + i * SHARES of the row. */
#ifdef WIDE
#define SHARES WARPS
#else
#define SHARES 1
#endif
#define STEPS(dim) ((dim) / 16 / SHARES)
#define STEP(i) (share + (i)*SHARES)
/* The place of that step; `at` is that of step 0. With shares, chunks change places within four pairs. */
#define STEP_AT(dim, at, i) further<dim>((at) ^ share * 32, (i)*SHARES)
#if defined(ROW_F16)
#define PARTS 2
#define REST 0.00048828125f /* 2^-11: the factor of the second part */
#define PAIR(a, b) f16_pair(a, b)
#define LOW(x) f16_low(x)
#define HIGH(x) f16_high(x)
#define MULTIPLY mma_f16
#define EXPONENT 0x7c007c00u
#else
#define PARTS 3
#define REST 1.0f
#define PAIR(a, b) bf16_pair(a, b)
#define LOW(x) bf16_low(x)
#define HIGH(x) bf16_high(x)
#define MULTIPLY mma_bf16
#define EXPONENT 0x7f807f80u
#endif

/* Parts of rows and of weights. Those of f32 are cut off, not rounded, so that none is larger than the whole; products of
 * parts are taken if the numbers of both add up to less than 3. */
#ifdef ROW_F32
#define ROW_PARTS 3
#define TAKEN(part, other) ((part) + (other) < 3)
#else
#define ROW_PARTS 1
#define TAKEN(part, other) true
#endif

/* Two numbers in parts, each pair of parts in one word. */
DEVICE void cut(u32 (&parts)[ROW_PARTS], float a, float b) {
#ifdef ROW_F32
#pragma unroll
  for (int part = 0; part < ROW_PARTS; ++part) {
    const u32 x = __float_as_uint(a) & 0xffff0000u, y = __float_as_uint(b) & 0xffff0000u;
    parts[part] = x >> 16 | y;
    a -= __uint_as_float(x), b -= __uint_as_float(y);
  }
#else
  parts[0] = PAIR(a, b);
#endif
}

/* Step number i of a warp, of the keys of a unit, as a first factor [16 positions, 16 elements]. */
template <int dim> DEVICE void keys_of(u32 (&keys)[ROW_PARTS][4], u32 unit, int i, int share, int lane) {
#ifdef ROW_F32
#pragma unroll
  for (int m = 0; m < 4; ++m) {
    float x[2];
    u32 parts[ROW_PARTS];
    const int row = (lane >> 2) + m % 2 * 8, chunk = STEP(i) * 4 + m / 2 * 2 + (lane >> 1 & 1);
    read_numbers(x, unit + place<dim>(row, chunk) + (lane & 1) * 8);
    cut(parts, x[0], x[1]);
#pragma unroll
    for (int part = 0; part < ROW_PARTS; ++part) keys[part][m] = parts[part];
  }
#else
  read_matrices(keys[0], STEP_AT(dim, unit + place<dim>(lane & 15, lane >> 4), i));
#endif
}

/* The same of values, turned: [16 elements, 16 positions]. */
template <int dim> DEVICE void values_of(u32 (&values)[ROW_PARTS][4], u32 unit, int i, int share, int lane) {
#ifdef ROW_F32
#pragma unroll
  for (int m = 0; m < 4; ++m) {
    u32 parts[ROW_PARTS];
    const int d = STEP(i) * 16 + (lane >> 2) + m % 2 * 8, row = (lane & 3) * 2 + m / 2 * 8;
    const float near = read_number(unit + place<dim>(row, d / 4) + d % 4 * 4);
    cut(parts, near, read_number(unit + place<dim>(row + 1, d / 4) + d % 4 * 4));
#pragma unroll
    for (int part = 0; part < ROW_PARTS; ++part) values[part][m] = parts[part];
  }
#else
  read_turned(values[0], STEP_AT(dim, unit + place<dim>((lane & 7) + (lane >> 4) * 8, lane >> 3 & 1), i));
#endif
}

#ifdef PREFILL
#define KEPT 1
#define OTHER_BYTES (EIGHTS * (K_DIM / 16) * (PARTS - 1) * LANES * 8) /* of the other parts, for each warp */
#else
#define KEPT PARTS
#endif

/* The queries of the columns in parts, as second factors: lane l holds those of column l / 4 of each eight. KEPT parts
 * are in registers. The others, if any, are in shared memory, where each lane reads only its own. */
struct Queries {
  int share = 0;
  u32 parts[EIGHTS][STEPS(K_DIM)][KEPT][2];
  float factor[EIGHTS][2]; /* of the scores of columns 2 (l % 4) and the one behind */
  u32 *others = nullptr;   /* [EIGHTS][K_DIM / 16][PARTS - KEPT][lanes][2], from this lane's on */
  u32 left = 0;            /* not 0 if a part behind the first is not 0 */

  DEVICE_METHOD u32 *other(int eight, int step, int part) const {
    return others + ((eight * (K_DIM / 16) + step) * (PARTS - KEPT) + part - KEPT) * LANES * 2;
  }
  DEVICE_METHOD void take(const float *queries, const Columns &columns, int lane) {
#pragma unroll
    for (int e = 0; e < EIGHTS; ++e) {
      const int column = e * 8 + (lane >> 2);
      take(e, columns.real(column) ? queries + columns.at(column) * K_DIM : nullptr, lane);
    }
  }
  DEVICE_METHOD void take(int eight, const float *q, int lane) {
    const int tig = lane & 3;
    float up = 1.0f;
#ifdef ROW_F16
    float most = 0.0f;
    for (int d = 0; q && d < K_DIM / 8; ++d)
      most = fmaxf(most, fmaxf(fabsf(q[d * 8 + tig * 2]), fabsf(q[d * 8 + tig * 2 + 1])));
    most = fmaxf(most, __shfl_xor_sync(ALL, most, 1));
    most = fmaxf(most, __shfl_xor_sync(ALL, most, 2));
    const int exponent = min(max((int)(__float_as_uint(most) >> 23), 14), 254); /* biased by 127 */
    up = __uint_as_float((u32)(267 - exponent) << 23);                         /* 2^(13 - exponent) */
    const float down = __uint_as_float((u32)max(exponent - 13, 1) << 23) * SCALE;
#else
    const float down = SCALE;
#endif
#pragma unroll
    for (int s = 0; s < STEPS(K_DIM); ++s)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int d = STEP(s) * 16 + half * 8 + tig * 2;
        float a = q ? q[d] * up : 0.0f, b = q ? q[d + 1] * up : 0.0f;
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
          const u32 x = PAIR(a, b);
          if (part < KEPT) parts[eight][s][part][half] = x;
          else other(eight, s, part)[half] = x;
          if (part) left |= x & 0x7fff7fffu;
          a = (a - LOW(x)) * (1.0f / REST), b = (b - HIGH(x)) * (1.0f / REST);
        }
      }
    factor[eight][0] = PARTS == 3 ? down : __shfl_sync(ALL, down, tig * 8);
    factor[eight][1] = PARTS == 3 ? down : __shfl_sync(ALL, down, tig * 8 + 4);
  }
};

/* The sums of a warp so far. Lane l holds columns 2 (l % 4) and the one behind of each eight. */
struct Sums {
  int share = 0;
  float m[EIGHTS][2], l[EIGHTS][2], a[EIGHTS][STEPS(V_DIM)][4];

  DEVICE_METHOD void begin() {
#pragma unroll
    for (int e = 0; e < EIGHTS; ++e) {
#pragma unroll
      for (int c = 0; c < 2; ++c) m[e][c] = NOTHING, l[e][c] = 0.0f;
#pragma unroll
      for (int j = 0; j < STEPS(V_DIM); ++j) a[e][j][0] = a[e][j][1] = a[e][j][2] = a[e][j][3] = 0.0f;
    }
  }
  /* Adds up the weights of a column, of which each lane has a share. */
  DEVICE_METHOD float weight(int e, int c) const {
    float sum = l[e][c];
#pragma unroll
    for (int flip = 4; flip < LANES; flip *= 2) sum += __shfl_xor_sync(ALL, sum, flip);
    return sum;
  }
  /* Turns the scores of so many tiles into weights below the new maximum, and scales the sums down to it. */
  template <int tiles> DEVICE_METHOD void weigh(float (&s)[tiles][EIGHTS][4],
                                                 u32 (&weights)[tiles][EIGHTS][ROW_PARTS][2]) {
    float less[EIGHTS][2];
    bool same = true;
#pragma unroll
    for (int e = 0; e < EIGHTS; ++e) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float most = NOTHING;
#pragma unroll
        for (int t = 0; t < tiles; ++t) most = fmaxf(most, fmaxf(s[t][e][c], s[t][e][c + 2]));
#pragma unroll
        for (int flip = 4; flip < LANES; flip *= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, flip));
        most = fmaxf(most, m[e][c]);
        const float below = most == NOTHING ? 0.0f : most;
        less[e][c] = power_of_2(m[e][c] - below);
        same = same && less[e][c] == 1.0f;
        m[e][c] = most, l[e][c] *= less[e][c];
#pragma unroll
        for (int t = 0; t < tiles; ++t)
          s[t][e][c] = power_of_2(s[t][e][c] - below), s[t][e][c + 2] = power_of_2(s[t][e][c + 2] - below);
      }
#pragma unroll
      for (int t = 0; t < tiles; ++t) {
        u32 near[ROW_PARTS], far[ROW_PARTS];
        cut(near, s[t][e][0], s[t][e][1]), cut(far, s[t][e][2], s[t][e][3]);
#pragma unroll
        for (int part = 0; part < ROW_PARTS; ++part) {
          l[e][0] += LOW(near[part]) + LOW(far[part]), l[e][1] += HIGH(near[part]) + HIGH(far[part]);
          weights[t][e][part][0] = turned(near[part]), weights[t][e][part][1] = turned(far[part]);
        }
      }
    }
    if (__all_sync(ALL, same)) return;
#pragma unroll
    for (int e = 0; e < EIGHTS; ++e)
#pragma unroll
      for (int j = 0; j < STEPS(V_DIM); ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) a[e][j][i] *= less[e][i & 1];
  }
  /* Adds values, weighted. */
  DEVICE_METHOD void add(const u32 (&weights)[EIGHTS][ROW_PARTS][2], u32 unit, int lane) {
#pragma unroll
    for (int j = 0; j < STEPS(V_DIM); ++j) {
      u32 v[ROW_PARTS][4];
      values_of<V_DIM>(v, unit, j, share, lane);
#pragma unroll
      for (int e = 0; e < EIGHTS; ++e) add(a[e][j], v, weights[e]);
    }
  }
  DEVICE_METHOD static void add(float (&to)[4], const u32 (&v)[ROW_PARTS][4], const u32 (&weights)[ROW_PARTS][2]) {
#pragma unroll
    for (int i = 0; i < ROW_PARTS * ROW_PARTS; ++i)
      if (TAKEN(i / ROW_PARTS, i % ROW_PARTS))
        MULTIPLY(to, v[i / ROW_PARTS], weights[i % ROW_PARTS][0], weights[i % ROW_PARTS][1]);
  }
  /* The same of the tile from p on, which all see whole or not. What a query does not see it may not even multiply by
   * 0, because that would be NaN of what is infinite: if something is, each query adds on its own what it sees. */
  DEVICE_METHOD void add_seen(const u32 (&weights)[EIGHTS][ROW_PARTS][2], u32 unit, int lane, bool whole, int p,
                              const Columns &columns, const Sight &sight) {
    if (whole || finite(unit, lane)) add(weights, unit, lane);
    else
      for (int query = columns.query(0); query <= columns.query(COLUMNS - 1) && query < columns.until; ++query)
        add_one(weights, unit, lane, columns, query, sight.bits(query, p));
  }
  /* Whether all values of a unit, in its share of them, are finite. */
  DEVICE_METHOD bool finite(u32 unit, int lane) const {
    u32 far = 0; /* a bit is set behind the exponent where all its bits are; parts of f32 have bf16's */
#pragma unroll 2
    for (int j = 0; j < STEPS(V_DIM); ++j) {
      u32 v[ROW_PARTS][4];
      keys_of<V_DIM>(v, unit, j, share, lane);
#pragma unroll
      for (int i = 0; i < 4; ++i) far |= (v[0][i] & EXPONENT) + (EXPONENT & ~(EXPONENT << 1));
    }
    return __all_sync(ALL, (far & 0x80008000u) == 0);
  }
  /* Adds values to the columns of one query, which sees the positions in `wanted`, a bit for each of the tile. */
  DEVICE_METHOD void add_one(const u32 (&weights)[EIGHTS][ROW_PARTS][2], u32 unit, int lane, const Columns &columns,
                             int query, u32 wanted) {
    const int tig = lane & 3;
    const u32 near = (wanted >> tig * 2 & 1) * 0xffffu | (wanted >> (tig * 2 + 1) & 1) * 0xffff0000u;
    const u32 far = (wanted >> (tig * 2 + 8) & 1) * 0xffffu | (wanted >> (tig * 2 + 9) & 1) * 0xffff0000u;
#pragma unroll
    for (int j = 0; j < STEPS(V_DIM); ++j) {
      u32 values[ROW_PARTS][4];
      values_of<V_DIM>(values, unit, j, share, lane);
#pragma unroll
      for (int part = 0; part < ROW_PARTS; ++part) {
        u32 (&v)[4] = values[part];
        v[0] &= near, v[1] &= near, v[2] &= far, v[3] &= far;
      }
#pragma unroll
      for (int e = 0; e < EIGHTS; ++e) {
        float both[4] = {a[e][j][0], a[e][j][1], a[e][j][2], a[e][j][3]};
        add(both, values, weights[e]);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (columns.query(e * 8 + tig * 2 + i % 2) == query) a[e][j][i] = both[i];
      }
    }
  }
};

/* Scores of so many tiles of keys, a unit each, of the first `taken` parts of each query. With shares they are to be
 * added up over the warps. */
template <int taken, int tiles>
DEVICE void score(float (&s)[tiles][EIGHTS][4], const Queries &of, u32 unit, int lane) {
  const int share = of.share;
  float rest[tiles][EIGHTS][4];
#pragma unroll
  for (int i = 0; i < tiles * EIGHTS * 4; ++i)
    s[i / (EIGHTS * 4)][i / 4 % EIGHTS][i % 4] = rest[i / (EIGHTS * 4)][i / 4 % EIGHTS][i % 4] = 0.0f;
#pragma unroll
  for (int k = 0; k < STEPS(K_DIM); ++k) {
    u32 keys[tiles][ROW_PARTS][4];
#pragma unroll
    for (int t = 0; t < tiles; ++t) keys_of<K_DIM>(keys[t], unit + t * UNIT_BYTES, k, share, lane);
#pragma unroll
    for (int e = 0; e < EIGHTS; ++e)
#pragma unroll
      for (int part = 0; part < taken; ++part) {
        const u32 *q = part < KEPT ? of.parts[e][k][part] : of.other(e, k, part);
        const u32 near = q[0], far = q[1];
#pragma unroll
        for (int i = 0; i < tiles * ROW_PARTS; ++i)
          if (TAKEN(part, i % ROW_PARTS))
            MULTIPLY(part && PARTS == 2 ? rest[i / ROW_PARTS][e] : s[i / ROW_PARTS][e],
                     keys[i / ROW_PARTS][i % ROW_PARTS], near, far);
      }
  }
#pragma unroll
  for (int t = 0; t < tiles; ++t)
#pragma unroll
    for (int i = 0; i < EIGHTS * 4; ++i) {
      float &found = s[t][i / 4][i % 4];
      if (PARTS == 2) found = __fmaf_rn(rest[t][i / 4][i % 4], REST, found);
      found *= of.factor[i / 4][i % 2];
    }
}
