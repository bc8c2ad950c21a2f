// Whether it is worth entering a VCI.
#pragma once

#include "vci/vci.hpp"

namespace heddle {

/// A hint, without the lock: there is something for `progress` to do.
[[nodiscard]] inline bool has_work(const Vci& vci) noexcept {
  return vci.ring.pending() || vci.backlogged.load(std::memory_order_relaxed) || vci.moving.load(std::memory_order_relaxed) ||
         vci.net.load(std::memory_order_relaxed);
}

}  // namespace heddle
