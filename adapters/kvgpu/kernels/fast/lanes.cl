/* Vectors of LANES floats on a CPU, for the texts of attention over rows. */
#pragma OPENCL FP_CONTRACT ON
#define INLINE static inline __attribute__((always_inline))
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
