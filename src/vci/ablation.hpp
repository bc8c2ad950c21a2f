// What each of the VCI paper's optimisations is worth: a library built with HEDDLE_ABLATION can switch them off one by
// one. In the library that users install, `built` is false and nothing of this is left.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "sync/lock.hpp"

namespace heddle {
struct Request;
class Vci;
}  // namespace heddle

namespace heddle::ablation {

#ifdef HEDDLE_ABLATION
inline constexpr bool built = true;
#else
inline constexpr bool built = false;
#endif

/// What is switched off (parameter HEDDLE_ABLATE, a comma separated list). Written before the first VCI exists.
struct Off {
  bool progress = false;  ///< every progress call polls all VCIs, not only its request's own (paper 004, figure 6)
  bool looks = false;     ///< a poll takes the lock without having looked whether there is work
  bool requests = false;  ///< one cache of requests for all VCIs, with a lock (figure 7)
  bool lines = false;     ///< the locks and counters of all VCIs lie side by side in the same cache lines (figure 8)
};
extern Off off;

/// Reads the parameter. Ends the job when it names something else.
void start() noexcept;

/// The words of a VCI that other threads touch: members of it, but in the ablation library references, so that it can
/// be chosen at start whether those of different VCIs share cache lines.
struct Words {
  sync::Lock lock;
  std::atomic<std::uint32_t> backlogged{0}, moving{0};
};
Words& words_of(unsigned vci) noexcept;

template <typename T>
using Hot = std::conditional_t<built, T&, T>;

/// The initial value of a Hot member of VCI `vci`.
template <typename T>
inline Hot<T> make_hot([[maybe_unused]] unsigned vci, [[maybe_unused]] T Words::*word) noexcept {
  if constexpr (built)
    return words_of(vci).*word;
  else
    return T{};
}

/// The one request cache of `Off::requests`.
Request* allocate_request(Vci* vci) noexcept;
void release_request(Request* request) noexcept;

}  // namespace heddle::ablation
