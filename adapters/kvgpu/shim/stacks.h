// Stacks of their own for the threads of a block, and changing from one to another.
#pragma once
#include <sys/mman.h>
#include <ucontext.h>

#include <csetjmp>
#include <cstddef>

namespace shim {

constexpr size_t PAGE = 4096, STACK = 64 << 10;

struct Thread;

struct Stack {
  char *memory = nullptr;
  ucontext_t context;
  jmp_buf place;
  bool begun = false;
  Thread *thread = nullptr;  // whose turn it is on this stack
};

// The scheduler's own stack, from which the others are entered and to which they return.
struct Home {
  ucontext_t context;
  jmp_buf place;
};
static Home home;

// A page that nobody may touch lies below each stack: a kernel that needs more stack ends in a fault there.
static char *allocated_stack() {
  void *memory = mmap(nullptr, PAGE + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  mprotect(memory, PAGE, PROT_NONE);
  return static_cast<char *>(memory) + PAGE;
}

static void free_stack(char *memory) { munmap(memory - PAGE, PAGE + STACK); }

// Makes `entry` what the stack does when it is first entered.
static void prepare(Stack &stack, void (*entry)()) {
  getcontext(&stack.context);
  stack.context.uc_stack.ss_sp = stack.memory;
  stack.context.uc_stack.ss_size = STACK;
  stack.context.uc_link = nullptr;
  makecontext(&stack.context, entry, 0);
  stack.begun = false;
}

#ifdef SHIM_SANITIZED

// Sanitizers know what swapcontext does, and take a longjmp to another stack for an error.
static void go(Stack &stack) { swapcontext(&home.context, &stack.context); }
static void go_home(Stack &stack) { swapcontext(&stack.context, &home.context); }

#else

// Ten times faster than swapcontext, which asks the system to save the signal mask.
static void go(Stack &stack) {
  if (_setjmp(home.place) != 0) return;
  if (stack.begun) _longjmp(stack.place, 1);
  stack.begun = true;
  setcontext(&stack.context);
}

static void go_home(Stack &stack) {
  if (_setjmp(stack.place) == 0) _longjmp(home.place, 1);
}

#endif

}  // namespace shim
