// How often a VCI looks at the network while others give it work.
#pragma once

#include <cstdint>

namespace heddle::net {

/// A look at the network is a system call or two; a look at a ring of shared memory is a load. A VCI that has neighbours and a network would pay
/// the first for each of the second. So while neighbours' records keep coming, and for a while after, looks at the network are spaced.
///
/// When to use it: once for each step of progress. The network waits `spacing` at most, and not at all once it had something, until the
/// next record of a neighbour. A process without such records never reads the clock. Not thread-safe: the VCI's holder's.
class LookPace {
 public:
  static constexpr std::int64_t spacing = 4'000;     ///< nanoseconds between looks at the network while neighbours are busy
  static constexpr std::int64_t busy_for = 50'000;   ///< nanoseconds for which neighbours count as busy after a record

  /// Whether this step should look. \param neighbours there was a record of one in this step. \param clock gives nanoseconds
  template <typename Clock>
  bool due(bool neighbours, Clock&& clock) noexcept {
    if (!neighbours && !busy_until_) [[likely]] return true;
    const std::int64_t now = clock();
    if (neighbours) busy_until_ = now + busy_for;
    else if (now >= busy_until_) return found(), true;
    if (now < next_) return false;
    next_ = now + spacing;
    return true;
  }
  /// The look found something.
  void found() noexcept { busy_until_ = 0; }

 private:
  std::int64_t busy_until_ = 0;  ///< 0: they are not
  std::int64_t next_ = 0;
};

}  // namespace heddle::net
