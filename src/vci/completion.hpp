// The life of a request: made, completed, waited for, given back.
#pragma once

#include <mpi.h>

#include "vci/request.hpp"
#include "vci/vci.hpp"
#include "vci/wait.hpp"

namespace heddle {

/// An active request from the pool of `vci`, its status that of an operation which has nothing to say. Ends the job when memory is out.
/// \pre the VCI is held
inline Request* new_request(Vci& vci, Request::Type type, Comm* comm) noexcept {
  Request* r = vci.requests.allocate(&vci);  // in its default state but for what describes the operation
  r->state.store(Request::active, std::memory_order_relaxed);
  r->type = type;
  r->comm = comm;
  r->buffer.type = nullptr;
  r->source = MPI_ANY_SOURCE;
  r->tag = MPI_ANY_TAG;
  r->bytes = 0;
  return r;
}

namespace detail {
/// `complete` for requests that are `special`.
void complete_specially(Request& request, VciGuard& guard) noexcept;
}  // namespace detail

/// The first half of the common `complete`; the second is `wake_sleepers`. \pre the VCI is held, and the request not `special`
inline void mark_complete(Request& r) noexcept {
  r.state.store(Request::done_bit, std::memory_order_release);  // pairs with is_done
}
/// Marks `request` complete, wakes whoever waits for it, queues its continuation. The fields of its status are set before. The guard is the
/// request's VCI.
inline void complete(Request& r, VciGuard& guard) noexcept {
  if (r.special) [[unlikely]] return detail::complete_specially(r, guard);
  mark_complete(r);
  wake_sleepers(guard.vci());
}
/// The same from a thread that holds another VCI: the request's own completes it at its next step.
void complete_elsewhere(Request& request) noexcept;
/// The same from a thread that holds nothing (MPI_Grequest_complete).
void complete_from_outside(Request& request) noexcept;
/// The same for a request whose `error` may be set.
inline void complete_with_error(Request& request, VciGuard& guard) noexcept {
  if (request.error) request.fail(request.error);
  complete(request, guard);
}

/// Waits (spins, yields, parks, makes progress), returns the operation's error code, gives the request back to its pool.
int wait(Request* request, MPI_Status* status = MPI_STATUS_IGNORE) noexcept;
/// Takes a complete request of the held VCI that nothing else is to be done about: describes it and gives it back. False: it is not complete,
/// or not that simple.
bool reap(VciGuard& guard, Request& request, MPI_Status* status) noexcept;
/// Gives a request that its user is done with back to its pool (or leaves a persistent one inactive). \pre complete
void retire(Request* request) noexcept;
/// The same, in continuations.
inline void free_request(Request* request, VciGuard&) noexcept { retire(request); }
/// MPI_Request_free: an active operation goes on and its request goes back when it is done.
void release_by_user(Request& request) noexcept;
/// Whether operations that were given back so are not over.
bool has_freed_operations() noexcept;
/// MPI_Comm_free: every operation of `comm` that is not over takes a reference to it, so that an error finds its handler. Operations
/// pay nothing for it; the call looks at all requests that this process ever had at the same time. \see MPI-5.0 §7.4.3
void keep_for_pending(Comm& comm) noexcept;

}  // namespace heddle
