// The request: one outstanding operation, its completion flag and its status.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

#include "core/buffer.hpp"
#include "match/matcher.hpp"
#include "sys/handle.hpp"
#include "transport/net/completion.hpp"
#include "transport/address.hpp"

namespace heddle {

class Vci;
class VciGuard;
struct Comm;
struct Request;

/// What runs when a request completes: called by the progress engine at the end of its step, with the request's VCI held,
/// never from inside the call that completed it (so it may start further operations).
struct Continuation {
  void (*run)(Continuation& self, Request& completed, VciGuard& guard) = nullptr;
  bool calls_program = false;  ///< it may call functions of the program, which belong to its own threads
};

/// Operations whose completion is not a matter of one message: how Wait, Start, Cancel and Free treat them.
struct RequestOps {
  int (*start)(Request&) = nullptr;              ///< MPI_Start of a persistent request
  int (*cancel)(Request&) = nullptr;             ///< MPI_Cancel
  int (*query)(Request&, MPI_Status*) = nullptr; ///< fills the status when complete (generalized requests)
  void (*free)(Request&) = nullptr;              ///< last step of the request's life
  /// For the report of a long wait: writes what is awaited, at most `room` bytes, as snprintf does.
  int (*describe)(const Request&, char* text, std::size_t room) = nullptr;
};

/// What a module keeps of an operation under way: a base.
struct OperationState {};

/// One operation. Allocated from its VCI's pool; lives until waited for, tested true or freed, and complete.
///
/// `done` is the only field that other threads read while the operation runs. Everything else is guarded by the VCI (`vci`) until
/// done, and belongs to the waiter after.
struct Request : Object, match::Posted {
  static constexpr Kind object_kind = Kind::request;

  enum class Type : std::uint8_t { send, recv, collective, generalized, persistent_send, persistent_recv, persistent_coll, partitioned_send, partitioned_recv };
  enum : std::uint32_t { active = 0, done_bit = 1, inactive_bit = 2, special_bit = 4 };

  std::atomic<std::uint32_t> state{active};  ///< active → done (release; pairs with the acquire in is_done)
  Type type = Type::send;
  /// One of the fields below (persistent to continuation), the error or a derived datatype is set: completing the operation, and
  /// concluding it (`special_bit`), must look closer. So the common case looks at this alone.
  bool special = false;
  bool persistent = false;
  bool cancelled = false;
  bool user_freed = false;    ///< MPI_Request_free while active: goes back to the pool when done
  bool holds_comm = false;    ///< has a reference to `comm`: from MPI_Comm_free, or from its failure, on
  std::uint32_t asked = 0;    ///< number of the question whether a send can still be cancelled (proto/cancel.cpp); 0: nobody has asked
  Vci* vci = nullptr;
  Comm* comm = nullptr;       ///< for error handlers and names; alive while the operation runs (`keep_for_pending`)
  const RequestOps* ops = nullptr;
  void* data = nullptr;       ///< what `ops` work on: the schedule of a persistent collective, a generalized request's state
  Continuation* continuation = nullptr;

  // Status of the completed operation.
  int source = MPI_ANY_SOURCE, tag = MPI_ANY_TAG, error = MPI_SUCCESS;
  MPI_Count bytes = 0;

  // The message. `Posted::pattern` holds context id, source and tag: of a receive what it asks for, of a send what it is.
  Buffer buffer;                 ///< its datatype is referenced while the operation runs, or for the life of a persistent request
  std::uint64_t capacity = 0;    ///< bytes: of the message (send), of the buffer (receive)
  int peer = 0;                  ///< of a send: the destination, for texts
  Address to{};                  ///< and where that is
  std::uint8_t mode = 0;         ///< SendMode
  OperationState* under_way = nullptr;  ///< what the protocol keeps of it: of a rendezvous its Transfer (proto/rendezvous.hpp)
  Request* next = nullptr;       ///< in the VCI's free or ready list
  /// Told when the network has taken the bytes of a send out of the user's hands.
  struct NetworkCompletion : net::Completion {
    Request* request = nullptr;
  } network;
  Request* sibling = nullptr;    ///< the list of all requests of the VCI; never changes

  /// Sets the error, and keeps the communicator until somebody is told of it. \pre the VCI is held
  [[gnu::cold]] void fail(int code) noexcept;
  void then(Continuation& next_step) noexcept {
    continuation = &next_step;
    special = true;
  }

  [[nodiscard]] bool is_done() const noexcept { return state.load(std::memory_order_acquire) & done_bit; }
  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return 0; }
};

template <>
struct HandleTraits<Request> {
  using handle = MPI_Request;
  static Request* builtin(std::uintptr_t) noexcept { return nullptr; }
};

}  // namespace heddle
