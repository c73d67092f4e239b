// The hooks of ThreadSanitizer, empty without it. A thread of a kernel is a "fiber" to it: it has a clock of
// its own, and accesses of two fibers race unless something orders them.
#pragma once
#include <cstddef>
#include <cstdio>
#include <vector>

#include "scheduler.h"

#ifdef SHIM_THREAD_SANITIZER
extern "C" {
void *__tsan_get_current_fiber();
void *__tsan_create_fiber(unsigned flags);
void __tsan_set_fiber_name(void *fiber, const char *name);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *address);
void __tsan_release(void *address);
void AnnotateIgnoreReadsBegin(const char *file, int line);  // and writes
void AnnotateIgnoreReadsEnd(const char *file, int line);
void __tsan_java_init(unsigned long begin, unsigned long size);
void __tsan_java_alloc(unsigned long begin, unsigned long size);
void __tsan_java_free(unsigned long begin, unsigned long size);
}
#endif

namespace shim::watch {

#ifdef SHIM_THREAD_SANITIZER

inline void *here() { return __tsan_get_current_fiber(); }

// What launches of all libraries use: visible, so that the linker keeps one for a process.
__attribute__((visibility("default"))) inline std::vector<void *> &identities_made() {
  static std::vector<void *> made;
  return made;
}

// The identity of the nth thread of a launch, over all blocks. Making one takes half a millisecond, so launches use
// the same ones, which is right because each comes after all of the one before. There can be about 8000: beyond MOST
// they are used again within a launch, and races between threads so far apart are not seen.
inline void *identity(size_t n) {
  constexpr size_t MOST = 4096;
  std::vector<void *> &made = identities_made();
  if (n < MOST && n >= made.size()) made.push_back(__tsan_create_fiber(0));
  return made[n % MOST];
}

// Changes who is running; 1 means that the change itself orders nothing.
inline void become(void *identity) { __tsan_switch_to_fiber(identity, 1); }

// What reports call it.
inline void call(void *identity, const uint3 &at) {
  char name[60];
  snprintf(name, sizeof name, "thread %u,%u,%u of block %u,%u,%u", at.x, at.y, at.z, blockIdx.x, blockIdx.y, blockIdx.z);
  __tsan_set_fiber_name(identity, name);
}

inline void acquire(void *address) { __tsan_acquire(address); }
inline void release(void *address) { __tsan_release(address); }

// Whether what the thread does is seen.
inline void ignore(bool begin) { (begin ? AnnotateIgnoreReadsBegin : AnnotateIgnoreReadsEnd)(__FILE__, __LINE__); }

// Forgets who touched this memory before: its new owner got it fresh. The interface is the one for Java's
// allocator, which is told beforehand where its heap is: everywhere.
inline void fresh(void *begin, size_t size) {
  static bool told = false;
  if (!told) __tsan_java_init(8, (1ul << 47) - 8);
  told = true;
  const unsigned long first = reinterpret_cast<unsigned long>(begin) & ~7ul;
  __tsan_java_alloc(first, (size + 15) & ~7ul);
}

// Forgets what the sync variables in this memory have ordered.
inline void forget(void *begin, size_t size) {
  __tsan_java_free(reinterpret_cast<unsigned long>(begin) & ~7ul, (size + 15) & ~7ul);
}

#else

inline void *here() { return nullptr; }
inline void *identity(size_t) { return nullptr; }
inline void become(void *) {}
inline void call(void *, const uint3 &) {}
inline void acquire(void *) {}
inline void release(void *) {}
inline void ignore(bool) {}
inline void fresh(void *, size_t) {}
inline void forget(void *, size_t) {}

#endif

}  // namespace shim::watch
