/* Vectors of LANES floats on a CPU, for the texts of attention over rows. */
#pragma OPENCL FP_CONTRACT ON
#define JOINED(a, b) a##b
#define TYPE(type, n) JOINED(type, n)
#define FLOATS TYPE(float, LANES)
#define AS_FLOATS TYPE(as_float, LANES)
#define AS_INTS TYPE(as_int, LANES)

/* Vectors that begin at any element. vload, vstore, shuffle and fmax are not used: PoCL 3.0 calls them as functions. */
typedef TYPE(float, LANES) __attribute__((aligned(4))) floats_t;
typedef TYPE(ushort, LANES) __attribute__((aligned(2))) ushorts_t;
#define LOADED(j, x) (((const floats_t *)(x))[j])
#define STORE(x, j, to) (((floats_t *)(to))[j] = (x))
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define LINES(dim) (((dim) + LANES - 1) / LANES)
#define BLOCK 128
#define FLOATS_OF(x) __builtin_convertvector(x, FLOATS)

/* Floats of the bits of f16, and floats rounded to f16. */
#if defined(POCL_DEVICE_ADDRESS_BITS) && defined(__F16C__)
typedef __fp16 __attribute__((ext_vector_type(LANES))) halves_t;
#define OF_HALVES(bits) FLOATS_OF(__builtin_astype(bits, halves_t))
#define AS_HALVES(x) FLOATS_OF(__builtin_convertvector(x, halves_t))
INLINE float of_half(const ushort bits) { return (float)__builtin_astype(bits, __fp16); }
#else /* a simulator knows no __fp16 */
INLINE FLOATS OF_HALVES(const TYPE(ushort, LANES) bits) {
  const TYPE(ushort, LANES) kept = bits;
  return TYPE(vload_half, LANES)(0, (const half *)&kept);
}
INLINE FLOATS AS_HALVES(const FLOATS x) {
  TYPE(ushort, LANES) bits;
  TYPE(TYPE(vstore_half, LANES), _rte)(x, 0, (half *)&bits);
  return OF_HALVES(bits);
}
INLINE float of_half(const ushort bits) {
  const ushort kept = bits;
  return vload_half(0, (const half *)&kept);
}
#endif
