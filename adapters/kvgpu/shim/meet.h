// Where threads meet: barriers, shuffles, votes, atomics. Each call knows the line it stands on, because threads
// that meet on different lines have diverged, and because reports shall name it.
#pragma once
#include "cuda.h"
#ifdef SHIM_DYNAMIC
#include "dynamic.h"
#else
namespace shim {
static inline void show_copies() {}
}  // namespace shim
#endif

static inline void __syncthreads(int line = __builtin_LINE()) {
  shim::show_copies();
  shim::barrier(line);
}

static inline void __syncwarp(unsigned mask = ~0u, int line = __builtin_LINE()) {
  shim::show_copies();
  shim::exchange(mask, 0, shim::lane(), line, true);
}

namespace shim {

template <class T> T shuffled(unsigned mask, T value, unsigned from_lane, int line) {
  static_assert(sizeof(T) <= 8, "a shuffled value fits into 64 bits");
  uint64_t offered = 0;
  memcpy(&offered, &value, sizeof value);
  const uint64_t found = exchange(mask, offered, from_lane, line).value;
  memcpy(&value, &found, sizeof value);
  return value;
}

// The first lane of the segment of `width` lanes that this lane is in.
static inline unsigned segment(unsigned width) { return lane() & ~(width - 1); }

}  // namespace shim

template <class T>
static inline T __shfl_sync(unsigned mask, T value, int from, int width = 32, int line = __builtin_LINE()) {
  return shim::shuffled(mask, value, shim::segment(width) | (from & (width - 1)), line);
}

// As in CUDA, a lane that would read beyond its segment gets its own value.
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32, int line = __builtin_LINE()) {
  const unsigned from = shim::lane() ^ flip, last = shim::segment(width) + width - 1;
  return shim::shuffled(mask, value, from <= last ? from : shim::lane(), line);
}

template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, int line = __builtin_LINE()) {
  const unsigned from = shim::lane() + by, last = shim::segment(width) + width - 1;
  return shim::shuffled(mask, value, from <= last ? from : shim::lane(), line);
}

template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, int line = __builtin_LINE()) {
  const unsigned first = shim::segment(width);
  return shim::shuffled(mask, value, shim::lane() >= first + by ? shim::lane() - by : shim::lane(), line);
}

static inline unsigned __ballot_sync(unsigned mask, int vote, int line = __builtin_LINE()) {
  return shim::exchange(mask, vote != 0, shim::lane(), line).votes;
}
static inline int __any_sync(unsigned mask, int vote, int line = __builtin_LINE()) {
  return __ballot_sync(mask, vote, line) != 0;
}
static inline int __all_sync(unsigned mask, int vote, int line = __builtin_LINE()) {
  return __ballot_sync(mask, vote == 0, line) == 0;
}

// Atomics are relaxed, as CUDA's are: what they publish is ordered by fences alone.
static inline void __threadfence() { shim::fence(); }
static inline void __threadfence_block() { shim::fence(); }

namespace shim {

template <size_t Size> struct Word;
template <> struct Word<4> { using type = uint32_t; };
template <> struct Word<8> { using type = uint64_t; };

// Replaces what stands at `address` by what `change` makes of it; gives what stood there.
template <class T, class Change> T update(T *address, Change change) {
  using W = typename Word<sizeof(T)>::type;
  before_atomic(address);
  W *word = reinterpret_cast<W *>(address);
  W old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, bits<W>(static_cast<T>(change(bits<T>(old)))), false,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  return bits<T>(old);
}

// Lets the second argument of an atomic be converted to the type of the first, as CUDA's overloads do.
template <class T> using Same = std::common_type_t<T>;

}  // namespace shim

template <class T> static inline T atomicAdd(T *address, shim::Same<T> value) {
  return shim::update(address, [=](T old) { return old + value; });
}
template <class T> static inline T atomicMax(T *address, shim::Same<T> value) {
  return shim::update(address, [=](T old) { return old < value ? value : old; });
}
template <class T> static inline T atomicMin(T *address, shim::Same<T> value) {
  return shim::update(address, [=](T old) { return value < old ? value : old; });
}
template <class T> static inline T atomicOr(T *address, shim::Same<T> value) {
  return shim::update(address, [=](T old) { return old | value; });
}
template <class T> static inline T atomicAnd(T *address, shim::Same<T> value) {
  return shim::update(address, [=](T old) { return old & value; });
}
template <class T> static inline T atomicExch(T *address, shim::Same<T> value) {
  return shim::update(address, [=](T) { return value; });
}
template <class T> static inline T atomicCAS(T *address, shim::Same<T> expected, shim::Same<T> value) {
  return shim::update(address, [=](T old) { return old == expected ? value : old; });
}
static inline unsigned atomicInc(unsigned *address, unsigned last) {
  return shim::update(address, [=](unsigned old) { return old >= last ? 0u : old + 1; });
}
