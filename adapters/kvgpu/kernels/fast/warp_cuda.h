/* The operations of a whole warp, in PTX for sm_80 and later. For the CPU `shim/warp.h` defines them. */
#ifndef SHIM_WARP
#define DEVICE_METHOD __device__ __forceinline__
#define DEVICE static DEVICE_METHOD
#define DYNAMIC_SHARED(name) extern __shared__ __align__(128) unsigned char name[]

/* 2^x, within 2 units in the last place; below 2^-126 it is 0. */
DEVICE float power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/* Two numbers rounded to 16 bits, the first in the low half; and each half as a number again. */
DEVICE u32 bf16_pair(float low, float high) {
  u32 x;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(x) : "f"(high), "f"(low));
  return x;
}
DEVICE u32 f16_pair(float low, float high) {
  u32 x;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(x) : "f"(high), "f"(low));
  return x;
}
DEVICE float bf16_low(u32 x) { return __uint_as_float(x << 16); }
DEVICE float bf16_high(u32 x) { return __uint_as_float(x & 0xffff0000u); }
DEVICE float f16_low(u32 x) {
  float y;
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low; }" : "=f"(y) : "r"(x));
  return y;
}
DEVICE float f16_high(u32 x) { return f16_low(x >> 16); }

/* c += a b of matrices 16 x 16 and 16 x 8, spread over the lanes as PTX says of mma.m16n8k16. */
#define MMA(kind)                                                                                               \
  DEVICE void mma_##kind(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {                                    \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." #kind "." #kind ".f32 "                               \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                              \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                               \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                               \
  }
MMA(f16)
MMA(bf16)

/* Four matrices of 8 x 8 from shared memory; lane l says where row l % 8 of matrix l / 8 begins. */
DEVICE void read_matrices(u32 (&x)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
}
DEVICE void read_turned(u32 (&x)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
}
/* One number or two from shared memory. */
DEVICE float read_number(u32 at) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(at) : "memory");
  return x;
}
DEVICE void read_numbers(float (&x)[2], u32 at) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x[0]), "=f"(x[1]) : "r"(at) : "memory");
}
/* A matrix of 8 x 8 that the lanes hold, rows made columns. */
DEVICE u32 turned(u32 x) {
  u32 y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

/* Copies of 16 bytes into shared memory, which go on while the lane does other work. Without `wanted` nothing is read,
 * and zeros are written. Copies come in groups: `arrived<n>` waits until at most the newest n groups of this lane are
 * under way. Other lanes see the copies after a barrier of the warp. */
DEVICE void copy_16(u32 to, const void *from, bool wanted) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
               :: "r"(to), "l"(from), "r"(wanted ? 16 : 0) : "memory");
}
DEVICE void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int newest> DEVICE void arrived() { asm volatile("cp.async.wait_group %0;" :: "n"(newest) : "memory"); }
DEVICE u32 shared_address(const void *at) { return (u32)__cvta_generic_to_shared(at); }
#endif
