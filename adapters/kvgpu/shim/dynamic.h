// Shared memory of SHIM_DYNAMIC bytes, as a launch on a GPU asks for them, and copies into it that go on while a lane does other work.
//
// A copy is late on purpose: its bytes are poison from when it begins until its lane has waited for its group and then
// met the others. So whoever waits for too little, meets nobody, or writes into a unit that others still read, is seen.
#pragma once
#include "scheduler.h"

namespace shim {

// AddressSanitizer guards the end of what is aligned to 64 bytes, but not to more.
__shared__ __attribute__((aligned(64))) unsigned char dynamic[SHIM_DYNAMIC];

static inline void demand_dynamic(uint32_t at, uint32_t size) {
  if (at % size != 0) refuse("byte %u of shared memory is not aligned to %u", at, size);
  if (at + size > SHIM_DYNAMIC) refuse("byte %u of shared memory, of which this launch has %u", at, SHIM_DYNAMIC);
}

template <class T> T dynamic_word(uint32_t at) {
  demand_dynamic(at, sizeof(T));
  T word;
  memcpy(&word, dynamic + at, sizeof word);
  return word;
}

// Not by `memset`, because ThreadSanitizer does not see what the compiler makes of that.
static inline void write_16(uint32_t to, uint64_t low, uint64_t high) {
  uint64_t *words = reinterpret_cast<uint64_t *>(dynamic + to);
  words[0] = low, words[1] = high;
}

// Reads what a copy will read, so that a sanitizer names the line that asks for it.
static inline void read_16(const void *from) {
  const volatile uint64_t *words = static_cast<const volatile uint64_t *>(from);
  words[0], words[1];
}

// The warp, or the block, meets: what this thread has waited for is there for all.
static inline void show_copies() {
  Copy copy;
  while (take_copy(&copy)) {
    const uint64_t *from = static_cast<const uint64_t *>(copy.from);
    if (copy.wanted) write_16(copy.to, from[0], from[1]);
    else write_16(copy.to, 0, 0);
  }
}

}  // namespace shim

#define DYNAMIC_SHARED(name) unsigned char *const name = shim::dynamic

static inline uint32_t shared_address(const void *at) {
  return static_cast<uint32_t>(static_cast<const unsigned char *>(at) - shim::dynamic);
}

static inline void copy_16(uint32_t to, const void *from, bool wanted) {
  shim::demand_dynamic(to, 16);
  if (reinterpret_cast<uintptr_t>(from) % 16 != 0) shim::refuse("a copy to byte %u is from an address that is not aligned to %u", to, 16);
  if (wanted) shim::read_16(from);
  shim::write_16(to, ~0ull, ~0ull);
  shim::begin_copy(to, from, wanted);
}

static inline void end_group() { shim::end_copies(); }

template <unsigned newest> static inline void arrived() { shim::wait_for_copies(newest); }
