/* What only sm_90a has, in PTX: barriers in shared memory, copies of boxes of a matrix (TMA), and products of four warps,
 * a group (wgmma). For the CPU `shim/hopper.h` defines them. Nothing here ran on a GPU yet.
 *
 * Products and copies of boxes see memory by a proxy of their own: what a lane writes itself it shows to them. */
typedef unsigned long long matrix;
#ifndef SHIM_WARP
#undef DYNAMIC_SHARED /* swizzles of 128 bytes begin anew every 1024 */
#define DYNAMIC_SHARED(name) extern __shared__ __align__(1024) unsigned char name[]

struct __align__(128) TensorMap {
  unsigned long long opaque[16];
};

/* A barrier of 8 bytes that `count` arrivals complete, phase after phase. */
DEVICE void begin_barrier(u32 at, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(count) : "memory");
}
DEVICE void show_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}
/* Arrives; the phase is not complete before copies have brought so many bytes. */
DEVICE void arrive_before(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}
/* Waits until the phase of this parity is complete. The first one has parity 0. */
DEVICE void wait_at(u32 barrier, u32 parity) {
  asm volatile("{ .reg .pred done;\n"
               "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra again; }" :: "r"(barrier), "r"(parity) : "memory");
}

/* Starts the copy of the box of a matrix whose first element is at this column and row, which tells the barrier. */
DEVICE void copy_box(u32 to, const TensorMap &map, int column, int row, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%2, %3}], [%4];"
               :: "r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier) : "memory");
}
DEVICE void ready_map(const TensorMap &map) {
  asm volatile("prefetch.tensormap [%0];" :: "l"(&map) : "memory");
}

/* Writes to shared memory, shown to products by `show_puts` of the same lane. */
DEVICE void put(u32 to, u32 word) { asm volatile("st.shared.b32 [%0], %1;" :: "r"(to), "r"(word) : "memory"); }
DEVICE void put_16(u32 to, uint4 words) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
               :: "r"(to), "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w) : "memory");
}
DEVICE void show_puts() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* Keeps the compiler from moving uses of sums across this place: it does not know that products change them later. */
template <int n> DEVICE void stay(float (&sums)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+f"(sums[i]) :: "memory");
}
/* Between a use of sums and products of them; the end of a group of products; until all but the newest are made, those of
 * these sums among them. */
template <int n> DEVICE void fence_products(float (&sums)[n]) {
  stay(sums);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
DEVICE void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int newest, int n> DEVICE void products_made(float (&sums)[n]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(newest) : "memory");
  stay(sums);
}
template <int registers> DEVICE void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(registers));
}
template <int registers> DEVICE void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(registers));
}

/* The operands of a product, by tens. */
#define TEN(t) "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9,"
#define NAMES_16 TEN() "%10,%11,%12,%13,%14,%15"
#define NAMES_32 TEN() TEN(1) TEN(2) "%30,%31"
#define NAMES_64 TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) "%60,%61,%62,%63"
#define NAMES_128 \
  TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) "%120,%121,%122,%123,%124,%125,%126,%127"
#define IN_4(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
#define IN_16(i) IN_4(i), IN_4(i + 4), IN_4(i + 8), IN_4(i + 12)
#define IN_32(i) IN_16(i), IN_16(i + 16)
#define IN_64(i) IN_32(i), IN_32(i + 32)
#define IN_128(i) IN_64(i), IN_64(i + 64)

/* Sums of 64 rows and `columns` columns, of which a lane has half as many as there are columns, += a b; or = a b unless it
 * adds. Both factors are in shared memory, as their descriptors say, or the first is in registers. The second one may be
 * turned. */
#define PRODUCT_AS(name, turned, kind, columns, held, o0, o1, o2, o3, o4, o5)                                         \
  DEVICE void name##_##kind(float (&sums)[held], matrix a, matrix b, bool adds = true) {                              \
    asm volatile("{ .reg .pred adds; setp.ne.b32 adds, " o2 ", 0;\n"                                                  \
                 "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." #kind "." #kind                              \
                 " {" NAMES_##held "}, " o0 ", " o1 ", adds, 1, 1, 0, " turned "; }"                                  \
                 : IN_##held(0) : "l"(a), "l"(b), "r"((u32)adds));                                                    \
  }                                                                                                                   \
  DEVICE void name##_##kind(float (&sums)[held], const u32 (&a)[4], matrix b, bool adds = true) {                     \
    asm volatile("{ .reg .pred adds; setp.ne.b32 adds, " o5 ", 0;\n"                                                  \
                 "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." #kind "." #kind                              \
                 " {" NAMES_##held "}, {" o0 "," o1 "," o2 "," o3 "}, " o4 ", adds, 1, 1, " turned "; }"              \
                 : IN_##held(0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((u32)adds));                \
  }
#define PRODUCT(...)                         \
  PRODUCT_AS(multiply, "0", __VA_ARGS__)     \
  PRODUCT_AS(multiply_turned, "1", __VA_ARGS__)
#define PRODUCTS(kind)                                                   \
  PRODUCT(kind, 32, 16, "%16", "%17", "%18", "%19", "%20", "%21")        \
  PRODUCT(kind, 64, 32, "%32", "%33", "%34", "%35", "%36", "%37")        \
  PRODUCT(kind, 128, 64, "%64", "%65", "%66", "%67", "%68", "%69")       \
  PRODUCT(kind, 256, 128, "%128", "%129", "%130", "%131", "%132", "%133")
PRODUCTS(f16)
PRODUCTS(bf16)
#endif

#define GROUP_ROWS 64 /* of a product */
#define LINE 128      /* bytes of a row of a slab: 64 numbers of 16 bits */
#define EIGHT_ROWS (8 * LINE)

/* The place of a chunk of 16 bytes in a matrix of slabs of `rows` rows: 64 numbers of each row, then the next 64. Chunks
 * of a line change places by the number of their row, as the swizzle of 128 bytes does. Slabs begin at multiples of 1024.
 */
template <int rows> DEVICE u32 chunk_at(int row, int chunk) {
  return chunk / 8 * (rows * LINE) + row * LINE + (chunk % 8 ^ row % 8) * 16;
}

/* Tells products where a matrix begins, and how far it is from 64 numbers of a line to the next 64, and from eight rows to
 * the next eight. */
DEVICE matrix described(u32 at, u32 slab, u32 eight_rows) {
  const matrix swizzle_128 = 1;
  return (at & 0x3ffff) >> 4 | (matrix)(slab >> 4) << 16 | (matrix)(eight_rows >> 4) << 32 | swizzle_128 << 62;
}
