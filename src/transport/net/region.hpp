// Memory that peers read, write and update without asking a protocol.
#pragma once

#include <cstdint>
#include <type_traits>

#include "transport/address.hpp"
#include "transport/holder.hpp"
#include "transport/wire.hpp"

namespace heddle::net {

/// Names a region to the engines of other processes; travels in a record as it is.
struct RemoteRegion {
  std::uint64_t key, base, bytes;
  VciIndex vci;    ///< whose it is: the connection to that VCI leads to it, and no other
  wire::Use use;   ///< what peers may do
  std::uint8_t reserved[5];
};
static_assert(sizeof(RemoteRegion) == 32 && std::is_trivially_copyable_v<RemoteRegion>);

/// A region of this process: who exposed it keeps this until it is withdrawn.
struct Region {
  wire::Registration registration;
  RemoteRegion name{};  ///< for peers
};

/// What was posted and is not done, of whom it belongs to: the engine adds and subtracts, with the VCI held. Where it becomes nothing, sleepers
/// are woken.
struct Pending {
  std::uint32_t under_way = 0;
  /// Called when it has become nothing, and may end its life; null: whoever waits looks.
  void (*done)(Pending& self, Held& held) noexcept = nullptr;

  constexpr Pending(std::uint32_t operations = 0) noexcept : under_way(operations) {}
  constexpr operator std::uint32_t() const noexcept { return under_way; }
};

}  // namespace heddle::net
