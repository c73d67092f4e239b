// The block that is running: its threads, and the places where they wait for each other.
#pragma once
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <vector>

#include "sanitizer.h"
#include "scheduler.h"
#include "stacks.h"

namespace shim {

constexpr unsigned LANES = 32, MOST_THREADS = 1024;

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
