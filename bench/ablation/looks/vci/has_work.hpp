// Ablation: a poll takes the lock without having looked whether there is work.
#pragma once

#include "vci/vci.hpp"

namespace heddle {

[[nodiscard]] inline bool has_work(const Vci&) noexcept { return true; }

}  // namespace heddle
