// Which VCIs serve a communicator, where hints or streams say more than its context id does.
#pragma once

#include <cstdint>
#include <memory>

namespace heddle {

/// Immutable once the communicator is in use. \see comm/routing.hpp, docs/tuning.md
struct Routing {
  bool spread = false;       ///< user messages spread over the lanes by source and tag: nobody receives with wildcards
  bool free_sender = false;  ///< messages may overtake each other: each thread sends from a VCI of its own
  std::int16_t sender = -1;  ///< the lane this endpoint sends from; -1: the one that it receives in
  std::int16_t lane = -1;    ///< where all ranks receive; -1: not the same for all
  std::unique_ptr<std::uint16_t[]> lanes;  ///< where each rank receives, if `lane` does not say; null: as the context id says

  /// Where `rank` receives; -1: as the context id says.
  [[nodiscard]] int lane_of(int rank) const noexcept { return lanes ? lanes[rank] : lane; }
  /// How far the messages of a source with a tag lie from its receiver's own lane. Tags in a row get lanes in a row.
  static unsigned distance(int source, int tag) noexcept {
    return static_cast<unsigned>(tag) + (static_cast<unsigned>(source) * 0x9e3779b1u >> 26);
  }
};

/// The lane that the calling thread sends from where it may choose.
unsigned lane_of_thread() noexcept;

}  // namespace heddle
