// The one idea of the library: every rank of every communicator resolves to an address {process, lane}.
#pragma once

#include <cstdint>

namespace heddle {

/// A process of the job (and of jobs it connected to), as an index into this process's table of processes. Local name.
using ProcessIndex = std::uint32_t;

/// A way into a process, 0 … lanes-1: what context ids, hints and tags choose. Each process spreads its lanes over the VCIs that it has (lane
/// modulo their number), so both ends of a message agree on the lane without asking, and may have different numbers of VCIs.
enum class Lane : std::uint16_t {};
inline constexpr unsigned lanes = 64;
inline constexpr Lane no_lane{0xffff};
constexpr unsigned number(Lane lane) noexcept { return static_cast<unsigned>(lane); }
/// Numbers beyond the last lane begin again with the first.
constexpr Lane lane_at(unsigned n) noexcept { return static_cast<Lane>(n % lanes); }

/// One of the VCIs of a process: 0 … their number - 1.
enum class VciIndex : std::uint16_t {};
constexpr unsigned number(VciIndex vci) noexcept { return static_cast<unsigned>(vci); }
constexpr VciIndex vci_at(unsigned n) noexcept { return static_cast<VciIndex>(n); }
/// A lane that leads to the VCI, whatever the number of VCIs: for replies.
constexpr Lane lane_to(VciIndex vci) noexcept { return static_cast<Lane>(vci); }
/// The VCI that such a lane leads to.
constexpr VciIndex vci_of(Lane reply) noexcept { return static_cast<VciIndex>(reply); }

/// The owner maps the lane to one of its VCIs. `index` tells apart the members of a communicator that live in one
/// process: 0 but for endpoints. Each has a message space of its own, so endpoints may share a VCI. \see comm/endpoints.hpp
struct Address {
  ProcessIndex process;
  Lane lane;
  std::uint32_t index;
  friend bool operator==(const Address&, const Address&) = default;
};

}  // namespace heddle
