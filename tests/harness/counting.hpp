// Counts what a piece of code costs, exactly and on the very library that users install: atomic read-modify-writes,
// locks, allocations, system calls. The calling thread runs the code one instruction at a time (the processor's trap
// flag); a signal handler looks at each instruction before it is executed.
//
//   test::Counts c = test::count([&] { MPI_Send(...); });
//
// Costs some microseconds an instruction, so the code must not wait for long. x86-64 only: `can_count()` is false where
// it does not work (other processors, sanitizers, simulators), and a test should then end with status 77 (skipped).
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace test {

struct Counts {
  long instructions = 0;
  long atomics = 0;  // read-modify-writes: `lock` prefix, or `xchg` with memory
  long locks = 0;    // of these, exchanges of one byte (sync::Lock); and calls that lock a pthread mutex or its like
  long allocations = 0;  // malloc and its siblings; releases by `free` are not counted
  long calls = 0;        // system calls
  // Cache lines that were the object of an atomic read-modify-write; what does not fit is in `lines_lost`.
  static constexpr int room = 64;
  std::uintptr_t lines[room] = {};
  int line_count = 0, lines_lost = 0;

  bool touched(std::uintptr_t line) const {
    for (int i = 0; i < line_count; ++i)
      if (lines[i] == line) return true;
    return false;
  }
};

namespace counting {

inline thread_local Counts* current = nullptr;
struct Entry {
  const char* name;
  bool lock;  // else an allocation
  std::uintptr_t address;
};
inline Entry entries[] = {
    {"malloc", false, 0},
    {"calloc", false, 0},
    {"realloc", false, 0},
    {"memalign", false, 0},
    {"posix_memalign", false, 0},
    {"aligned_alloc", false, 0},
    {"pthread_mutex_lock", true, 0},
    {"pthread_mutex_trylock", true, 0},
    {"pthread_rwlock_rdlock", true, 0},
    {"pthread_rwlock_wrlock", true, 0},
    {"pthread_spin_lock", true, 0},
};

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

// The address that the ModRM byte at `at` names. \pre it names memory
inline std::uintptr_t operand(const unsigned char* at, unsigned rex, const greg_t* regs, int immediate) {
  static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  const unsigned mod = *at >> 6, rm = *at & 7;
  ++at;
  std::uintptr_t address = 0;
  const auto displacement = [&](int bytes) {
    std::int32_t wide;
    if (bytes == 1) return static_cast<std::uintptr_t>(static_cast<std::intptr_t>(static_cast<signed char>(*at++)));
    std::memcpy(&wide, at, 4);
    at += 4;
    return static_cast<std::uintptr_t>(static_cast<std::intptr_t>(wide));
  };
  if (rm == 4) {
    const unsigned scale = *at >> 6, index = (*at >> 3 & 7) | (rex & 2) << 2, base = *at & 7;
    ++at;
    if (index != 4) address += static_cast<std::uintptr_t>(regs[order[index]]) << scale;
    if (base == 5 && mod == 0) return address + displacement(4);
    address += static_cast<std::uintptr_t>(regs[order[base | (rex & 1) << 3]]);
  } else if (rm == 5 && mod == 0) {
    address = displacement(4);
    return address + reinterpret_cast<std::uintptr_t>(at) + static_cast<std::uintptr_t>(immediate);
  } else {
    address = static_cast<std::uintptr_t>(regs[order[rm | (rex & 1) << 3]]);
  }
  if (mod == 1) address += displacement(1);
  if (mod == 2) address += displacement(4);
  return address;
}

inline void look(int, siginfo_t*, void* context) {
  Counts* counts = current;
  if (!counts) return;
  const greg_t* regs = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto ip = static_cast<std::uintptr_t>(regs[REG_RIP]);
  ++counts->instructions;
  for (const Entry& entry : entries)
    if (entry.address == ip) ++(entry.lock ? counts->locks : counts->allocations);
  const auto* at = reinterpret_cast<const unsigned char*>(ip);
  bool locked = false;
  for (;; ++at) {  // prefixes
    if (*at == 0xF0)
      locked = true;
    else if (*at != 0x66 && *at != 0x67 && *at != 0xF2 && *at != 0xF3 && *at != 0x64 && *at != 0x65)
      break;
  }
  unsigned rex = 0;
  if ((*at & 0xF0) == 0x40) rex = *at++;
  if (at[0] == 0x0F && at[1] == 0x05) ++counts->calls;
  const bool exchange = (at[0] == 0x86 || at[0] == 0x87) && at[1] >> 6 != 3;
  if (!locked && !exchange) return;
  ++counts->atomics;
  if (at[0] == 0x86) ++counts->locks;
  const bool immediate8 = at[0] == 0x80 || at[0] == 0x83 || (at[0] == 0x0F && at[1] == 0xBA);
  const int immediate = immediate8 ? 1 : at[0] == 0x81 ? 4 : 0;
  const unsigned char* modrm = at[0] == 0x0F ? at + 2 : at + 1;
  const std::uintptr_t line = operand(modrm, rex, regs, immediate) & ~std::uintptr_t{63};
  if (counts->touched(line)) return;
  if (counts->line_count == Counts::room)
    ++counts->lines_lost;
  else
    counts->lines[counts->line_count++] = line;
}

// The stack below the pointer belongs to the surrounding code (the red zone): step over it.
inline void begin() {
  asm volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "memory", "cc");
}
inline void end() {
  asm volatile("lea -128(%%rsp), %%rsp; pushfq; andq $-257, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "memory", "cc");
}

#else
inline void look(int, siginfo_t*, void*) {}
inline void begin() {}
inline void end() {}
#endif

}  // namespace counting

// Runs `code` on the calling thread and says what it did.
template <typename Code>
[[gnu::noinline]] Counts count(Code code) {
  Counts counts;
  counting::current = &counts;
  counting::begin();
  code();
  counting::end();
  counting::current = nullptr;
  return counts;
}

// Switches counting on and tries it on code whose costs are known. False where it does not work.
inline bool can_count() {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  for (auto& entry : counting::entries) {
    entry.address = reinterpret_cast<std::uintptr_t>(dlsym(RTLD_NEXT, entry.name));
    if (!entry.address) entry.address = reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, entry.name));
  }
  struct sigaction action = {};
  action.sa_sigaction = counting::look;
  action.sa_flags = SA_SIGINFO;
  if (sigaction(SIGTRAP, &action, nullptr) != 0) return false;
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  alignas(64) static std::atomic<long> number{0};
  alignas(64) static std::atomic<bool> held{false};
  const auto known = [] {
    void* volatile memory = malloc(100);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    number.fetch_add(3, std::memory_order_relaxed);
    held.exchange(true, std::memory_order_acquire);
    syscall(SYS_getppid);
    free(memory);
  };
  known();  // resolves the functions
  const Counts c = count(known);
  // The mutex is one lock (with atomic operations of its own when the process has threads), the exchange another.
  return c.allocations == 1 && c.locks == 2 && c.calls == 1 && c.atomics >= 2 &&
         c.touched(reinterpret_cast<std::uintptr_t>(&number)) && c.touched(reinterpret_cast<std::uintptr_t>(&held)) &&
         c.instructions > 20 && count([] {}).atomics == 0;
#else
  return false;
#endif
}

}  // namespace test
