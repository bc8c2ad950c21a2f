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

}  // namespace heddle::sync
