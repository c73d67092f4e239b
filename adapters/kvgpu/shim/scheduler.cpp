// Runs the blocks of a launch one after another, and the threads of a block as they need it: one behind the
// other on one stack, until a thread waits for others; only then do the next ones get a stack of their own. So a
// kernel whose threads never meet costs a plain loop, and nobody has to say which kernels those are.
#include "scheduler.h"

#include <cstdlib>

#include "block.h"
#include "meetings.h"
#include "phases.h"
#include "products.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

extern "C" {
extern char __start_kv_shared[] __attribute__((weak));
extern char __stop_kv_shared[] __attribute__((weak));
}

namespace shim {
namespace {

using Body = void (*)(const uint64_t *cells);

// Bytes of stack that are fresh to ThreadSanitizer for every thread. Without it a thread seems to race with the one
// that had the stack before, and the tool hangs while it looks for where that was.
constexpr size_t DEEPEST = 16 << 10;

std::deque<Stack> stacks;
std::vector<Stack *> idle;
Body body;
const uint64_t *cells;
size_t identities;       // of threads of this launch that were given out
char launched, finished;  // sync variables: what came before the launch, and what its threads did

void run(Thread &thread) {
  running->thread = &thread;
  thread.stack = running;
  threadIdx = thread.index;
  watch::fresh(running->memory + STACK - DEEPEST, DEEPEST);
  watch::become(thread.identity);
  watch::acquire(&launched);
  body(cells);
  watch::release(&finished);
  watch::become(scheduler_identity);
  ++block.ended;
}

// What every stack does for ever.
void take_threads() {
  for (;;) {
    while (block.begun < block.threads.size() && !failed()) run(block.threads[block.begun++]);
    idle.push_back(running);
    go_home(*running);
  }
}

// A stack that takes threads; null if there is no memory for it.
Stack *idle_stack() {
  if (idle.empty()) {
    char *memory = allocated_stack();
    if (memory == nullptr) return nullptr;
    Stack &made = stacks.emplace_back();
    made.memory = memory;
    prepare(made, take_threads);
    return &made;
  }
  Stack *stack = idle.back();
  idle.pop_back();
  return stack;
}

// After a failure threads are left where they stood; nobody may come back to these stacks.
void give_up_stacks() {
  for (Stack &stack : stacks) free_stack(stack.memory);
  stacks.clear();
  idle.clear();
}

// What is never written must not look like a result. Byte by byte, because memset is watched.
void poison_shared() {
  if (__start_kv_shared == nullptr) return;
  for (volatile char *at = __start_kv_shared; at < __stop_kv_shared; ++at) *at = static_cast<char>(0xff);
  watch::fresh(__start_kv_shared, __stop_kv_shared - __start_kv_shared);
}

void set_up_threads() {
  unsigned number = 0;
  for (Thread &thread : block.threads) {
    const unsigned x = number % blockDim.x, y = number / blockDim.x % blockDim.y;
    thread = Thread{{x, y, number / (blockDim.x * blockDim.y)}, number, watch::identity(identities++)};
    watch::call(thread.identity, thread.index);
    ++number;
  }
}

void set_up_warps() {
  for (size_t i = 0; i < block.warps.size(); ++i) {
    const size_t lanes = block.threads.size() - i * LANES;
    block.warps[i].present = lanes >= LANES ? ~0u : (1u << lanes) - 1;
    for (Meeting &before : block.warps[i].meetings) watch::forget(&before, sizeof before);
    block.warps[i].meetings.clear();
  }
}

// Nobody can go on: says where those wait who are left.
void fail_stuck() {
  const auto &held = block.barrier.waiting;
  if (!held.empty())
    return fail("barrier divergence: %zu of %zu threads wait at the barrier in line %d, the others do not come",
                held.size(), block.threads.size(), held.front()->line);
  for (const Warp &warp : block.warps)
    for (const Meeting &meeting : warp.meetings)
      if (meeting.arrived != 0)
        fail("warp divergence: lanes %08x of the mask %08x wait in line %d, the others do not come",
             meeting.arrived, meeting.mask, meeting.line);
  for (const auto &[at, phases] : block.phases)
    if (!phases.waiting.empty() && !failed())
      fail("%zu threads wait in line %d for the barrier in byte %u of shared memory, which lacks %u arrivals and %ld bytes",
           phases.waiting.size(), phases.line, at, phases.missing, static_cast<long>(phases.bytes));
}

void resume(Thread &thread) {
  threadIdx = thread.index;
  running = thread.stack;
  go(*running);
}

void schedule() {
  while (block.ended < block.threads.size() && !failed()) {
    if (!block.ready.empty()) {
      Thread &next = *block.ready.front();
      block.ready.pop_front();
      resume(next);
    } else if (block.begun == block.threads.size()) {
      fail_stuck();
    } else if ((running = idle_stack()) != nullptr) {
      go(*running);
    } else {
      fail("there is no memory for a stack of %zu bytes", STACK);
    }
  }
}

// Blocks are not ordered by barriers of their own.
void set_up_barrier() {
  watch::forget(&block.barrier, sizeof block.barrier);
  block.barrier.waiting.clear();
  block.barrier.touched = nullptr;
}

void set_up_phases() {
  for (auto &[at, phases] : block.phases) watch::forget(&phases, sizeof phases);
  block.phases.clear();
  block.begun_products.clear();
}

void run_block() {
  poison_shared();
  set_up_phases();
  set_up_threads();
  set_up_warps();
  set_up_barrier();
  block.begun = block.ended = 0;
  block.ready.clear();
  schedule();
}

void run_blocks() {
  for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
        run_block();
        if (failed()) return give_up_stacks();
      }
}

void launch(const uint64_t *shape) {
  const auto size = [&](int i) { return static_cast<unsigned>(shape[i]); };
  const uint64_t count = shape[0] * shape[1] * shape[2];
  if (count == 0 || count > MOST_THREADS) return fail("a block has 1 to %u threads, not %lu", MOST_THREADS, count);
  blockDim = {size(0), size(1), size(2)};
  gridDim = {size(3), size(4), size(5)};
  block.threads.resize(count);
  block.warps.resize((count + LANES - 1) / LANES);
  scheduler_identity = watch::here();
  identities = 0;
  watch::release(&launched);
  run_blocks();
  watch::acquire(&finished);
}

}  // namespace
}  // namespace shim

// ---- What the runtime calls ----

#define SHIM_PUBLIC extern "C" __attribute__((visibility("default")))

// Memory comes from here, so that it is a sanitizer's where there is one. Null if there is none left.
SHIM_PUBLIC void *shim_allocate(size_t nbytes) {
  void *memory = nullptr;
  return posix_memalign(&memory, 64, nbytes) == 0 ? memory : nullptr;
}

SHIM_PUBLIC void shim_free(void *memory) { free(memory); }

// `shape`: threads of a block, then blocks, three axes each; the kernel's arguments follow. 0, or 1 and a message.
SHIM_PUBLIC int shim_launch(shim::Body body, const uint64_t *shape) {
  shim::message[0] = '\0';
  shim::body = body;
  shim::cells = shape + 6;
  shim::launch(shape);
  return shim::failed();
}

SHIM_PUBLIC const char *shim_message() { return shim::message; }
