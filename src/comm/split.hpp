// The parts of MPI_Comm_split that its relatives share.
#pragma once

#include <memory>

#include "core/comm.hpp"

namespace heddle {

/// What each process says in a split: 16 bytes on the wire.
struct SplitEntry {
  int color, key;
  ContextId offer;  ///< an id that its group may take should it be the leader
};
using SplitTable = std::unique_ptr<SplitEntry[]>;

/// Everybody's entry by rank of the intracommunicator `comm`. Collective.
int gather_split_entries(Comm& comm, int color, int key, ContextId offer, SplitTable& table) noexcept;

/// The ranks of `from` that said `color`, ordered by key and then by rank; `*leader` is the first one's rank in `from`.
/// No one: `*group` is nullptr.
int color_group(const Group& from, const SplitEntry* entries, int color, Group** group, int* leader) noexcept;

/// MPI_Comm_split with colors that were checked. Any int but MPI_UNDEFINED names a group.
int split_by_color(Comm& parent, int color, int key, Comm** out) noexcept;

}  // namespace heddle
