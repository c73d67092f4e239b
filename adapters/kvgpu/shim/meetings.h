// What kernels call where threads meet; see `scheduler.h`.
#pragma once
#include <algorithm>

#include "block.h"

namespace shim {

unsigned lane() { return current().number % LANES; }

unsigned warp() { return current().number / LANES; }

unsigned next_turn() { return current().turns++; }

void begin_copy(uint32_t to, const void *from, bool wanted) {
  const AsScheduler scheduling;
  current().copies.push_back({to, from, wanted, current().ended});
}

void end_copies() { ++current().ended; }

void wait_for_copies(unsigned newest) {
  Thread &self = current();
  if (self.ended > newest) self.arrived = std::max(self.arrived, self.ended - newest);
}

bool take_copy(Copy *into) {
  const AsScheduler scheduling;
  Thread &self = current();
  if (self.copies.empty() || self.copies.front().group >= self.arrived) return false;
  *into = self.copies.front();
  self.copies.erase(self.copies.begin());
  return true;
}

void refuse(const char *format, unsigned one, unsigned other) {
  const AsScheduler scheduling;
  snprintf(message, sizeof message, format, one, other);
  leave();
}

static void come_to_barrier(int line) {
  const AsScheduler scheduling;
  Barrier &here = block.barrier;
  if (!here.waiting.empty() && here.waiting.front()->line != line) {
    fail("barrier divergence: some threads wait at the barrier in line %d, others came to the one in line %d",
         here.waiting.front()->line, line);
    leave();
  }
  if (here.waiting.size() + 1 < block.threads.size()) {
    current().line = line;
    here.waiting.push_back(&current());
    return leave();
  }
  if (here.touched != nullptr)
    for (Thread &thread : block.threads) thread.touched = here.touched;
  block.ready.insert(block.ready.end(), here.waiting.begin(), here.waiting.end());
  here.waiting.clear();
  ++here.turn;
}

void barrier(int line) {
  char *sync = &block.barrier.sync[block.barrier.turn & 1];
  watch::release(sync);
  come_to_barrier(line);
  watch::acquire(sync);
}

// Whether a lane that comes with this mask, to this line, contradicts lanes that wait already.
static bool contradicts(const Meeting &waiting, uint32_t mask, int line) {
  const bool related = waiting.arrived != 0 && (waiting.mask & mask) != 0;
  return related && (waiting.mask != mask || waiting.line != line);
}

static void demand_agreement(const Warp &warp, uint32_t mask, int line) {
  if ((mask >> lane() & 1) == 0)
    fail("warp divergence: the mask %08x in line %d lacks lane %u, which uses it", mask, line, lane());
  for (const Meeting &meeting : warp.meetings)
    if (contradicts(meeting, mask, line))
      fail("warp divergence: lanes %08x wait in line %d under the mask %08x, lane %u came to line %d with %08x",
           meeting.arrived, meeting.line, meeting.mask, lane(), line, mask);
  if (failed()) leave();
}

// The meeting of the current warp under this mask; lanes that a short warp lacks do not count.
static Meeting &meeting_of(uint32_t mask, int line) {
  const AsScheduler scheduling;
  Warp &warp = block.warps[current().number / LANES];
  mask &= warp.present;
  demand_agreement(warp, mask, line);
  for (Meeting &meeting : warp.meetings)
    if (meeting.mask == mask) return meeting;
  return warp.meetings.emplace_back(Meeting{mask});
}

// Everybody has come: each lane gets what it asked for, and those that wait may go on.
static void hand_out(Meeting &meeting, Thread *lanes, const Thread &last) {
  uint32_t votes = 0;
  for (unsigned l = 0; l < LANES; ++l)
    if ((meeting.mask >> l & 1) != 0 && lanes[l].offered != 0) votes |= 1u << l;
  for (unsigned l = 0; l < LANES; ++l) {
    if ((meeting.mask >> l & 1) == 0) continue;
    const unsigned from = lanes[l].from_lane;
    const bool took_part = from < LANES && (meeting.mask >> from & 1) != 0;
    lanes[l].received = {took_part ? lanes[from].offered : ~0ull, votes};
    if (&lanes[l] != &last) block.ready.push_back(&lanes[l]);
  }
  meeting.arrived = 0;
  ++meeting.turn;
}

// Waits for the others of the mask, or hands out if it is the last.
static void come_to(Meeting &meeting, int line) {
  const AsScheduler scheduling;
  Thread &self = current();
  meeting.arrived |= 1u << lane();
  meeting.line = line;
  if (meeting.arrived != meeting.mask) return leave();
  hand_out(meeting, &block.threads[self.number / LANES * LANES], self);
}

Exchanged exchange(uint32_t mask, uint64_t offered, unsigned from_lane, int line, bool orders) {
  Thread &self = current();
  self.offered = offered;
  self.from_lane = from_lane;
  Meeting &meeting = meeting_of(mask, line);
  char *sync = &meeting.sync[meeting.turn & 1];
  if (orders) watch::release(sync);
  come_to(meeting, line);
  if (orders) watch::acquire(sync);
  return self.received;
}

void unwatched(bool begin) { watch::ignore(begin); }

// A fence before an atomic publishes what came before it; a fence behind one, or behind a barrier that its thread has
// come to since, sees what others so published.
void fence() {
  Thread &self = current();
  self.fenced = true;
  if (self.touched != nullptr) watch::acquire(const_cast<void *>(self.touched));
}

void before_atomic(const void *address) {
  Thread &self = current();
  if (self.fenced) watch::release(const_cast<void *>(address));
  self.touched = block.barrier.touched = address;
}

}  // namespace shim
