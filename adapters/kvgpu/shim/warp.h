// What a warp does as one, by the names of `fast/warp_cuda.h`: every lane offers its registers, the warp meets, and
// each lane reads what it needs of the others.
#pragma once
#define SHIM_WARP
#include <cmath>

#include "meet.h"

#define DEVICE_METHOD inline __attribute__((always_inline))
#define DEVICE static DEVICE_METHOD

static inline float power_of_2(float x) { return std::exp2(x); }

namespace shim {

constexpr unsigned MOST_WARPS = 12;

// Two sets of offers for each warp, used by turns: who offers again has met everybody once more, and they have read the
// set before. Registers are no memory: nobody watches these.
struct Offers {
  uint32_t words[2][32][8];
};
__shared__ Offers offers[MOST_WARPS];

struct Unwatched {
  Unwatched() { unwatched(true); }
  ~Unwatched() { unwatched(false); }
};

template <size_t n> const uint32_t (&offered(const uint32_t (&words)[n], int line))[32][8] {
  if (warp() >= MOST_WARPS) refuse("warp %u of a block offers registers, of which %u can", warp(), MOST_WARPS);
  auto &set = offers[warp()].words[next_turn() & 1];
  {
    const Unwatched offering;
    memcpy(set[lane()], words, sizeof words);
  }
  exchange(~0u, 0, lane(), line);
  return set;
}

static inline float of_bf16(uint32_t x) { return bits<float>(x << 16); }
static inline float of_f16(uint32_t x) { return static_cast<float>(bits<_Float16>(static_cast<uint16_t>(x))); }

static inline uint32_t to_bf16(float f) {
  const uint32_t x = bits<uint32_t>(f);
  return f != f ? 0x7fff : (x + 0x7fff + (x >> 16 & 1)) >> 16;
}
static inline uint32_t to_f16(float f) { return f != f ? 0x7fff : bits<uint16_t>(static_cast<_Float16>(f)); }

static inline uint32_t half(uint32_t pair, unsigned which) { return pair >> 16 * which & 0xffff; }

// Element (row, k) of the first factor, (k, column) of the second: where PTX puts them among lanes and registers.
static inline uint32_t first(const uint32_t (&words)[32][8], unsigned row, unsigned k) {
  return half(words[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], k % 2);
}
static inline uint32_t second(const uint32_t (&words)[32][8], unsigned k, unsigned column) {
  return half(words[column * 4 + k % 8 / 2][4 + k / 8], k % 2);
}

template <float (*number)(uint32_t)>
void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, int line) {
  const uint32_t mine[6] = {a[0], a[1], a[2], a[3], b0, b1};
  const auto &all = offered(mine, line);
  const Unwatched reading;
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned k = 0; k < 16; ++k)
      c[i] += number(first(all, lane() / 4 + i / 2 * 8, k)) * number(second(all, k, lane() % 4 * 2 + i % 2));
}

// Where row `row` of matrix `matrix` begins, as its lane said.
static inline uint32_t row_begins(const uint32_t (&all)[32][8], unsigned matrix, unsigned row) {
  const Unwatched reading;
  return all[matrix * 8 + row][0];
}

}  // namespace shim

static inline uint32_t bf16_pair(float low, float high) { return shim::to_bf16(low) | shim::to_bf16(high) << 16; }
static inline uint32_t f16_pair(float low, float high) { return shim::to_f16(low) | shim::to_f16(high) << 16; }
static inline float bf16_low(uint32_t x) { return shim::of_bf16(x & 0xffff); }
static inline float bf16_high(uint32_t x) { return shim::of_bf16(x >> 16); }
static inline float f16_low(uint32_t x) { return shim::of_f16(x & 0xffff); }
static inline float f16_high(uint32_t x) { return shim::of_f16(x >> 16); }

static inline void mma_f16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                           int line = __builtin_LINE()) {
  shim::multiply<shim::of_f16>(c, a, b0, b1, line);
}
static inline void mma_bf16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                            int line = __builtin_LINE()) {
  shim::multiply<shim::of_bf16>(c, a, b0, b1, line);
}

static inline void read_matrices(uint32_t (&x)[4], uint32_t at, int line = __builtin_LINE()) {
  const uint32_t mine[1] = {at};
  const auto &all = shim::offered(mine, line);
  for (unsigned m = 0; m < 4; ++m)
    x[m] = shim::dynamic_word<uint32_t>(shim::row_begins(all, m, shim::lane() / 4) + shim::lane() % 4 * 4);
}
static inline void read_turned(uint32_t (&x)[4], uint32_t at, int line = __builtin_LINE()) {
  const uint32_t mine[1] = {at};
  const auto &all = shim::offered(mine, line);
  const unsigned column = shim::lane() / 4 * 2, row = shim::lane() % 4 * 2;
  for (unsigned m = 0; m < 4; ++m)
    x[m] = shim::dynamic_word<uint16_t>(shim::row_begins(all, m, row) + column) |
           static_cast<uint32_t>(shim::dynamic_word<uint16_t>(shim::row_begins(all, m, row + 1) + column)) << 16;
}
static inline float read_number(uint32_t at) { return shim::bits<float>(shim::dynamic_word<uint32_t>(at)); }
static inline void read_numbers(float (&x)[2], uint32_t at) { x[0] = read_number(at), x[1] = read_number(at + 4); }
static inline uint32_t turned(uint32_t x, int line = __builtin_LINE()) {
  const uint32_t mine[1] = {x};
  const auto &all = shim::offered(mine, line);
  const shim::Unwatched reading;
  const unsigned column = shim::lane() / 4, row = shim::lane() % 4 * 2;
  return shim::half(all[row * 4 + column / 2][0], column % 2) |
         shim::half(all[(row + 1) * 4 + column / 2][0], column % 2) << 16;
}
