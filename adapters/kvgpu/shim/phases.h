// Barriers in shared memory that count arrivals and bytes, PTX's mbarriers, and the copies of boxes that they wait for.
//
// A copy is late on purpose: it is made when somebody has to wait for it, and its bytes are poison until then.
#pragma once
#include <algorithm>

#include "block.h"

namespace shim {

static Phases &phases_at(uint32_t at) {
  const auto found = block.phases.find(at);
  if (found == block.phases.end()) {
    fail("there is no barrier at byte %u of shared memory", at);
    leave();
  }
  return found->second;
}

// Whoever waits may look again.
static void wake(Phases &it) {
  block.ready.insert(block.ready.end(), it.waiting.begin(), it.waiting.end());
  it.waiting.clear();
}

static void turn_if_complete(Phases &it) {
  if (it.missing != 0 || it.bytes != 0) return;
  it.missing = it.count;
  ++it.phase;
  wake(it);
}

void begin_phases(uint32_t at, unsigned count) {
  const AsScheduler scheduling;
  block.phases[at] = Phases{count, count};
  current().made.push_back(at);
}

void show_phases() {
  const AsScheduler scheduling;
  for (const uint32_t at : current().made) block.phases[at].shown = true;
  current().made.clear();
}

void arrive_at(uint32_t at, unsigned bytes) {
  watch::release(&phases_at(at).sync[phases_at(at).phase & 1]);
  const AsScheduler scheduling;
  Phases &it = phases_at(at);
  if (it.missing == 0) {
    fail("more threads arrive at the barrier in byte %u of shared memory than it counts", at);
    leave();
  }
  it.bytes += bytes, --it.missing;
  turn_if_complete(it);
}

void begin_box(const Box &box) {
  watch::release(&phases_at(box.barrier).sync[phases_at(box.barrier).phase & 1]);
  const AsScheduler scheduling;
  Phases &it = phases_at(box.barrier);
  if (!it.shown) {
    fail("copies are told of the barrier in byte %u of shared memory, which is not shown to them", box.barrier);
    leave();
  }
  it.boxes.push_back(box);
  wake(it);
}

// Whoever copies a box comes behind the one that asked for it.
bool take_box(uint32_t at, Box *into) {
  if (phases_at(at).boxes.empty()) return false;
  watch::acquire(&phases_at(at).sync[phases_at(at).phase & 1]);
  const AsScheduler scheduling;
  Phases &it = phases_at(at);
  *into = it.boxes.front();
  it.boxes.pop_front();
  return true;
}

void box_arrived(const Box &box, unsigned bytes) {
  watch::release(&phases_at(box.barrier).sync[phases_at(box.barrier).phase & 1]);
  const AsScheduler scheduling;
  Phases &it = phases_at(box.barrier);
  it.bytes -= bytes;
  turn_if_complete(it);
}

bool phase_is_over(uint32_t at, unsigned parity) {
  Phases &it = phases_at(at);
  if ((it.phase & 1) == parity) return false;
  watch::acquire(&it.sync[parity]);
  return true;
}

void sleep_at(uint32_t at, int line) {
  const AsScheduler scheduling;
  Phases &it = phases_at(at);
  it.line = line;
  it.waiting.push_back(&current());
  leave();
}

void put(uint32_t to, uint32_t word) {
  const AsScheduler scheduling;
  current().puts.push_back({to, word});
}

bool take_put(Put *into) {
  const AsScheduler scheduling;
  std::deque<Put> &puts = current().puts;
  if (puts.empty()) return false;
  *into = puts.front();
  puts.pop_front();
  return true;
}

}  // namespace shim
