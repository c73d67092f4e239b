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

// Ends the launch with a message: what the thread wants no GPU does. The format takes two numbers.
void refuse(const char *format, unsigned one, unsigned other);

// Until it is called again with false, no sanitizer that looks for races sees what the thread reads and writes.
void unwatched(bool begin);

// Memory order, which only matters to a sanitizer that looks for races: threads themselves take turns.
void fence();
void before_atomic(const void *address);

}  // namespace shim
