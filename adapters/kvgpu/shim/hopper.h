// What `fast/hopper_cuda.h` has, emulated: barriers in shared memory, copies of boxes, products of a warp group.
// Descriptors and swizzles are read as the PTX ISA says, "Asynchronous Warpgroup Level Matrix Shared Memory Layout".
#pragma once
#include "warp.h"

// Of a matrix in global memory, in an encoding of the emulation: see `runtimes/fast/tensor_map.py`.
struct alignas(64) TensorMap {
  uint64_t magic, address, columns, rows, pitch, box_columns, box_rows, swizzle, unused[8];
};

namespace shim {

constexpr uint64_t MAP_MAGIC = 0x6b767465'6e736f72;

// Bits 4 to 6 of an address are exchanged with bits 7 to 9, as many as the swizzle is wide: 0, 32, 64, or 128 bytes.
static inline uint32_t swizzled(uint32_t at, uint32_t bytes) {
  return bytes ? at ^ ((at >> 7 & (bytes / 16 - 1)) << 4) : at;
}

static inline void demand_map(const TensorMap &map) {
  if (map.magic != MAP_MAGIC) refuse("a copy of a box by what is no tensor map: %u %u", 0, 0);
}

// 16 bytes of a box, zeros beyond the matrix.
static inline void copy_chunk(const TensorMap &map, const Box &box, unsigned row, unsigned chunk) {
  const int64_t r = int64_t{box.row} + row, c = int64_t{box.column} + chunk * 8;
  const bool inside = r >= 0 && c >= 0 && r < int64_t(map.rows) && c < int64_t(map.columns);
  const auto *from = reinterpret_cast<const uint64_t *>(map.address + r * map.pitch + c * 2);
  const uint32_t linear = box.to + (row * map.box_columns + chunk * 8) * 2;
  const uint32_t to = swizzled(linear, map.swizzle);
  if (inside) write_16(to, from[0], from[1]);
  else write_16(to, 0, 0);
}

static inline void copy_box_now(const Box &box) {
  const TensorMap map = cell<TensorMap>(box.map);
  for (unsigned row = 0; row < map.box_rows; ++row)
    for (unsigned chunk = 0; chunk < map.box_columns / 8; ++chunk) copy_chunk(map, box, row, chunk);
  box_arrived(box, static_cast<unsigned>(map.box_rows * map.box_columns * 2));
}

// Where an element of a factor is: `at` is its row or column, k the number along which products are summed. `turned` if
// elements of neighbouring rows or columns lie side by side.
struct Matrix {
  uint32_t start, leading, stride, width, base;
  bool turned;

  Matrix(uint64_t bits, bool is_turned) : turned(is_turned) {
    const uint32_t widths[] = {0, 128, 64, 32};
    start = (bits & 0x3fff) << 4, leading = (bits >> 16 & 0x3fff) << 4, stride = (bits >> 32 & 0x3fff) << 4;
    base = bits >> 49 & 7, width = widths[bits >> 62];
    if (base != 0) refuse("a descriptor with base offset %u: %u is the only one that is emulated", base, 0);
  }
  uint32_t linear(uint32_t at, uint32_t k) const {
    if (turned && width) return at * 2 % width + at * 2 / width * leading + k % 8 * width + k / 8 * stride;
    if (turned) return at % 8 * 2 + at / 8 * stride + k % 8 * 16 + k / 8 * leading;
    if (width) return at % 8 * width + at / 8 * stride + k * 2;
    return at % 8 * 16 + at / 8 * stride + k / 8 * leading + k % 8 * 2;
  }
  uint32_t element(uint32_t at, uint32_t k) const {
    return dynamic_word<uint16_t>(swizzled(start + linear(at, k), width));
  }
};

// The rows of the first factor that a lane needs: its own, and the one 8 further on.
static inline void first_rows(float (&rows)[2][16], const Product &product, int line) {
  const uint32_t none[4] = {};
  uint32_t mine[4];
  memcpy(mine, product.a ? product.a : none, sizeof mine);
  const auto &all = offered(mine, line);
  const Matrix matrix(product.a_matrix, false);
  for (unsigned r = 0; r < 2; ++r)
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned row = lane() / 4 + r * 8;
      uint32_t bits = 0;
      if (!product.a) bits = matrix.element(warp() % 4 * 16 + row, k);
      else {
        const Unwatched reading;
        bits = first(all, row, k);
      }
      rows[r][k] = product.number(bits);
    }
}

static inline void make_product(const Product &product, int line) {
  float rows[2][16];
  first_rows(rows, product, line);
  const Matrix second(product.b_matrix, product.b_turned);
  for (unsigned pair = 0; pair < product.columns / 8; ++pair)
    for (unsigned c = 0; c < 2; ++c) {
      float sums[2] = {};
      for (unsigned k = 0; k < 16; ++k) {
        const float b = product.number(second.element(pair * 8 + lane() % 4 * 2 + c, k));
        sums[0] += rows[0][k] * b, sums[1] += rows[1][k] * b;
      }
      for (unsigned r = 0; r < 2; ++r) {
        float &sum = product.sums[pair * 4 + r * 2 + c];
        sum = product.adds ? sum + sums[r] : sums[r];
      }
    }
}

}  // namespace shim

static inline void begin_barrier(uint32_t at, uint32_t count) {
  shim::demand_dynamic(at, 8);
  shim::begin_phases(at, count);
}
static inline void show_barriers() { shim::show_phases(); }
static inline void arrive(uint32_t barrier) { shim::arrive_at(barrier, 0); }
static inline void arrive_before(uint32_t barrier, uint32_t bytes) { shim::arrive_at(barrier, bytes); }
static inline void wait_at(uint32_t barrier, uint32_t parity, int line = __builtin_LINE()) {
  shim::Box box;
  while (!shim::phase_is_over(barrier, parity))
    if (shim::take_box(barrier, &box)) shim::copy_box_now(box);
    else shim::sleep_at(barrier, line);
}

static inline void copy_box(uint32_t to, const TensorMap &map, int column, int row, uint32_t barrier) {
  shim::demand_map(map);
  shim::demand_dynamic(to, 128);
  shim::demand_dynamic(to + map.box_rows * map.box_columns * 2 - 16, 16);
  for (unsigned i = 0; i < map.box_rows * map.box_columns / 8; ++i) shim::write_16(to + i * 16, ~0ull, ~0ull);
  shim::Box box = {to, {}, column, row, barrier};
  memcpy(box.map, &map, sizeof map);
  shim::begin_box(box);
}
static inline void ready_map(const TensorMap &) {}

static inline void put(uint32_t to, uint32_t word) {
  shim::demand_dynamic(to, 4);
  *reinterpret_cast<uint32_t *>(shim::dynamic + to) = ~0u;
  shim::put(to, word);
}
static inline void put_16(uint32_t to, uint4 words) {
  put(to, words.x), put(to + 4, words.y), put(to + 8, words.z), put(to + 12, words.w);
}
static inline void show_puts() {
  shim::Put each;
  while (shim::take_put(&each)) *reinterpret_cast<uint32_t *>(shim::dynamic + each.to) = each.word;
}

template <unsigned n> static inline void fence_products(float (&)[n]) { shim::fence_sums(); }
static inline void end_products() { shim::end_product_group(); }
template <unsigned newest, unsigned n> static inline void products_made(float (&)[n], int line = __builtin_LINE()) {
  shim::Product product;
  shim::wait_for_products(newest);
  while (shim::take_product(&product)) {
    shim::make_product(product, line);
    shim::product_is_made(product);
  }
}

#define EMULATED_PRODUCT(name, turned, kind)                                                            \
  template <unsigned n>                                                                                 \
  static inline void name##_##kind(float (&sums)[n], uint64_t a, uint64_t b, bool adds = true) {         \
    shim::begin_product({sums, n * 2, nullptr, a, b, adds, turned, shim::of_##kind});                    \
  }                                                                                                     \
  template <unsigned n>                                                                                 \
  static inline void name##_##kind(float (&sums)[n], const uint32_t (&a)[4], uint64_t b, bool adds = true) { \
    shim::begin_product({sums, n * 2, a, 0, b, adds, turned, shim::of_##kind});                          \
  }
EMULATED_PRODUCT(multiply, false, f16)
EMULATED_PRODUCT(multiply, false, bf16)
EMULATED_PRODUCT(multiply_turned, true, f16)
EMULATED_PRODUCT(multiply_turned, true, bf16)

template <int registers> static inline void fewer_registers() {}
template <int registers> static inline void more_registers() {}
