// Which VCIs a call that waits or tests makes progress on.
#pragma once

#include "vci/has_work.hpp"

namespace heddle {

/// `poll` for a thread that waits on `vci`, and now and then for the others.
/// \param reap called with the guard when there was work: what a thread that waits does best while it holds the VCI
template <typename Reap>
inline bool poll_fairly(Vci& vci, const Request* awaited, Reap&& reap) noexcept {
  bool worked = false, around = false;
  if (!has_work(vci)) return false;
  try_submit(vci, [&](VciGuard& guard) {
    worked = progress(guard, awaited);
    if (!worked) return;
    reap(guard);
    around = look_around(vci);
  });
  if (around) [[unlikely]] progress_all();
  return worked;
}

/// `poll` for a call that found its operation incomplete, and now and then for the other VCIs: programs that test in a loop must drive them too.
[[gnu::noinline]] inline void poll_for_test(Vci& vci) noexcept {
  static constinit thread_local unsigned polls = 0;
  poll(vci);
  if (++polls % 16 == 0) progress_all();
}

}  // namespace heddle
