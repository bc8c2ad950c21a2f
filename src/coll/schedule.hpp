// A collective operation as data: a list of steps that the progress engine carries out, as often as it is started.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "coll/internal.hpp"
#include "vci/request.hpp"

namespace heddle::coll {

class Schedule;

/// One step. Sends and receives of a round (the steps up to the next `wait`) are outstanding together; the others are
/// carried out in the call that reaches them. As a Continuation it learns when its message is done.
struct Step : Continuation {
  enum class Kind : std::uint8_t { send, recv, wait, copy, reduce };

  Schedule* owner = nullptr;
  Kind kind = Kind::wait;
  int peer = 0;            ///< send, recv
  MPI_Count count = 0;     ///< of `type` at `from` (send, copy, reduce) or `to` (recv)
  MPI_Count to_count = 0;  ///< copy
  Datatype* type = nullptr;
  Datatype* to_type = nullptr;  ///< copy
  const Op* op = nullptr;       ///< reduce: to = from op to
  const void* from = nullptr;
  void* to = nullptr;
};

/// Memory of a collective's run, given back at its end. The first bytes come from the object itself.
class Arena {
 public:
  static constexpr std::int64_t alignment = 64;
  Arena() noexcept = default;
  ~Arena() { clear(); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  /// `bytes` aligned for any basic type, or nullptr when memory is out.
  std::byte* allocate(std::size_t bytes) noexcept {
    bytes = (bytes + 63) & ~std::size_t{63};
    if (bytes <= sizeof first_ - used_) [[likely]] {
      std::byte* p = first_ + used_;
      used_ += bytes;
      return p;
    }
    return allocate_block(bytes);
  }

 private:
  struct Block {
    Block* next;
  };
  std::byte* allocate_block(std::size_t bytes) noexcept;
  void clear() noexcept;

  Block* blocks_ = nullptr;
  std::size_t used_ = 0;
  alignas(64) std::byte first_[1024];  // small reductions of blocking collectives need no allocation
};

/// A recorded collective of one communicator.
///
/// Event driven: nobody polls it. Each message's completion counts down the round; at zero the next round starts, from
/// the progress engine and with the communicator's home VCI held, which guards every field after `start`. Outstanding
/// schedules that wait cost nothing. Types and operations that the steps name are kept alive by the schedule, the
/// communicator by the request. A message error does not stop the schedule (the other ranks count on its messages): the
/// first one becomes the request's error.
class Schedule {
 public:
  /// Everything needed to run: nullptr when memory is out. `persistent`: `start` may be called again after each
  /// completion.
  static Schedule* create(Comm& comm, const char* name, bool persistent) noexcept;
  static void destroy(Schedule* schedule) noexcept;

  [[nodiscard]] Comm& comm() const noexcept { return *comm_; }
  [[nodiscard]] const char* name() const noexcept { return name_; }
  [[nodiscard]] Arena& arena() noexcept { return arena_; }

  /// Appends a step and retains what it names; false when memory is out.
  bool append(const Step& step) noexcept;

  /// What the unit tests look at: the steps as recorded.
  [[nodiscard]] const Step* begin() const noexcept { return steps_; }
  [[nodiscard]] const Step* end() const noexcept { return steps_ + count_; }

  /// An error found while recording (this rank's own counts do not match): each run reports it, after doing its part.
  void set_error(int error) noexcept {
    if (first_error_ == MPI_SUCCESS) first_error_ = error;
  }
  void set_finish(Finish finish) noexcept { finish_ = finish; }
  /// The request that reports completion. \pre before `start`.
  void set_request(Request* request) noexcept { request_ = request; }

  /// Runs the first round and whatever follows without waiting. When the schedule ends (perhaps inside this call) its
  /// request is completed, and a schedule that is not persistent is destroyed.
  void start(VciGuard& guard) noexcept;

 private:
  Schedule() noexcept = default;
  ~Schedule();
  static void message_done(Continuation& self, Request& completed, VciGuard& guard);
  void check(const Step& step, const Request& completed) noexcept;
  void watch(Step& step, Request* request, VciGuard& guard) noexcept;
  void advance(VciGuard& guard) noexcept;
  void end_run(VciGuard& guard) noexcept;

  Comm* comm_ = nullptr;
  const char* name_ = nullptr;
  Request* request_ = nullptr;
  Step* steps_ = nullptr;
  std::uint32_t count_ = 0, capacity_ = 0;
  std::uint32_t next_ = 0;         // the step to run next
  std::uint32_t outstanding_ = 0;  // messages of this round
  int tag_ = 0;
  int first_error_ = MPI_SUCCESS;
  int error_ = MPI_SUCCESS;
  bool advancing_ = false;
  bool persistent_ = false;
  bool calls_program_ = false;  // some step applies a function of the program
  Finish finish_;
  Arena arena_;
};

/// The text of a message that had another size than the collective's arguments say. An error code.
[[gnu::cold]] int size_mismatch(const char* name, const Comm& comm, int peer, MPI_Count got,
                                MPI_Count expected) noexcept;

}  // namespace heddle::coll
