#include "coll/node_slots.hpp"

#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "coll/algorithms.hpp"
#include "coll/partial.hpp"
#include "core/runtime.hpp"
#include "sync/thread_sanitizer.hpp"
#include "sys/params.hpp"
#include "transport/shm/node.hpp"
#include "vci/wait.hpp"

namespace heddle::coll {
namespace {

HEDDLE_PARAM_INT(
    slot_ranks, "HEDDLE_COLL_SLOT_RANKS", 16, 0, INT32_MAX,
    "Small barriers, allreduces, allgathers and alltoalls of at most this many ranks of one node go through "
    "shared memory without messages; 0: never");

constexpr std::uint32_t calls_before = 3;  // rarely used communicators are not worth a slot
constexpr std::size_t slots_per_process = (shm::vci_offset - shm::collective_offset) / sizeof(NodeSlot);

NodeSlot* slot_at(std::byte* region, std::uint32_t index) noexcept {
  return reinterpret_cast<NodeSlot*>(region + shm::collective_offset) + index;
}

/// The slots of this process. A late rank may still read a slot whose communicator was freed here, so a slot is reused only
/// when all members have freed theirs.
class Pool {
 public:
  /// An initialised slot's index, or -1 when there is none.
  int take(ContextId context) noexcept {
    std::lock_guard lock(mutex_);
    collect_locked();
    std::uint32_t index;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else if (next_ < slots_per_process &&
               sys::commit(shm::region, shm::collective_offset + next_ * sizeof(NodeSlot), sizeof(NodeSlot))) {
      index = next_++;
    } else {
      return -1;
    }
    NodeSlot& slot = *slot_at(shm::region.base, index);
    for (NodeSlot::Part& part : slot.parts) part.sequence.store(0, std::memory_order_relaxed);
    slot.released.store(0, std::memory_order_relaxed);
    slot.context.store(context, std::memory_order_release);  // pairs with is_free of the former members
    return static_cast<int>(index);
  }

  /// Takes over the state of a communicator that was freed.
  void retire(std::unique_ptr<CommState> state) noexcept {
    std::lock_guard lock(mutex_);
    state->own->released.store(1, std::memory_order_release);  // pairs with collect_locked of the others
    retired_.push_back(std::move(state));
  }

 private:
  static bool is_free(const CommState& state) noexcept {
    for (int r = 0; r < state.size; ++r) {
      const NodeSlot& slot = *state.members[r].slot;
      // A slot that already serves another communicator was released by everyone, its owner included.
      if (slot.context.load(std::memory_order_acquire) == state.context &&
          !slot.released.load(std::memory_order_acquire))
        return false;
    }
    return true;
  }

  void collect_locked() noexcept {
    for (std::size_t i = 0; i < retired_.size();) {
      if (!is_free(*retired_[i])) {
        ++i;
        continue;
      }
      free_.push_back(static_cast<std::uint32_t>(retired_[i]->own - slot_at(shm::region.base, 0)));
      std::swap(retired_[i], retired_.back());
      retired_.pop_back();
    }
  }

  std::mutex mutex_;
  std::uint32_t next_ = 0;
  std::vector<std::uint32_t> free_;
  std::vector<std::unique_ptr<CommState>> retired_;
};

Pool& slots() noexcept {
  static Pool* pool = new Pool;  // never destroyed: communicators may be freed while the process exits
  return *pool;
}

/// Attaches to all members and takes a slot; the index, or -1 when this rank cannot.
int prepare(Comm& comm, CommState& state) noexcept {
  if (comm.inter || comm.size > slot_ranks.value() || !shm::header) return -1;
  state.members.reset(new (std::nothrow) CommState::Member[static_cast<std::size_t>(comm.size)]);
  if (!state.members) return -1;
  for (int r = 0; r < comm.size; ++r) {
    const ProcessIndex process = comm.address(r).process;
    state.members[r] = {nullptr, nullptr};
    const Route way = processes.route(process);
    if (way == Route::self) continue;
    if (way == Route::network) return -1;
    std::string problem;
    state.members[r].peer = shm::attach(process, problem);
    if (!state.members[r].peer) return -1;
  }
  return slots().take(comm.context);
}

void release(CommState* state) noexcept {
  std::unique_ptr<CommState> owned(state);
  // Without an agreement nobody reads this slot; after the region is unmapped nothing matters.
  if (!owned->own || !shm::header) return;
  if (owned->path != CommState::Path::slots) owned->size = 0;
  slots().retire(std::move(owned));
}

}  // namespace

bool decide_slots(Comm& comm) noexcept {
  CommState* state = state_of(comm);
  if (!state) {
    state = new (std::nothrow) CommState;
    if (!state) return false;  // and so never: the others find that out when they ask this rank
    comm.coll_state.store(state, std::memory_order_release);  // pairs with state_of
  }
  if (comm.size < 2 || ++state->calls < calls_before) return false;
  state->path = CommState::Path::messages;  // for the exchange that follows
  const int own = prepare(comm, *state);
  std::unique_ptr<int[]> indices(new (std::nothrow) int[static_cast<std::size_t>(comm.size)]);
  if (!indices) return false;
  Datatype& type = *builtin_datatype(reinterpret_cast<std::uintptr_t>(MPI_INT));
  Steps agreement(comm, "agreement on shared memory");
  allgather(agreement, &own, 1, &type, indices.get(), 1, type);
  bool all = agreement.finish() == MPI_SUCCESS;
  for (int r = 0; r < comm.size; ++r) all = all && indices[r] >= 0;
  state->context = comm.context;
  state->size = comm.size;
  if (own >= 0) state->own = slot_at(shm::region.base, static_cast<std::uint32_t>(own));
  if (!all) return false;
  for (int r = 0; r < comm.size; ++r) {
    shm::Peer* peer = state->members[r].peer;
    state->members[r].slot =
        slot_at(peer ? peer->region.base : shm::region.base, static_cast<std::uint32_t>(indices[r]));
  }
  state->path = CommState::Path::slots;
  return true;
}

CommState::CommState() noexcept : CommExtension{[](CommExtension& extension, Comm&) noexcept { release(static_cast<CommState*>(&extension)); }} {}

void NodeExchange::post(MPI_Count bytes) noexcept {
  const int n = state_.size;
  NodeSlot::Part& part = state_.own->parts[sequence_ & 1];
  part.bytes = static_cast<std::uint32_t>(bytes);
  sync::goes_to_another_process();
  if (n == 2) {
    part.sequence.store(sequence_, std::memory_order_release);
  } else {
    // Only the last rank to arrive wakes the sleepers, since they wait for everybody. Of ranks that arrive at the same time, at least
    // one sees all others: its store precedes its loads in the single total order of sequential consistency.
    part.sequence.store(sequence_, std::memory_order_seq_cst);
    for (int r = 0; r < n; ++r)
      if (state_.members[r].slot->parts[sequence_ & 1].sequence.load(std::memory_order_seq_cst) != sequence_) return;
  }
  for (int r = 0; r < n; ++r)
    if (shm::Peer* peer = state_.members[r].peer) peer->ring_doorbell(vci_at(number(steps_.comm().address(r).lane) % peer->vcis));
    else if (r != steps_.rank()) wake_sleepers(vci_of_lane(steps_.comm().address(r).lane));  // another endpoint
}

void NodeExchange::await_all(MPI_Count bytes) noexcept {
  const int n = state_.size, rank = steps_.rank();
  // Ranks that always find the others there would never wait, and so never make progress on other operations.
  if (sequence_ % 16 == 0) poll(home_vci(steps_.comm()));
  for (int i = 1; i < n; ++i) {
    const int r = rank + i < n ? rank + i : rank + i - n;
    const NodeSlot::Part& part = state_.members[r].slot->parts[sequence_ & 1];
    const auto here = [&] { return part.sequence.load(std::memory_order_acquire) == sequence_; };
    // Poll briefly first: on two cores the other rank mostly arrives within one cache-line transfer.
    for (int looks = 0; looks < 64 && !here(); ++looks) sync::relax();
    if (!here()) wait_until(&home_vci(steps_.comm()), here, {.comm = &steps_.comm(), .rank = r, .rank_is_late = true});
    if (part.bytes != static_cast<std::uint32_t>(bytes)) [[unlikely]]
      steps_.fail(size_mismatch(steps_.name(), steps_.comm(), r, part.bytes, bytes));
  }
  sync::heard_from_another_process();
}

void barrier_in_slots(Steps& s) noexcept {
  NodeExchange exchange(s);
  exchange.post(0);
  exchange.await_all(0);
}

namespace {

/// Combines the values of all ranks as recursive doubling does: pairs of ranks first, as Fold makes them, then a
/// balanced tree.
struct Tree {
  const NodeExchange& exchange;
  const Fold& fold;
  const Op& op;
  MPI_Count count;
  Datatype& type;
  std::size_t bytes;

  /// The result of virtual ranks [first, first+ranks) in `out`. `room`: for one more value per level.
  void combine(int first, int ranks, void* out, std::byte* room) const noexcept {
    if (ranks == 1) return leaf(first, out);
    const int half = ranks / 2;
    combine(first + half, half, out, room);
    if (half == 1 && first >= fold.pairs) return apply(op, exchange.value(fold.real(first)), out, count, type);
    combine(first, half, room, room + (bytes + 63) / 64 * 64);
    apply(op, room, out, count, type);
  }
  void leaf(int virtual_rank, void* out) const noexcept {
    if (virtual_rank >= fold.pairs) {
      std::memcpy(out, exchange.value(fold.real(virtual_rank)), bytes);
      return;
    }
    std::memcpy(out, exchange.value(2 * virtual_rank + 1), bytes);
    apply(op, exchange.value(2 * virtual_rank), out, count, type);
  }
};

}  // namespace

void allreduce_in_slots(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type,
                        const Op& op) noexcept {
  const auto bytes = count * type.size;
  NodeExchange exchange(s);
  if (bytes) std::memcpy(exchange.own_value(), in_place(send) ? recv : send, static_cast<std::size_t>(bytes));
  exchange.post(bytes);
  exchange.await_all(bytes);
  const Fold fold(s.size(), s.rank());
  std::byte* room = nullptr;
  if (s.size() > 2) {
    room = s.temporary(std::bit_width(static_cast<unsigned>(fold.size)) * ((bytes + 63) / 64 * 64));
    if (!room) return;
  }
  Tree{exchange, fold, op, count, type, static_cast<std::size_t>(bytes)}.combine(0, fold.size, recv, room);
}

}  // namespace heddle::coll
