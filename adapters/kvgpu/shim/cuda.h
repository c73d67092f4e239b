// The words of CUDA C++ that our kernels use, for a C++ compiler that has never heard of CUDA.
#pragma once
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "scheduler.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__

// One copy for all blocks is enough, since blocks run one after another. The scheduler finds the section by its
// name and poisons it before each block.
#define __shared__ static __attribute__((section("kv_shared")))

struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };

static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static inline int2 make_int2(int x, int y) { return {x, y}; }
static inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

static const int warpSize = 32;

namespace shim {

template <class To, class From> To bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits are read as a type of the same size");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace shim

static inline float __int_as_float(int i) { return shim::bits<float>(i); }
static inline int __float_as_int(float f) { return shim::bits<int>(f); }
static inline float __uint_as_float(unsigned u) { return shim::bits<float>(u); }
static inline unsigned __float_as_uint(float f) { return shim::bits<unsigned>(f); }
static inline double __longlong_as_double(long long i) { return shim::bits<double>(i); }
static inline long long __double_as_longlong(double d) { return shim::bits<long long>(d); }

// Nanoseconds, where a GPU counts cycles.
static inline long long clock64() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// Rounded to nearest, never contracted: the program is compiled with -ffp-contract=off.
static inline float __fmaf_rn(float a, float b, float c) { return std::fmaf(a, b, c); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fsqrt_rn(float a) { return std::sqrt(a); }
static inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
static inline int __float2int_rn(float f) { return static_cast<int>(std::nearbyint(f)); }

static inline int __popc(unsigned u) { return __builtin_popcount(u); }
static inline int __ffs(int i) { return __builtin_ffs(i); }
static inline int __clz(int i) { return i == 0 ? 32 : __builtin_clz(static_cast<unsigned>(i)); }
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
template <class T> static inline T __ldg(const T *address) { return *address; }
template <class T> static inline T __ldcg(const T *address) { return *address; }
template <class T> static inline T min(T a, T b) { return b < a ? b : a; }
template <class T> static inline T max(T a, T b) { return a < b ? b : a; }

// Using a kernel from outside: its arguments come as cells of 64 bits. Each takes the first bytes of one, or several.
namespace shim {

template <class T> T cell(const uint64_t *from) {
  T value;
  memcpy(&value, from, sizeof value);
  return value;
}

template <class... A> constexpr int cells_of() { return (0 + ... + static_cast<int>((sizeof(A) + 7) / 8)); }

template <class... A, size_t... I>
void call(void (*kernel)(A...), const uint64_t *cells, std::index_sequence<I...>) {
  const int sizes[] = {cells_of<A>()..., 0};
  int begins[sizeof...(A) + 1] = {};
  for (size_t i = 0; i < sizeof...(A); ++i) begins[i + 1] = begins[i] + sizes[i];
  kernel(cell<std::remove_cv_t<A>>(cells + begins[I])...);
}

template <class... A> constexpr int arity(void (*)(A...)) { return cells_of<A...>(); }

template <class... A> void call(void (*kernel)(A...), const uint64_t *cells) {
  call(kernel, cells, std::index_sequence_for<A...>{});
}

}  // namespace shim

#define SHIM_PUBLIC extern "C" __attribute__((visibility("default")))
#define SHIM_EXPORT(kernel)                                                         \
  SHIM_PUBLIC void call_##kernel(const uint64_t *cells) { shim::call(kernel, cells); } \
  SHIM_PUBLIC int arity_##kernel() { return shim::arity(kernel); }
