// What the algorithms are written against: the same text runs at once (blocking) or is recorded (nonblocking,
// persistent).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "coll/schedule.hpp"
#include "proto/p2p.hpp"

namespace heddle::coll {

/// The steps of one collective on one rank.
///
/// An algorithm calls these members in program order. Made with a communicator, each member acts at once: `send` and
/// `recv` start a message, `wait` waits for all that were started. Made with a schedule, each appends a step. Buffers
/// are addresses, so an algorithm's control flow cannot depend on data, and it must ask for temporaries before its
/// first message.
///
/// Errors: the first one is kept and reported by `finish`; later steps are still carried out, because other ranks wait for
/// their messages. Only a failed allocation ends an algorithm early (`ok()` is false after it). Not thread-safe.
class Steps {
 public:
  Steps(Comm& comm, const char* name) noexcept : comm_(comm), name_(name), arena_(&own_arena_), tag_(next_tag(comm)) {}
  explicit Steps(Schedule& schedule) noexcept
      : comm_(schedule.comm()), schedule_(&schedule), name_(schedule.name()), arena_(&schedule.arena()) {}
  ~Steps() {
    if (pending_ != own_pending_) std::free(pending_);
  }
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  [[nodiscard]] int rank() const noexcept { return comm_.rank; }
  [[nodiscard]] int size() const noexcept { return comm_.size; }
  [[nodiscard]] Comm& comm() const noexcept { return comm_; }
  [[nodiscard]] const char* name() const noexcept { return name_; }
  [[nodiscard]] bool recording() const noexcept { return schedule_ != nullptr; }

  void send(const void* buffer, MPI_Count count, Datatype& type, int to) noexcept;
  void recv(void* buffer, MPI_Count count, Datatype& type, int from) noexcept;
  /// The end of a round: every message of it is complete afterwards.
  void wait() noexcept;
  /// A round of one message each way.
  void exchange(const void* send_buffer, MPI_Count send_count, Datatype& send_type, int to, void* recv_buffer,
                MPI_Count recv_count, Datatype& recv_type, int from) noexcept;
  /// Rounds of one message. Outside any other round.
  void send_round(const void* buffer, MPI_Count count, Datatype& type, int to) noexcept;
  void recv_round(void* buffer, MPI_Count count, Datatype& type, int from) noexcept;

  void copy(const void* from, MPI_Count count, Datatype& type, void* to, MPI_Count to_count,
            Datatype& to_type) noexcept;
  /// `copy` of a rank's own block, which never travels: that both sides describe the same number of bytes is checked
  /// here.
  void copy_own(const void* from, MPI_Count count, Datatype& type, void* to, MPI_Count to_count,
                Datatype& to_type) noexcept;
  /// inout = in op inout: `in` is the operand of the lower ranks.
  void reduce(const Op& op, const void* in, void* inout, MPI_Count count, Datatype& type) noexcept;

  /// Bytes that live as long as the operation (for a persistent one: the request). nullptr and an error when memory is
  /// out.
  std::byte* temporary(MPI_Count bytes) noexcept;
  /// Room for `count` elements of `type`; the address to use as a buffer (its lower bound may be negative).
  void* temporary(MPI_Count count, const Datatype& type) noexcept;

  [[nodiscard]] bool ok() const noexcept { return !out_of_memory_; }
  void fail(int error) noexcept {
    if (error_ == MPI_SUCCESS) error_ = error;
  }
  /// The first error. \pre no message of the last round is outstanding (a `wait` came last).
  [[nodiscard]] int finish() noexcept { return error_; }

 private:
  struct Pending {
    Request* request;
    MPI_Count bytes;  // a receive's expected size, -1 for a send
    int peer;
  };
  void pend(Request* request, MPI_Count bytes, int peer) noexcept;
  void check(const MPI_Status& status, MPI_Count expected, int peer) noexcept;
  void record(const Step& step) noexcept;

  Comm& comm_;
  Schedule* schedule_ = nullptr;
  const char* name_;
  Arena* arena_;
  int tag_ = 0;
  int error_ = MPI_SUCCESS;
  bool out_of_memory_ = false;
  std::uint32_t pending_count_ = 0, pending_capacity_ = inline_pending;
  static constexpr std::uint32_t inline_pending = 16;
  Pending* pending_ = own_pending_;
  Pending own_pending_[inline_pending];
  Arena own_arena_;
};

/// MPI_BYTE: what the algorithms that cut messages without regard to elements send.
inline Datatype& byte_type() noexcept { return *builtin_datatype(reinterpret_cast<std::uintptr_t>(MPI_BYTE)); }

/// The address of element `index` of a buffer.
inline void* element(void* buffer, MPI_Count index, const Datatype& type) noexcept {
  return displaced(buffer, index * type.extent);
}
inline const void* element(const void* buffer, MPI_Count index, const Datatype& type) noexcept {
  return displaced(buffer, index * type.extent);
}

/// True for MPI_IN_PLACE.
inline bool in_place(const void* buffer) noexcept { return buffer == MPI_IN_PLACE; }

/// The largest power of two that is not above n. \pre n > 0
inline int floor_power_of_two(int n) noexcept { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); }

/// In a binomial tree of n ranks with root 0, the subtree of `rank` is [rank, rank + span) as far as ranks exist; its
/// parent is rank - span (but the root has none), its children are rank + span/2, rank + span/4, … rank + 1 as far as
/// they exist.
inline MPI_Count tree_span(int rank, int n) noexcept {
  return rank ? rank & -rank : static_cast<MPI_Count>(std::bit_ceil(static_cast<unsigned>(n)));
}

/// Sends or receives at most this many messages at once, so that a large communicator needs no request per rank.
inline constexpr int window = 32;

}  // namespace heddle::coll
