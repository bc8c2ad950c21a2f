// Small blocking collectives among the ranks of one node: values and flags in shared memory, no messages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "coll/steps.hpp"
#include "sync/cpu.hpp"

namespace heddle::shm {
class Peer;
}

namespace heddle::coll {

/// One rank's part in one communicator's exchanges, in its own process's region. Only that rank writes it.
///
/// Exchange k: write the value and then `sequence = k` into part k mod 2; read part k mod 2 of every other rank. A rank that has
/// finished exchange k has seen all begin it, so all have finished k-1, and part k+1 mod 2 may be overwritten: two parts are
/// enough. Cost for two ranks: one cache line each way, no read-modify-write, no lock; for more, one sequentially consistent store.
struct NodeSlot {
  struct Part {
    std::atomic<std::uint32_t>
        sequence;           ///< release (or stronger) after the value; pairs with the acquire in `await_all`
    std::uint32_t bytes;    ///< of the value: the ranks' arguments must agree
    std::uint64_t unused;   // aligns the value for every basic type
    std::byte value[1008];  ///< the first 48 bytes travel in the flag's cache line
  };
  alignas(sync::cache_line) Part parts[2];
  /// Which communicator has the slot, and whether its rank is done reading the other members' slots.
  alignas(sync::cache_line) std::atomic<std::uint64_t> context;
  std::atomic<std::uint32_t> released;
};
static_assert(sizeof(NodeSlot::Part) == 1024 && offsetof(NodeSlot::Part, value) == 16);
static_assert(sizeof(NodeSlot) == 2048 + sync::cache_line);

/// What the collectives keep for a communicator. Belongs to the one thread that is in a collective of it.
struct CommState : CommExtension {
  CommState() noexcept;

  enum class Path : std::uint8_t { undecided, messages, slots };
  struct Member {
    NodeSlot* slot;
    shm::Peer* peer;  ///< nullptr: this process
  };
  Path path = Path::undecided;
  std::uint32_t calls = 0;     ///< collectives that could have used slots so far
  std::uint32_t sequence = 0;  ///< of the last exchange
  ContextId context = 0;
  int size = 0;
  NodeSlot* own = nullptr;
  std::unique_ptr<Member[]> members;  ///< by rank
};

/// What the collectives know of a communicator; nullptr: nothing yet. The acquire pairs with the release in decide_slots.
inline CommState* state_of(const Comm& comm) noexcept {
  return static_cast<CommState*>(comm.coll_state.load(std::memory_order_acquire));
}

/// The largest value that goes through a slot, in bytes.
inline constexpr MPI_Count slot_bytes = sizeof(NodeSlot::Part::value);

[[gnu::noinline]] bool decide_slots(Comm& comm) noexcept;

/// Whether a blocking collective in which every rank contributes `bytes` goes through slots. All ranks come to the same
/// answer: they count the collectives that could, and agree by messages at the third one. Once for each call of an
/// algorithm.
inline bool use_slots(const Steps& s, MPI_Count bytes) noexcept {
  if (s.recording() || bytes > slot_bytes) return false;
  const CommState* state = state_of(s.comm());
  if (state && state->path == CommState::Path::slots) [[likely]]
    return true;
  return (!state || state->path == CommState::Path::undecided) && decide_slots(s.comm());
}

/// One exchange among all ranks of a communicator. \pre use_slots
class NodeExchange {
 public:
  explicit NodeExchange(Steps& s) noexcept
      : steps_(s), state_(*state_of(s.comm())), sequence_(++state_.sequence) {}

  /// Where this rank writes its value.
  [[nodiscard]] std::byte* own_value() noexcept { return state_.own->parts[sequence_ & 1].value; }
  /// Publishes it.
  void post(MPI_Count bytes) noexcept;
  /// Returns when all ranks have published. A rank whose value has another size is an error of the operation.
  void await_all(MPI_Count bytes) noexcept;
  [[nodiscard]] const std::byte* value(int rank) const noexcept {
    return state_.members[rank].slot->parts[sequence_ & 1].value;
  }

 private:
  Steps& steps_;
  CommState& state_;
  const std::uint32_t sequence_;
};

/// The collectives by one exchange. `allreduce` combines in the order of `allreduce_doubling`: the same bits.
void barrier_in_slots(Steps& s) noexcept;
void allreduce_in_slots(Steps& s, const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op) noexcept;

}  // namespace heddle::coll
