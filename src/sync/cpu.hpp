// Processor hints for code that spins or contends for cache lines.
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

/// Fences the loads of a polling loop that has no pause: otherwise the processor has many of them in flight and must squash all of them when the
/// flag's line changes (a memory-order machine clear, a tenth of a message's time).
inline void one_look() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_lfence();
#endif
}

/// Prefetches a line for writing: the processor takes it from other cores meanwhile.
inline void own_soon(const void* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace heddle::sync
