/* What `prefill_hopper.cu` and `latent_hopper.cu` share, which explain the macros: how rows and queries get into shared
 * memory. Behind hopper_cuda.h.
 *
 * A tile of 16 positions that lie side by side, and are all seen, comes by boxes of 64 elements of each row. Lanes copy the
 * other tiles themselves: those at the ends of what is seen, of which the rest are zeros, and those where a ring turns.
 */
#define QUERY_SLAB (GROUP_ROWS * LINE)
#define SLAB (STAGE * LINE)
#define TILES (STAGE / TILE)
#define BOX_BYTES (TILE * LINE)
#ifdef LATENT /* a value is the beginning of its key, and does not come by itself */
#define VALUES_COME false
#else
#define VALUES_COME true
#endif
#ifdef ROW_F16
#define PRODUCT_OF(name) name##_f16
#else
#define PRODUCT_OF(name) name##_bf16
#endif

/* The same for all lanes of a warp, and known to the compiler as that: products may stand behind branches on it. */
DEVICE int same(int x) { return __shfl_sync(ALL, x, 0); }

/* Whether all of a tile is seen and lies side by side. */
DEVICE bool in_boxes(const Rows &rows, int p) {
  if (p < rows.low || p + TILE > rows.high) return false;
#if defined(PAGES)
  return true;
#elif defined(ROWS)
  return false;
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

/* What the warp that brings rows does. `at` says where the keys and the values of a stage are, and its barriers. */
template <class Places>
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
        if (VALUES_COME) bring_rows<V_DIM>(rows, rows.values, p, tile, lane, at.values(stage));
      }
    }
    show_puts();
    __syncwarp();
    if (lane == 0) arrive_before(at.filled(stage), boxed * (K_DIM + VALUES_COME * V_DIM) / 64 * BOX_BYTES);
    __syncwarp();
    bring<K_DIM>(rows, keys, p, lane, at.keys(stage), at.filled(stage));
    if (VALUES_COME) bring<V_DIM>(rows, values, p, lane, at.values(stage), at.filled(stage));
  }
}

/* The queries of the 16 columns of a warp into shared memory, in parts, of which `kept` are put there. Lane l is given the
 * factors of columns l / 4 and l / 4 + 8: of their queries, and of their scores. Gives what is not 0 if a part behind the
 * first is not. */
template <int kept>
DEVICE u32 put_queries(float (&raise)[2], float (&factor)[2], const float *queries, const Columns &columns, u32 to,
                       int warp, int lane) {
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
#pragma unroll
    for (int c = 0; c < 2; ++c) /* by no index that is known late: that would put all of a group's numbers into memory */
      if (column == (lane >> 2) + c * 8) raise[c] = up, factor[c] = down;
#pragma unroll
    for (int d = 0; d < K_DIM; d += 2 * LANES) {
      const int at = d + lane * 2;
      float a = q ? q[at] * up : 0.0f, b = q ? q[at + 1] * up : 0.0f;
#pragma unroll
      for (int part = 0; part < PARTS; ++part) {
        const u32 x = PAIR(a, b), row = to + part * (K_DIM / 64) * QUERY_SLAB;
        if (part < kept) put(row + chunk_at<GROUP_ROWS>(warp * 16 + column, at / 8) + at % 8 * 2, x);
        if (part) left |= x & 0x7fff7fffu;
        a = (a - LOW(x)) * (1.0f / REST), b = (b - HIGH(x)) * (1.0f / REST);
      }
    }
  }
  return left;
}

/* Whether all numbers in so many bytes are finite; each warp looks at all of them. */
DEVICE bool all_finite(const unsigned char *numbers, int bytes, int lane) {
  u32 far = 0;
#pragma unroll 4
  for (int i = lane; i < bytes / 4; i += LANES)
    far |= (((const u32 *)numbers)[i] & EXPONENT) + (EXPONENT & ~(EXPONENT << 1));
  return __all_sync(ALL, (far & 0x80008000u) == 0);
}
