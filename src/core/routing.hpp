// Which VCIs serve a communicator, where hints or streams say more than its context id does.
#pragma once

#include <cstdint>
#include <memory>

#include "transport/address.hpp"

namespace heddle {

/// Immutable once the communicator is in use. \see comm/routing.hpp, docs/tuning.md
struct Routing {
  bool spread = false;       ///< user messages spread over the lanes by source and tag: nobody receives with wildcards
  bool free_sender = false;  ///< messages may overtake each other: each thread sends from a VCI of its own
  Lane sender = no_lane;     ///< the lane this endpoint sends from; no_lane: the one that it receives in
  Lane lane = no_lane;       ///< where all ranks receive; no_lane: not the same for all
  std::unique_ptr<Lane[]> lanes;  ///< where each rank receives, if `lane` does not say; null: as the context id says

  /// Where `rank` receives; no_lane: as the context id says.
  [[nodiscard]] Lane lane_of(int rank) const noexcept { return lanes ? lanes[rank] : lane; }
  /// How far the messages of a source with a tag lie from its receiver's own lane. Tags in a row get lanes in a row.
  static unsigned distance(int source, int tag) noexcept {
    return static_cast<unsigned>(tag) + (static_cast<unsigned>(source) * 0x9e3779b1u >> 26);
  }
};

/// The lane that the calling thread sends from where it may choose.
Lane lane_of_thread() noexcept;

}  // namespace heddle
