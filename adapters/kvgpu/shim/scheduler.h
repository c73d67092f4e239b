// What a kernel sees of the scheduler. The scheduler is compiled apart and without a sanitizer, so that a
// sanitizer watches what kernels do and nothing else.
#pragma once
#include <cstdint>

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x = 1, y = 1, z = 1; };

// CUDA's own names. The scheduler sets them before it lets a thread run.
#pragma GCC visibility push(hidden)
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
#pragma GCC visibility pop

namespace shim {

// What a lane gets back from a meeting of its warp.
struct Exchanged {
  uint64_t value;  // what the lane asked for had offered; all bits set if that lane did not take part
  uint32_t votes;  // a bit for each lane whose offer was not 0
};

void barrier(int line);
// As in CUDA, an exchange orders what the lanes do in memory only if it is a `__syncwarp`.
Exchanged exchange(uint32_t mask, uint64_t offered, unsigned from_lane, int line, bool orders = false);
unsigned lane();

unsigned warp();

// How often the thread has asked so far.
unsigned next_turn();

// A copy of 16 bytes, or of zeros, into shared memory. It is one of a group, which ends, and then is waited for but for
// some newest ones. Only then the copy can be taken, once.
struct Copy {
  uint32_t to;
  const void *from;
  bool wanted;
  unsigned group;
};
void begin_copy(uint32_t to, const void *from, bool wanted);
void end_copies();
void wait_for_copies(unsigned newest);
bool take_copy(Copy *into);

// A barrier in shared memory counts arrivals, and bytes that copies bring: it is told how many of each belong to a phase.
void begin_phases(uint32_t at, unsigned count);
void show_phases();  // to copies
void arrive_at(uint32_t at, unsigned bytes);
bool phase_is_over(uint32_t at, unsigned parity);
void sleep_at(uint32_t at, int line);

// A box of a matrix, which the tensor map describes, from column `column` and row `row` on. It is taken once.
struct Box {
  uint32_t to;
  uint64_t map[16];
  int column, row;
  uint32_t barrier;
};
void begin_box(const Box &box);
bool take_box(uint32_t barrier, Box *into);
void box_arrived(const Box &box, unsigned bytes);

// A word that a thread writes to shared memory; products and copies find it there once it is shown to them.
struct Put {
  uint32_t to, word;
};
void put(uint32_t to, uint32_t word);
bool take_put(Put *into);

// A product of a warp group: sums of 64 rows and so many columns, as far as this thread has them. The first factor is in
// registers, or where a descriptor says.
struct Product {
  float *sums;
  unsigned columns;
  const uint32_t *a;
  uint64_t a_matrix, b_matrix;
  bool adds, b_turned;
  float (*number)(uint32_t);
  unsigned group = 0;
  float *registers = nullptr;  // where the sums go
};
void fence_sums();
void begin_product(const Product &product);
void end_product_group();
void wait_for_products(unsigned newest);
bool take_product(Product *into);
void product_is_made(const Product &product);

// Ends the launch with a message: what the thread wants no GPU does. The format takes two numbers.
void refuse(const char *format, unsigned one, unsigned other);

// Until it is called again with false, no sanitizer that looks for races sees what the thread reads and writes.
void unwatched(bool begin);

// Memory order, which only matters to a sanitizer that looks for races: threads themselves take turns.
void fence();
void before_atomic(const void *address);

}  // namespace shim
