/* The words of the common kernel text, in OpenCL C 1.2. */
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef uint2 u64;
typedef uint4 u128;
typedef long i64;
#define KERNEL __kernel void
#define INLINE static inline __attribute__((always_inline))
#define GLOBAL __global
#define GROUP(axis) ((i64)get_group_id(axis))
#define GROUPS(axis) ((i64)get_num_groups(axis))
#define ITEM(axis) ((i64)get_local_id(axis))
#define ITEMS(axis) ((i64)get_local_size(axis))
#define MEET() barrier(CLK_GLOBAL_MEM_FENCE)
#define MEET_NEAR() barrier(CLK_LOCAL_MEM_FENCE)
#define SHARED __local
#define LOCAL __local
#if defined(POCL_DEVICE_ADDRESS_BITS) && defined(__FMA__)
#define FMA(a, b, c) __builtin_fmaf(a, b, c) /* PoCL 3.0 calls its own fma as a function */
#else
#define FMA(a, b, c) fma(a, b, c)
#endif
#define FLOAT(bits) as_float(bits)
#define BITS(number) as_uint(number)
#pragma OPENCL FP_CONTRACT OFF
#ifdef __has_builtin /* Clang: PoCL and Oclgrind. Threads that meet under a lock see such stores too */
#if __has_builtin(__builtin_nontemporal_store)
#define PAST(to, word) __builtin_nontemporal_store(word, to)
#endif
#endif
#ifndef PAST
#define PAST(to, word) *(to) = word
#endif
