/* Rows in f32, f16 or bf16, read as floats: ROW_F32, ROW_F16 or ROW_BF16. K_ROW and V_ROW are the elements of a row. */
#define K_ROW K_DIM
#define V_ROW V_DIM
#define KEY(of, row, j) line(row, j, K_DIM)
#define VALUE(of, row, j) line(row, j, V_DIM)
#define SCALED(of, head)
#define SCALES
#if defined(ROW_F32)
typedef float row_t;
#define LOAD(j, row) (((GLOBAL const floats_t *)(row))[j])
#define LOAD1(d, row) ((row)[d])
#elif defined(ROW_F16)
typedef ushort row_t;
#define LOAD(j, row) OF_HALVES(((GLOBAL const ushorts_t *)(row))[j])
#define LOAD1(d, row) of_half((row)[d])
#else
typedef ushort row_t;
#define LOAD(j, row) AS_FLOATS(__builtin_convertvector(((GLOBAL const ushorts_t *)(row))[j], TYPE(uint, LANES)) << 16)
#define LOAD1(d, row) as_float((uint)(row)[d] << 16)
#endif

/* LANES elements of a row, from LANES * j on; zeros beyond its end, where nothing is read. */
INLINE FLOATS line(GLOBAL const row_t *row, const int j, const int dim) {
  if (dim % LANES == 0 || j < dim / LANES) return LOAD(j, row);
  float x[LANES];
  for (int d = 0; d < LANES; ++d) x[d] = d < dim % LANES ? LOAD1(dim / LANES * LANES + d, row) : 0.0f;
  return LOADED(0, x);
}
