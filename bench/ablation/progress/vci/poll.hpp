// Ablation: each call that waits or tests polls all VCIs, not only that of its request (paper 004, figure 6).
#pragma once

#include "vci/vci.hpp"

namespace heddle {

template <typename Reap>
inline bool poll_fairly(Vci&, const Request*, Reap&&) noexcept { return progress_all(); }

inline void poll_for_test(Vci&) noexcept { progress_all(); }

}  // namespace heddle
