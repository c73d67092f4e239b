/* What a warp has and does in `attend_warps.cu`, behind prelude_cuda.h and warp_cuda.h; see there what is defined. */
#define TILE 16
#define WARPS 4
#define LANES 32
#define COLUMNS (PER_PASS * QUERIES)
#define EIGHTS ((COLUMNS + 7) / 8)
#define WIDER (K_DIM > V_DIM ? K_DIM : V_DIM)
#define UNIT_BYTES (TILE * WIDER * 2)
#define PART (V_DIM + 2)
#define ALL 0xffffffffu
#define NOTHING __uint_as_float(0xff800000u)

#if defined(ROW_F16)
#define PARTS 2
#define REST 0.00048828125f /* 2^-11: what the second part is worth */
#define PAIR(a, b) f16_pair(a, b)
#define LOW(x) f16_low(x)
#define HIGH(x) f16_high(x)
#define MULTIPLY mma_f16
#else
#define PARTS 3
#define REST 1.0f
#define PAIR(a, b) bf16_pair(a, b)
#define LOW(x) bf16_low(x)
#define HIGH(x) bf16_high(x)
#define MULTIPLY mma_bf16
#endif

/* The place of a chunk of 16 bytes in a unit: chunks of a row change places, so that the eight rows of a matrix, which
 * are read at once, lie in different banks. */
template <int dim> DEVICE u32 place(int row, int chunk) {
  return row * dim * 2 + (chunk ^ (dim % 64 == 0 ? row & 7 : row >> 1 & 3)) * 16;
}

/* Where the rows of a block lie, and which positions it reads: `low` to `high` - 1. */
struct Rows {
  const char *keys, *values;
  const int *table;
  i64 apart, base, behind;
  int slots, turn, low, high;

  /* The row of a position, counted from where keys (values) begin. */
  DEVICE_METHOD i64 row(int p) const {
#if defined(PAGES) || defined(ROWS)
    return table[(u32)p / (u32)slots] * apart + base + (u32)p % (u32)slots;
#else
    return (p < turn ? base : behind) + p;
#endif
  }
  /* Starts the copies of one tile of keys or values; what the block does not see becomes zeros. */
  template <int dim> DEVICE_METHOD void fetch(const char *rows, int p, int lane, u32 to) const {
    constexpr int chunks = dim / 8;
#ifdef PAGES
    const i64 begin = row(p);
#endif
#pragma unroll(QUERIES > 1 ? 2 : dim > 128 || EIGHTS > 1 ? 4 : TILE)
    for (int j = 0; j < TILE * chunks / LANES; ++j) {
      const int r = (lane + j * LANES) / chunks, chunk = (lane + j * LANES) % chunks;
      const bool seen = p + r >= low && p + r < high;
#ifdef PAGES
      const i64 at = seen ? begin + r : 0;
#else
      const i64 at = seen ? row(p + r) : 0;
#endif
      copy_16(to + place<dim>(r, chunk), rows + at * (dim * 2) + chunk * 16, seen);
    }
  }
};

/* The queries of the columns in parts, as second factors: lane l holds those of column l / 4 of each eight. */
struct Queries {
  u32 parts[EIGHTS][K_DIM / 16][PARTS][2];
  float factor[EIGHTS][2]; /* by which scores are multiplied, of columns 2 (l % 4) and the one behind */

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
    for (int s = 0; s < K_DIM / 16; ++s)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int d = s * 16 + half * 8 + tig * 2;
        float a = q ? q[d] * up : 0.0f, b = q ? q[d + 1] * up : 0.0f;
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
          const u32 x = PAIR(a, b);
          parts[eight][s][part][half] = x;
          a = (a - LOW(x)) * (1.0f / REST), b = (b - HIGH(x)) * (1.0f / REST);
        }
      }
    factor[eight][0] = __shfl_sync(ALL, down, tig * 8);
    factor[eight][1] = __shfl_sync(ALL, down, tig * 8 + 4);
  }
};

/* What a warp has summed up so far. Lane l holds columns 2 (l % 4) and the one behind of each eight. */
struct Sums {
  float m[EIGHTS][2], l[EIGHTS][2], a[EIGHTS][V_DIM / 16][4];

  /* Scores into weights below the new maximum; what was summed becomes smaller by as much. */
  DEVICE_METHOD void weigh(float (&s)[EIGHTS][4], u32 (&weights)[EIGHTS][2]) {
    float less[EIGHTS][2];
    bool same = true;
#pragma unroll
    for (int e = 0; e < EIGHTS; ++e) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float most = fmaxf(s[e][c], s[e][c + 2]);
#pragma unroll
        for (int flip = 4; flip < LANES; flip *= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, flip));
        most = fmaxf(most, m[e][c]);
        const float below = most == NOTHING ? 0.0f : most;
        less[e][c] = power_of_2(m[e][c] - below);
        same = same && less[e][c] == 1.0f;
        m[e][c] = most;
        s[e][c] = power_of_2(s[e][c] - below), s[e][c + 2] = power_of_2(s[e][c + 2] - below);
      }
      const u32 near = PAIR(s[e][0], s[e][1]), far = PAIR(s[e][2], s[e][3]);
      l[e][0] = l[e][0] * less[e][0] + (LOW(near) + LOW(far));
      l[e][1] = l[e][1] * less[e][1] + (HIGH(near) + HIGH(far));
      weights[e][0] = turned(near), weights[e][1] = turned(far);
    }
    if (__all_sync(ALL, same)) return;
#pragma unroll
    for (int e = 0; e < EIGHTS; ++e)
#pragma unroll
      for (int j = 0; j < V_DIM / 16; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) a[e][j][i] *= less[e][i & 1];
  }
  /* Adds values, weighted. */
  DEVICE_METHOD void add(const u32 (&weights)[EIGHTS][2], u32 unit, int lane) {
#pragma unroll
    for (int j = 0; j < V_DIM / 16; ++j) {
      u32 v[4];
      read_turned(v, unit + place<V_DIM>((lane & 7) + (lane >> 4) * 8, 2 * j + (lane >> 3 & 1)));
#pragma unroll
      for (int e = 0; e < EIGHTS; ++e) MULTIPLY(a[e][j], v, weights[e][0], weights[e][1]);
    }
  }
  /* The same for the columns of one query alone, which sees the positions in `wanted`, a bit for each of the tile. What
   * others see it may not even multiply by 0, because that would be NaN of what is infinite. */
  DEVICE_METHOD void add_one(const u32 (&weights)[EIGHTS][2], u32 unit, int lane, int query, u32 wanted) {
    const int tig = lane & 3;
    const u32 near = (wanted >> tig * 2 & 1) * 0xffffu | (wanted >> (tig * 2 + 1) & 1) * 0xffff0000u;
    const u32 far = (wanted >> (tig * 2 + 8) & 1) * 0xffffu | (wanted >> (tig * 2 + 9) & 1) * 0xffff0000u;
#pragma unroll
    for (int j = 0; j < V_DIM / 16; ++j) {
      u32 v[4];
      read_turned(v, unit + place<V_DIM>((lane & 7) + (lane >> 4) * 8, 2 * j + (lane >> 3 & 1)));
      v[0] &= near, v[1] &= near, v[2] &= far, v[3] &= far;
#pragma unroll
      for (int e = 0; e < EIGHTS; ++e) {
        float both[4] = {a[e][j][0], a[e][j][1], a[e][j][2], a[e][j][3]};
        MULTIPLY(both, v, weights[e][0], weights[e][1]);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if ((e * 8 + tig * 2 + i % 2) / PER_PASS == query) a[e][j][i] = both[i];
      }
    }
  }
};

/* Scores of a tile of keys. */
DEVICE void score(float (&s)[EIGHTS][4], const Queries &of, u32 unit, int lane) {
  float rest[EIGHTS][4];
#pragma unroll
  for (int i = 0; i < EIGHTS * 4; ++i) s[i / 4][i % 4] = rest[i / 4][i % 4] = 0.0f;
#pragma unroll
  for (int k = 0; k < K_DIM / 16; ++k) {
    u32 keys[4];
    read_matrices(keys, unit + place<K_DIM>(lane & 15, 2 * k + (lane >> 4)));
#pragma unroll
    for (int e = 0; e < EIGHTS; ++e)
#pragma unroll
      for (int part = 0; part < PARTS; ++part)
        MULTIPLY(part ? rest[e] : s[e], keys, of.parts[e][k][part][0], of.parts[e][k][part][1]);
  }
#pragma unroll
  for (int i = 0; i < EIGHTS * 4; ++i)
    s[i / 4][i % 4] = __fmaf_rn(rest[i / 4][i % 4], REST, s[i / 4][i % 4]) * of.factor[i / 4][i % 2];
}

/* The positions that each of the block's queries sees, of which the first stands at position `own`. */
struct Sight {
  int own, end, first, window, causal;

  DEVICE_METHOD int from(int query) const { return window ? max(own + query + 1 - window, first) : first; }
  DEVICE_METHOD int stop(int query) const { return causal ? own + query + 1 : end; }

  /* Hides what the columns of a lane do not see from the scores of a tile. */
  DEVICE_METHOD void hide(float (&s)[EIGHTS][4], int p, int lane) const {
#pragma unroll
    for (int i = 0; i < EIGHTS * 4; ++i) {
      const int query = (i / 4 * 8 + (lane & 3) * 2 + i % 2) / PER_PASS, at = p + i % 4 / 2 * 8 + (lane >> 2);
      if (at < from(query) || at >= stop(query)) s[i / 4][i % 4] = NOTHING;
    }
  }
};

/* The bits of the positions low to high - 1 in the tile from p on. */
DEVICE u32 bits_of(int p, int low, int high) {
  const int from = min(max(low - p, 0), TILE), until = max(min(high - p, TILE), from);
  return (1u << until) - (1u << from);
}
