// The clock that the library measures short times with.
#pragma once

#include <time.h>

#include <cstdint>

namespace heddle::sys {

/// Nanoseconds of CLOCK_MONOTONIC. It stands still while the machine is suspended. Thread-safe; no system call where the kernel's vDSO serves it.
inline std::int64_t now_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace heddle::sys
