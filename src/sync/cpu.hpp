// What the processor offers to code that waits or fights over cache lines.
#pragma once

#include <cstddef>

namespace heddle::sync {

inline constexpr std::size_t cache_line = 64;

/// A hint inside a spin loop: saves power and, on a shared core, the other thread's time.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Ends a look at a flag in a loop whose looks follow each other without a pause: keeps the processor from having many of them under
/// way at once, which it would all have to take back when the flag's line changes (a tenth of a message's time).
inline void one_look() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_lfence();
#endif
}

/// Asks for a line of memory in order to write it soon: the processor takes it from the other cores meanwhile.
inline void own_soon(const void* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace heddle::sync
