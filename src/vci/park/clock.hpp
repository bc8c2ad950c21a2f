// The clock that waiting is measured with: injected, so that tests decide what time it is.
#pragma once

#include <concepts>
#include <cstdint>

#include "sys/clock.hpp"

namespace heddle::park {

/// Gives nanoseconds that never run backwards and are greater than 0.
template <typename C>
concept Clock = requires {
  { C::now_ns() } noexcept -> std::same_as<std::int64_t>;
};

/// The library's: a plain call of clock_gettime.
struct MonotonicClock {
  static std::int64_t now_ns() noexcept { return sys::now_ns(); }
};
static_assert(Clock<MonotonicClock>);

}  // namespace heddle::park
