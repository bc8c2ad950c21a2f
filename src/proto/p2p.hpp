// Point-to-point operations as the library itself uses them (collectives, communicator creation), below the MPI functions.
#pragma once

#include <mpi.h>

#include "core/comm.hpp"
#include "core/buffer.hpp"
#include "vci/completion.hpp"

namespace heddle {

enum class SendMode : std::uint8_t { standard, synchronous, buffered, ready };

/// Which of a communicator's two message spaces: the user's, or the collectives' own.
enum class Space : std::uint8_t { user = 0, collective = 1 };

/// A buffer, the rank at the other end and the tag.
struct Leg {
  Buffer buffer;
  int peer, tag;
};

/// A request that was never anything but complete; never allocated, never freed.
struct CompletedRequest : Request {
  /// \param how `done_bit`, and `special_bit` where whoever concludes it must look closer \param number for MPI_Request_toint: one that no
  /// request of a pool has
  CompletedRequest(Type t, std::uint32_t how, int from, std::uint32_t number) noexcept {
    index = number;
    kind.store(Kind::request, std::memory_order_relaxed);
    state.store(how, std::memory_order_relaxed);
    type = t;
    source = from;
  }
};

namespace detail {
Request* isend(const void* buffer, MPI_Count count, Datatype& type, int dest, int tag, Comm& comm) noexcept;
Request* irecv(void* buffer, MPI_Count count, Datatype& type, int source, int tag, Comm& comm) noexcept;
int recv(void* buffer, MPI_Count count, Datatype& type, int source, int tag, Comm& comm, MPI_Status* status) noexcept;
[[gnu::visibility("hidden")]] extern CompletedRequest completed_send;
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
inline Request* completed_request() noexcept { return &detail::completed_send; }
/// The one of the two that has this index, or nullptr.
inline Request* shared_request(std::uint32_t index) noexcept {
  for (Request* request : {null_receive(), completed_request()})
    if (request->index == index) return request;
  return nullptr;
}

/// Posts or matches a receive, launches a send, whose fields are filled in (persistent requests, at each MPI_Start).
void start_receive(VciGuard& guard, Request& receive) noexcept;
void start_send(VciGuard& guard, Request& send) noexcept;
/// Pushes a small contiguous message in standard mode whose request is filled in, without the VCI and without touching the request. False, and
/// nothing done, where that cannot be. Thread-safe.
bool send_at_once(const Request& send) noexcept;
/// An inactive persistent request with these arguments.
Request* new_persistent_send(const Leg& leg, Comm& comm, SendMode mode) noexcept;
Request* new_persistent_receive(const Leg& leg, Comm& comm) noexcept;
/// MPI_Start of an inactive persistent request. Error code.
int start_persistent(Request& request) noexcept;
/// MPI_Cancel of an active receive or send, which completes soon after: as cancelled, unless it was matched before. Thread-safe.
/// \see MPI-5.0 §3.8.4
void cancel_receive(Request& receive) noexcept;
void cancel_send(Request& send) noexcept;

/// Blocking forms. Return the error code.
inline int send(const Buffer& buffer, int dest, int tag, Comm& comm, Space space) noexcept {
  return wait(isend(buffer, dest, tag, comm, space));
}
/// A message that is here already is taken without a request.
int recv(const Buffer& buffer, int source, int tag, Comm& comm, Space space, MPI_Status* status = MPI_STATUS_IGNORE) noexcept;
int sendrecv(const Leg& out, const Leg& in, Comm& comm, Space space, MPI_Status* status = MPI_STATUS_IGNORE) noexcept;

/// The VCI behind which a communicator's collectives, and by default its messages, are.
inline Vci& home_vci(const Comm& comm) noexcept { return vci_of_lane(comm.lane); }

}  // namespace heddle
