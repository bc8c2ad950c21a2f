// The stripe locks of this process: who combines data into its memory holds those of the memory (sync/stripe_lock.hpp).
#pragma once

#include <cstdint>

#include "sync/stripe_lock.hpp"

namespace heddle::rma {

/// nullptr before `make_stripes`.
sync::StripeLocks* own_stripes() noexcept;
/// Makes them, where peers can map them if that can be. Again has no effect. False when memory is out. Thread-safe.
bool make_stripes() noexcept;

}  // namespace heddle::rma
