// The block that is running: its threads, and the places where they wait for each other.
#pragma once
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "sanitizer.h"
#include "scheduler.h"
#include "stacks.h"

namespace shim {

constexpr unsigned LANES = 32, MOST_THREADS = 1024;

// What the registers of a product hold while it is under way.
struct Sums {
  float *at;
  std::vector<float> values;
};

struct Thread {
  uint3 index;
  unsigned number;
  void *identity;                 // to ThreadSanitizer
  Stack *stack = nullptr;
  int line = 0;                   // where it waits
  uint64_t offered = 0;           // to its warp
  unsigned from_lane = 0;         // whose offer it asked for
  Exchanged received = {};
  bool fenced = false;            // since it began
  const void *touched = nullptr;  // by its last atomic, or by one before a barrier
  unsigned turns = 0;             // it offered registers to its warp
  std::vector<Copy> copies = {};  // not taken yet
  unsigned ended = 0;             // groups of copies that ended
  unsigned arrived = 0;           // of these, groups that it has waited for
  std::deque<Put> puts = {};      // not shown yet
  std::vector<uint32_t> made = {};  // barriers that are not shown yet
  std::deque<Product> products = {};  // not made yet
  std::vector<Sums> sums = {};
  bool sums_fenced = false;       // since it waited for products
  unsigned product_groups = 0;    // that ended
  unsigned products_over = 0;     // of these, groups that it has waited for
  size_t products_begun = 0;
};

// A barrier in shared memory: `missing` arrivals and `bytes` are left of the phase. Sync variables are used by turns.
struct Phases {
  unsigned count, missing;
  int64_t bytes = 0;
  unsigned phase = 0;
  bool shown = false;  // to copies
  std::deque<Box> boxes = {};
  std::vector<Thread *> waiting = {};
  int line = 0;
  char sync[2] = {};
};

// Lanes of a warp that exchange under one mask. It has two sync variables, used by turns, so that a lane which is
// early for the next exchange is not taken to be before a lane that has not left this one.
struct Meeting {
  uint32_t mask;
  uint32_t arrived = 0;
  int line = 0;
  unsigned turn = 0;
  char sync[2] = {};
};

struct Warp {
  uint32_t present;  // the lanes there are: the last warp of a block may have fewer
  std::deque<Meeting> meetings;
};

struct Barrier {
  std::vector<Thread *> waiting;
  const void *touched = nullptr;  // by the newest atomic of the block
  unsigned turn = 0;
  char sync[2] = {};
};

struct Block {
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  Barrier barrier;
  std::deque<Thread *> ready;  // they waited, and may go on
  unsigned begun = 0, ended = 0;
  std::map<uint32_t, Phases> phases;
  std::map<unsigned, std::vector<std::pair<uint64_t, uint64_t>>> begun_products;  // by warp group
};

static Block block;
static Stack *running;  // the one in use
static void *scheduler_identity;
static char message[400];

static Thread &current() { return *running->thread; }

static bool failed() { return message[0] != '\0'; }

__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
}

// While it lives, what a thread does counts as the scheduler's work, which no other thread races with.
class AsScheduler {
 public:
  AsScheduler() : thread(watch::here()) { watch::become(scheduler_identity); }
  ~AsScheduler() { watch::become(thread); }

 private:
  void *thread;
};

// Leaves the current thread, as the scheduler, and comes back when it is resumed. After a failure it never does.
static void leave() { go_home(*running); }

}  // namespace shim
