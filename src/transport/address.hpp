// The one idea of the library: every rank of every communicator resolves to an address {process, VCI}.
#pragma once

#include <cstdint>

namespace heddle {

/// A process of the job (and of jobs it connected to), as an index into this process's table of processes. Local name.
using ProcessIndex = std::uint32_t;

/// `vci` is a lane: the owner maps 0..63 to the VCIs it has. `index` tells apart the members of a communicator that live in one
/// process: 0 but for endpoints. Each has a message space of its own, so endpoints may share a VCI. \see comm/endpoints.hpp
struct Address {
  ProcessIndex process;
  std::uint16_t vci;
  std::uint32_t index;
  friend bool operator==(const Address&, const Address&) = default;
};

}  // namespace heddle
