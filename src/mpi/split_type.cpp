#include "mpi/split_type.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <string>

#include "coll/internal.hpp"
#include "coll/steps.hpp"
#include "comm/session.hpp"
#include "comm/split.hpp"
#include "core/hints.hpp"
#include "core/runtime.hpp"
#include "mpi/hardware.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {
namespace {

/// Kinds of hardware from the largest down. One node is one "Machine".
constexpr const char* kinds[] = {"Machine", "Package", "NUMANode", "L3Cache", "L2Cache", "L1Cache", "Core", "PU"};
constexpr int kind_count = static_cast<int>(std::size(kinds));
constexpr int nowhere = -1;  ///< the process is not confined to one item of the kind, or the kind is not known here

struct Place {
  int item[kind_count];  ///< numbers within the node; that of "Machine" is the node's
};

Place my_place() noexcept {
  Place place;
  std::fill(std::begin(place.item), std::end(place.item), nowhere);
  for (const HardwareType& type : hardware_types())
    for (int k = 0; k < kind_count; ++k)
      if (type.name == kinds[k] && type.restricted) place.item[k] = type.item;
  place.item[0] = own_node();
  return place;
}

/// The kind that an info value names ("hwloc://Core", "core"), or -1.
int find_kind(std::string_view name) noexcept {
  constexpr std::string_view scheme = "hwloc://";
  if (name.substr(0, scheme.size()) == scheme) name.remove_prefix(scheme.size());
  if (name == "mpi_shared_memory") return 0;
  for (int k = 0; k < kind_count; ++k)
    if (std::strlen(kinds[k]) == name.size() && !strncasecmp(kinds[k], name.data(), name.size())) return k;
  return -1;
}

/// Splits by node, and within each node by `item`. `nowhere` gets nothing.
int split_within_node(Comm& parent, int item, int key, Comm** out) noexcept {
  Comm* node = nullptr;
  if (const int code = split_by_color(parent, own_node(), key, &node)) return code;
  if (!node) return MPI_SUCCESS;
  // Key 0: the ranks of `node` are in the wanted order already.
  const int code = split_by_color(*node, item == nowhere ? MPI_UNDEFINED : item, 0, out);
  release_comm(node);
  return code;
}

void tell_kind(Comm* comm, int kind) noexcept {
  if (!comm) return;
  Info* info = new_info();
  if (!info) return;
  info->put("mpi_hw_resource_type", kind == 0 ? std::string("mpi_shared_memory") : std::string("hwloc://") + kinds[kind]);
  take_hints(*comm, info);
  release_info(info);
}

int split_by_kind(Comm& parent, int kind, int key, Comm** out) noexcept {
  const Place place = my_place();
  const int code = kind == 0 ? split_by_color(parent, place.item[0], key, out)
                             : split_within_node(parent, place.item[kind], key, out);
  if (!code) tell_kind(*out, kind);
  return code;
}

/// Everybody must name the same resource; a process that named none still takes part.
int split_guided(Comm& parent, int key, Info* info, bool sets_too, Comm** out) noexcept {
  std::string value;
  int kind = -1;
  if (info && info->find("mpi_hw_resource_type", &value)) {
    kind = find_kind(value);
  } else if (sets_too && info && info->find("mpi_pset_name", &value)) {
    Group* set = nullptr;
    if (process_set_group(value.c_str(), &set)) return split_by_color(parent, MPI_UNDEFINED, key, out);  // an unknown one
    const bool member = set->rank != MPI_UNDEFINED;
    const int color = member ? static_cast<int>(set->process(0) & 0x7fffffff) : MPI_UNDEFINED;
    release_group(set);
    return split_by_color(parent, color, key, out);
  }
  if (kind < 0) return split_by_color(parent, MPI_UNDEFINED, key, out);
  return split_by_kind(parent, kind, key, out);
}

/// By the largest kind of hardware that divides those who take part. None: nothing for anybody. `told` (may be nullptr) learns which
/// it was.
int split_unguided(Comm& parent, int key, Info* told, Comm** out) noexcept {
  if (parent.inter) return error(MPI_ERR_COMM, "MPI_COMM_TYPE_HW_UNGUIDED needs an intracommunicator");
  Comm* all = nullptr;
  if (const int code = split_by_color(parent, 0, key, &all)) return code;
  const Place mine = my_place();
  const std::unique_ptr<Place[]> places(new (std::nothrow) Place[all->size]);
  int code = places ? coll::allgather(&mine, sizeof mine, coll::byte_type(), places.get(), sizeof mine, coll::byte_type(), *all)
                    : error(MPI_ERR_NO_MEM, "no memory for the places of %d ranks", all->size);
  for (int k = 0; k < kind_count && !code; ++k) {
    bool divides = false, known = true;
    for (int r = 0; r < all->size; ++r) {
      known = known && places[r].item[k] != nowhere;
      divides = divides || places[r].item[k] != places[0].item[k] || places[r].item[0] != places[0].item[0];
    }
    if (!divides || !known) continue;
    code = split_by_kind(*all, k, 0, out);
    std::string value;
    if (*out && told && !told->predefined_value && (*out)->info->find("mpi_hw_resource_type", &value))
      told->put("mpi_hw_resource_type", value);
    break;
  }
  release_comm(all);
  return code;
}

int split(Comm& parent, int split_type, int key, Info* info, Comm** out) noexcept {
  switch (split_type) {
    // Who stays out does not know which kind of split the others make, so all kinds begin with the same exchange.
    case MPI_UNDEFINED: return split_by_color(parent, MPI_UNDEFINED, key, out);
    case MPI_COMM_TYPE_SHARED: return split_by_color(parent, own_node(), key, out);
    case MPI_COMM_TYPE_HW_GUIDED: return split_guided(parent, key, info, false, out);
    case MPI_COMM_TYPE_RESOURCE_GUIDED: return split_guided(parent, key, info, true, out);
    case MPI_COMM_TYPE_HW_UNGUIDED: return split_unguided(parent, key, info, out);
    default:
      return error(MPI_ERR_ARG, "split_type is %d; it must be MPI_COMM_TYPE_SHARED, _HW_GUIDED, _HW_UNGUIDED, "
                   "_RESOURCE_GUIDED or MPI_UNDEFINED", split_type);
  }
}

}  // namespace

int split_by_type(Comm& parent, int split_type, int key, Info* info, Comm** out) noexcept {
  *out = nullptr;
  const int code = split(parent, split_type, key, info, out);
  if (!*out || !info) return code;
  std::string kind;  // as the library spells it, whatever `info` says
  const bool of_a_kind = (*out)->info && (*out)->info->find("mpi_hw_resource_type", &kind);
  take_hints(**out, info);
  if (of_a_kind) (*out)->info->put("mpi_hw_resource_type", kind);
  return code;
}

}  // namespace heddle::mpi
