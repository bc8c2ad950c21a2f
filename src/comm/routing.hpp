// How the members of a new communicator agree on its routing (core/routing.hpp).
#pragma once

#include <cstdint>
#include <memory>

#include "coll/internal.hpp"
#include "core/comm.hpp"
#include "core/info.hpp"

namespace heddle {

/// What one member wants, and by a bitwise or over all members what all want: four words, so that an allreduce agrees.
struct RoutingWish {
  std::uint64_t id = 0;           ///< the context id, from the one member that makes it
  std::uint64_t refused = 0;      ///< assertions that somebody does not make
  std::uint64_t lanes = 0;        ///< lanes that somebody asked to receive in
  std::uint64_t undecided = 0;    ///< not 0: somebody asked for none

  RoutingWish& operator|=(const RoutingWish& other) noexcept {
    id |= other.id;
    refused |= other.refused;
    lanes |= other.lanes;
    undecided |= other.undecided;
    return *this;
  }
};

/// What `info` (may be nullptr) asks for on a copy of `parent` (nullptr: there is none, or nothing is inherited).
RoutingWish routing_wish(Info* info, const Comm* parent) noexcept;

/// Gives a new intracommunicator the routing on which all members agreed; each has its own `info`. \pre no message was sent on it.
/// Error code.
int apply_routing(Comm& comm, const RoutingWish& agreed, Info* info) noexcept;

/// The agreement: what everybody wants, by one allreduce over `over`. Collective. Error code. `later`: nonblocking, both stay valid.
int agree_routing(Comm& over, const RoutingWish& wish, RoutingWish& agreed) noexcept;
int agree_routing_later(Comm& over, const RoutingWish& wish, RoutingWish& agreed, Request** request, coll::Finish finish) noexcept;
/// Gives a communicator the lane of each of its ranks: kept as one number where all have the same. Error code.
int set_lanes(Comm& comm, std::unique_ptr<Lane[]> lanes) noexcept;
/// Where this member asks to receive, or no_lane.
Lane wanted_lane(Info* info, const Comm* parent) noexcept;

/// The lane of each rank, told by the ranks: the last step where not all members asked for the same lane. Collective over `comm`,
/// blocking. `lane`: where this member wants to receive; no_lane: where the context id says. Error code.
int gather_lanes(Comm& comm, Lane lane) noexcept;
/// True when that step is needed.
bool needs_lanes(const RoutingWish& agreed) noexcept;

/// Says which VCI the communicator got, and why (HEDDLE_SHOW_VCIS). For communicators that the user sees, once nothing can change.
void show_routing(const Comm& comm) noexcept;

}  // namespace heddle
