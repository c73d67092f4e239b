/* The words of the common kernel text, in CUDA C++ (nvcc, NVRTC). */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef uint2 u64;
typedef uint4 u128;
typedef long long i64;
#define KERNEL extern "C" __global__ void
#define INLINE static inline
#define GLOBAL
#define AXIS(of, axis) ((i64)((axis) == 0 ? of.x : (axis) == 1 ? of.y : of.z))
#define GROUP(axis) AXIS(blockIdx, axis)
#define GROUPS(axis) AXIS(gridDim, axis)
#define ITEM(axis) AXIS(threadIdx, axis)
#define ITEMS(axis) AXIS(blockDim, axis)
#define MEET() __syncthreads()
#define MEET_NEAR() __syncthreads()
#define SHARED __shared__
#define LOCAL
#define FMA(a, b, c) __fmaf_rn(a, b, c)
#define FLOAT(bits) __uint_as_float(bits)
#define BITS(number) __float_as_uint(number)
#define PAST(to, word) *(to) = word /* only a CPU has a store past its caches */
