/* Rows in a form, decoded in registers. They are read as ROW_F32, ROW_F16 or ROW_BF16. For keys (and values alike):
 *
 *   K_WORTH                     what a code of 8 bits is worth: of_int8, of_e4m3 or of_e5m2
 *   K_ROW, K_CODES              bytes of a row, and of its codes, behind which its scales stand
 *   K_GROUP                     elements that share a scale
 *   K_UNIT                      the factor of that: 256.0f for of_e4m3, else 1.0f; no scale times it overflows, as the
 *                               text of a given one has 9 digits, and one of a row times 448 is finite
 *   K_HALF                      1 if scales are f16, 0 if they are f32
 *   K_GIVEN, K_MANY             the scales that are given, and how many; 0 if each row has its own
 *   K_EXACT                     1 if no product of a code and a scale has to be rounded
 *
 * An element is its code times its scale, in f32, rounded to the dtype as which the rows are read: as forms.inc does.
 */
typedef uchar row_t;
typedef TYPE(uchar, LANES) __attribute__((aligned(1))) codes_t;
typedef float __attribute__((aligned(1))) loose_t;
typedef ushort __attribute__((aligned(1))) loose_half_t;

#if defined(ROW_F32)
#define READ(x) (x)
#elif defined(ROW_F16)
#define READ(x) AS_HALVES(x)
#else
#define READ(x) as_bf16(x)
INLINE FLOATS as_bf16(const FLOATS x) {
  const TYPE(uint, LANES) bits = TYPE(as_uint, LANES)(x);
  const FLOATS found = AS_FLOATS((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
  return x != x ? x : found;
}
#endif

/* What codes are worth, in units of K_UNIT. The f16 whose exponent and digits are those of an e4m3 is 256 times smaller;
 * its NaN is none. */
INLINE FLOATS of_int8(const codes_t x) { return FLOATS_OF(__builtin_astype(x, TYPE(char, LANES))); }
INLINE FLOATS of_e5m2(const codes_t x) { return OF_HALVES(__builtin_convertvector(x, TYPE(ushort, LANES)) << (ushort)8); }
INLINE FLOATS of_e4m3(const codes_t x) {
  const TYPE(short, LANES) moved = TYPE(as_short, LANES)(__builtin_convertvector(x, TYPE(ushort, LANES)) << (ushort)8) >> (short)1;
  const TYPE(ushort, LANES) bits = TYPE(as_ushort, LANES)(moved) & (ushort)0xbfff;
  const TYPE(ushort, LANES) lost = TYPE(as_ushort, LANES)((bits & (ushort)0x3f80) == (ushort)0x3f80);
  return OF_HALVES(bits | lost);
}

#define SCALE_AT(scales, g, half) ((half) ? of_half(((GLOBAL const loose_half_t *)(scales))[g]) : ((GLOBAL const loose_t *)(scales))[g])

/* LANES elements of a row from LANES * j on; zeros beyond its end, where nothing is read. */
#define LINE(name, WORTH, DIM, CODES, SHARED_BY, HALF, UNIT, MANY, EXACT)                                  \
  INLINE FLOATS name(GLOBAL const row_t *row, const int j, const float given) {                            \
    if ((MANY || SHARED_BY % LANES == 0) && (DIM % LANES == 0 || j < DIM / LANES)) {                        \
      const float scale = MANY ? given : SCALE_AT(row + CODES, j * LANES / SHARED_BY, HALF) * UNIT;        \
      const FLOATS x = WORTH(((GLOBAL const codes_t *)row)[j]) * scale;                                    \
      return EXACT ? x : READ(x);                                                                          \
    }                                                                                                      \
    uchar code[LANES];                                                                                     \
    float scale[LANES];                                                                                    \
    for (int i = 0; i < LANES; ++i) {                                                                      \
      const int d = j * LANES + i;                                                                         \
      code[i] = d < DIM ? row[d] : 0;                                                                      \
      scale[i] = d >= DIM ? 0.0f : MANY ? given : SCALE_AT(row + CODES, d / SHARED_BY, HALF) * UNIT;       \
    }                                                                                                      \
    return READ(WORTH(*(const codes_t *)code) * LOADED(0, scale));                                         \
  }

LINE(key_line, K_WORTH, K_DIM, K_CODES, K_GROUP, K_HALF, K_UNIT, K_MANY, K_EXACT)
LINE(value_line, V_WORTH, V_DIM, V_CODES, V_GROUP, V_HALF, V_UNIT, V_MANY, V_EXACT)
#define KEY(of, row, j) key_line(row, j, (of)->k_scale)
#define VALUE(of, row, j) value_line(row, j, (of)->v_scale)
#define SCALES float k_scale, v_scale;
#define SCALED(of, head)                                                                  \
  {                                                                                       \
    const float k_given[] = {K_GIVEN}, v_given[] = {V_GIVEN};                             \
    (of).k_scale = k_given[(head) % (K_MANY + !K_MANY)] * K_UNIT;                         \
    (of).v_scale = v_given[(head) % (V_MANY + !V_MANY)] * V_UNIT;                         \
  }
