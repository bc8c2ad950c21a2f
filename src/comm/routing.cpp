#include "comm/routing.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "coll/internal.hpp"
#include "coll/steps.hpp"
#include "comm/stream.hpp"
#include "core/op.hpp"
#include "sys/error.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"
#include "vci/vci.hpp"

namespace heddle {
namespace {

HEDDLE_PARAM_BOOL(show_vcis, "HEDDLE_SHOW_VCIS", 0, "print which VCI each communicator gets, and why");

constexpr std::uint64_t agreed_assertions = assert_no_any_tag | assert_no_any_source | assert_allow_overtaking;

/// The lane that a hint names, or no_lane. Numbers beyond the lanes wrap around, as those beyond a process's VCIs do.
Lane lane_hint(Info* info, const char* key) noexcept {
  std::string value;
  if (!info || !info->find(key, &value)) return no_lane;
  char* end = nullptr;
  const long number = std::strtol(value.c_str(), &end, 10);
  if (end == value.c_str() || *end || number < 0) return no_lane;
  return lane_at(static_cast<unsigned>(number % lanes));
}

/// The communicator's routing, made when it has none, to be completed by its maker. nullptr: no memory.
Routing* routing_of(Comm& comm) noexcept {
  if (!comm.routing) comm.routing = new (std::nothrow) Routing;
  if (comm.routing) {
    comm.plain = false;
    comm.self = MPI_UNDEFINED;
  }
  return const_cast<Routing*>(comm.routing);  // nobody else knows the communicator yet
}

int out_of_memory() noexcept { return error(MPI_ERR_NO_MEM, "no memory for the VCIs of a communicator"); }

}  // namespace

Lane wanted_lane(Info* info, const Comm* parent) noexcept {
  Lane lane = lane_hint(info, "receiver_vci");
  if (lane == no_lane) lane = lane_hint(info, "vci");
  std::string inherit;
  if (lane == no_lane && parent && info && info->find("inherit_vci", &inherit) && inherit == "true") lane = parent->lane;
  return lane;
}

RoutingWish routing_wish(Info* info, const Comm* parent) noexcept {
  if (parent && parent->streams) info = nullptr;  // a copy has its streams, and they choose
  std::uint64_t made = 0;
  const struct {
    const char* key;
    std::uint64_t bit;
  } keys[] = {{"mpi_assert_no_any_tag", assert_no_any_tag},
              {"mpi_assert_no_any_source", assert_no_any_source},
              {"mpi_assert_allow_overtaking", assert_allow_overtaking}};
  for (const auto& [key, bit] : keys) {
    std::string value;
    if (info && info->find(key, &value) && value == "true") made |= bit;
  }
  RoutingWish wish;
  wish.refused = ~made & agreed_assertions;
  const Lane lane = wanted_lane(info, parent);
  if (lane != no_lane) wish.lanes = std::uint64_t{1} << number(lane);
  else wish.undecided = 1;
  return wish;
}

bool needs_lanes(const RoutingWish& agreed) noexcept {
  return agreed.lanes && (agreed.undecided || std::popcount(agreed.lanes) > 1);
}

int apply_routing(Comm& comm, const RoutingWish& agreed, Info* info) noexcept {
  if (comm.streams) return MPI_SUCCESS;
  const std::uint64_t asserted = ~agreed.refused & agreed_assertions;
  const bool spread = (asserted & assert_no_any_tag) && (asserted & assert_no_any_source);
  const bool free_sender = asserted & assert_allow_overtaking;
  const Lane sender = lane_hint(info, "sender_vci");
  const bool same_lane = agreed.lanes && !needs_lanes(agreed);
  if (!spread && !free_sender && sender == no_lane && !same_lane) return MPI_SUCCESS;
  Routing* routing = routing_of(comm);
  if (!routing) return out_of_memory();
  routing->spread = spread;
  routing->free_sender = free_sender;
  routing->sender = sender;
  if (same_lane) {
    routing->lane = lane_at(static_cast<unsigned>(std::countr_zero(agreed.lanes)));
    routing->lanes.reset();
    comm.lane = routing->lane;
  }
  return MPI_SUCCESS;
}

int set_lanes(Comm& comm, std::unique_ptr<Lane[]> lanes) noexcept {
  Routing* routing = routing_of(comm);
  if (!routing) return out_of_memory();
  comm.lane = lanes[static_cast<std::size_t>(comm.rank)];
  const bool same = std::all_of(lanes.get(), lanes.get() + comm.size, [&](Lane lane) { return lane == comm.lane; });
  routing->lane = same ? comm.lane : no_lane;
  if (same) lanes.reset();
  routing->lanes = std::move(lanes);
  return MPI_SUCCESS;
}

int gather_lanes(Comm& comm, Lane lane) noexcept {
  const Lane own = lane == no_lane ? comm.lane : lane;
  std::unique_ptr<Lane[]> all(new (std::nothrow) Lane[static_cast<std::size_t>(comm.size)]);
  if (!all) return out_of_memory();
  if (const int code = coll::allgather(&own, sizeof own, coll::byte_type(), all.get(), sizeof own, coll::byte_type(), comm)) return code;
  return set_lanes(comm, std::move(all));
}

namespace {
constexpr MPI_Count words_of_wish = sizeof(RoutingWish) / 8;
Datatype& word() noexcept { return *builtin_datatype(reinterpret_cast<std::uintptr_t>(MPI_UINT64_T)); }
const Op& bitwise_or() noexcept { return *builtin_op(reinterpret_cast<std::uintptr_t>(MPI_BOR)); }
}  // namespace

int agree_routing(Comm& over, const RoutingWish& wish, RoutingWish& agreed) noexcept {
  return coll::allreduce(&wish, &agreed, words_of_wish, word(), bitwise_or(), over);
}

int agree_routing_later(Comm& over, const RoutingWish& wish, RoutingWish& agreed, Request** request, coll::Finish finish) noexcept {
  return coll::iallreduce(&wish, &agreed, words_of_wish, word(), bitwise_or(), over, request, finish);
}

void show_routing(const Comm& comm) noexcept {
  if (!show_vcis.value() || comm.rank < 0) return;
  const char* why = "from its context id";
  if (comm.streams) why = streams_of(comm)->table->own[0] ? "that of its stream" : "from its context id (no stream)";
  else if (comm.routing && comm.routing->lane_of(comm.rank) != no_lane) why = "from the hints vci, receiver_vci or inherit_vci";
  else if (comm.group->endpoints) why = "from its context id and its place among the endpoints of this process";
  const char* how = "";
  if (comm.routing && comm.routing->spread) how = "; messages spread from there by source and tag (no wildcards asserted)";
  const unsigned vcis = configured_vcis();
  char sender[64] = "";
  if (comm.routing && comm.routing->sender != no_lane)
    std::snprintf(sender, sizeof sender, "; sends from VCI %u (sender_vci)", number(comm.routing->sender) % vcis);
  else if (comm.routing && comm.routing->free_sender)
    std::snprintf(sender, sizeof sender, "; each thread sends from a VCI of its own (overtaking allowed)");
  sys::notice("communicator %llx%s%s (rank %d of %d): VCI %u of %u, %s%s%s", static_cast<unsigned long long>(comm.context),
              *comm.name ? " " : "", comm.name, comm.rank, comm.size, number(comm.lane) % vcis, vcis, why, how, sender);
}

}  // namespace heddle
