// Point-to-point operations as the library itself uses them (collectives, communicator creation), below the MPI functions.
#pragma once

#include <mpi.h>

#include "core/comm.hpp"
#include "core/buffer.hpp"
#include "vci/request.hpp"
#include "vci/vci.hpp"
#include "vci/wait.hpp"

namespace heddle {

enum class SendMode : std::uint8_t { standard, synchronous, buffered, ready };

/// Which of a communicator's two message spaces: the user's, or the collectives' own.
enum class Space : std::uint8_t { user = 0, collective = 1 };

/// A buffer, the rank at the other end and the tag.
struct Leg {
  Buffer buffer;
  int peer, tag;
};

namespace detail {
Request* isend(const void* buffer, MPI_Count count, Datatype& type, int dest, int tag, Comm& comm) noexcept;
Request* irecv(void* buffer, MPI_Count count, Datatype& type, int source, int tag, Comm& comm) noexcept;
}  // namespace detail

/// Starts a send or a receive. Returns the request: a shared one, already complete, when the operation is finished; the job ends when
/// memory is out. The peer may be MPI_PROC_NULL; `irecv` takes wildcards. Tags of the collective space are any non-negative 31-bit
/// number. Thread-safe. Source: MPI-5.0 §3.7
Request* isend(const Buffer& buffer, int dest, int tag, Comm& comm, Space space, SendMode mode = SendMode::standard) noexcept;
Request* irecv(const Buffer& buffer, int source, int tag, Comm& comm, Space space) noexcept;
/// The same in the user's space and standard mode: the path of MPI_Isend and MPI_Irecv, with all arguments in registers.
inline Request* isend(const Buffer& buffer, int dest, int tag, Comm& comm) noexcept {
  return detail::isend(buffer.base, buffer.count, *buffer.type, dest, tag, comm);
}
inline Request* irecv(const Buffer& buffer, int source, int tag, Comm& comm) noexcept {
  return detail::irecv(buffer.base, buffer.count, *buffer.type, source, tag, comm);
}

/// The same for code that already holds a VCI: the communicator's home VCI for the collective space (continuations, schedules in the
/// progress engine), that of `send_lane` or `receive_lane` for the user's.
Request* isend(VciGuard& guard, const Buffer& buffer, int dest, int tag, Comm& comm, Space space) noexcept;
Request* irecv(VciGuard& guard, const Buffer& buffer, int source, int tag, Comm& comm, Space space) noexcept;

/// An error when a receive or probe has a wildcard on a communicator whose hints exclude them and are in use.
int refuse_wildcards(const Comm& comm, int source, int tag) noexcept;

/// The shared complete request of a receive from MPI_PROC_NULL.
Request* null_receive() noexcept;
/// The shared complete request of a send that finished at once.
Request* completed_request() noexcept;
/// The one of the two that has this index, or nullptr.
inline Request* shared_request(std::uint32_t index) noexcept {
  for (Request* request : {null_receive(), completed_request()})
    if (request->index == index) return request;
  return nullptr;
}

/// Waits (spins, yields, parks, makes progress), returns the operation's error code, gives the request back to its pool.
int wait(Request* request, MPI_Status* status = MPI_STATUS_IGNORE) noexcept;
/// Takes a complete request of the held VCI that nothing else is to be done about: describes it and gives it back. False: it is not complete,
/// or not that simple.
bool reap(VciGuard& guard, Request& request, MPI_Status* status) noexcept;
/// Posts or matches a receive, launches a send, whose fields are filled in (persistent requests, at each MPI_Start).
void start_receive(VciGuard& guard, Request& receive) noexcept;
void start_send(VciGuard& guard, Request& send) noexcept;
/// An inactive persistent request with these arguments.
Request* new_persistent_send(const Leg& leg, Comm& comm, SendMode mode) noexcept;
Request* new_persistent_receive(const Leg& leg, Comm& comm) noexcept;
/// Gives a request that its user is done with back to its pool (or leaves a persistent one inactive). \pre complete
void retire(Request* request) noexcept;
/// MPI_Comm_free: every operation of `comm` that is not over takes a reference to it, so that an error finds its handler. Operations
/// pay nothing for it; the call looks at all requests that this process ever had at the same time. \see MPI-5.0 §7.4.3
void keep_for_pending(Comm& comm) noexcept;
/// MPI_Request_free: an active operation goes on and its request goes back when it is done.
void release_by_user(Request& request) noexcept;
/// MPI_Start of an inactive persistent request. Error code.
int start_persistent(Request& request) noexcept;
/// MPI_Cancel of an active receive or send, which completes soon after: as cancelled, unless it was matched before. Thread-safe.
/// \see MPI-5.0 §3.8.4
void cancel_receive(Request& receive) noexcept;
void cancel_send(Request& send) noexcept;

/// Gives a *complete* request back to its pool (continuations use it).
void free_request(Request* request, VciGuard& guard) noexcept;

/// Blocking forms. Return the error code.
int send(const Buffer& buffer, int dest, int tag, Comm& comm, Space space) noexcept;
/// A message that is here already is taken without a request.
int recv(const Buffer& buffer, int source, int tag, Comm& comm, Space space, MPI_Status* status = MPI_STATUS_IGNORE) noexcept;
int sendrecv(const Leg& out, const Leg& in, Comm& comm, Space space, MPI_Status* status = MPI_STATUS_IGNORE) noexcept;

/// A request that the library completes itself (collective schedules, generalized requests): allocated from the pool of `vci`.
/// \pre the VCI is held.
inline Request* new_request(Vci& vci, Request::Type type, Comm* comm) noexcept {
  Request* r = vci.requests.allocate(&vci);  // in its default state but for what describes the operation
  r->state.store(Request::active, std::memory_order_relaxed);
  r->type = type;
  r->comm = comm;
  r->datatype = nullptr;
  r->source = MPI_ANY_SOURCE;  // a status that says nothing, unless the operation has something to say
  r->tag = MPI_ANY_TAG;
  r->bytes = 0;
  return r;
}
/// Marks `request` complete, wakes whoever waits for it, queues its continuation. `status` fields are set before. The guard is
/// the request's VCI.
inline void complete(Request& request, VciGuard& guard) noexcept;
/// The same from a thread that holds another VCI: the request's own completes it at its next step.
void complete_elsewhere(Request& request) noexcept;
/// The same from a thread that holds nothing (MPI_Grequest_complete).
void complete_from_outside(Request& request) noexcept;

/// The VCI behind which a communicator's collectives, and by default its messages, are.
inline Vci& home_vci(const Comm& comm) noexcept { return vci_of_lane(comm.vci); }

namespace detail {
/// `complete` for requests that are `special`.
void complete_specially(Request& request, VciGuard& guard) noexcept;
}

inline void complete(Request& r, VciGuard& guard) noexcept {
  if (r.special) [[unlikely]] return detail::complete_specially(r, guard);
  r.state.store(Request::done_bit, std::memory_order_release);  // pairs with is_done
  wake_sleepers(guard.vci());
}

}  // namespace heddle
