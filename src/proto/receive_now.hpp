// The blocking receive, mostly without a request. A header, so that MPI_Recv and the library's own receives each get it inlined.
#pragma once

#include "core/status.hpp"
#include "proto/p2p.hpp"
#include "proto/protocol_state.hpp"
#include "vci/wait.hpp"

namespace heddle::proto {

/// Posts a receive, or gives it a message that is here. \pre the VCI of `receive_lane` is held; the source is not MPI_PROC_NULL
template <Space space>
inline Request* receive(VciGuard& guard, const Buffer& buffer, int source, int tag, Comm& comm) noexcept {
  Request* r = guard.vci().requests.allocate(&guard.vci());  // its status is set when the message comes
  r->state.store(Request::active, std::memory_order_relaxed);
  r->type = Request::Type::recv;
  r->comm = &comm;
  fill(*r, buffer, {own_context(comm, space), source, tag});
  match_or_post(guard, *r);
  return r;
}

/// Takes a complete eager message that needs no acknowledgement and fits into a contiguous buffer out of the unexpected ones. False: the
/// message is something else, and left alone.
bool take_unexpected(VciGuard& guard, Unexpected& message, const Buffer& buffer, MPI_Status* status) noexcept;

/// The same for the oldest record in the ring: taken if it is for this receive, and no posted receive waits for it. The caller has seen that no
/// unexpected message matches.
inline bool take_from_ring(VciGuard& guard, match::Pattern pattern, const Buffer& buffer, std::uint64_t capacity, MPI_Status* status) noexcept {
  Vci& vci = guard.vci();
  sync::RingLine* line = vci.ring.front();
  if (!line) return false;
  const auto& record = *reinterpret_cast<const Record*>(line);
  if (record.kind != PointToPoint::eager || record.context != pattern.context ||
      (record.source != pattern.source && pattern.source != MPI_ANY_SOURCE) ||
      (record.tag != pattern.tag && pattern.tag != MPI_ANY_TAG) || record.bytes > capacity || !buffer.contiguous() ||
      vci.matcher.awaits({record.context, record.source, record.tag}))
    return false;
  sys::copy_bytes(buffer.data(), record.payload, record.bytes);
  fill_status(status, record.source, record.tag, record.bytes);
  vci.ring.pop();
  return true;
}

/// A message that was waited for is often answered at once: the line that the answer will be written to is prefetched.
inline void expect_answer(Vci& vci, const Comm& comm) noexcept {
  const sync::RingLine* line = vci.ring.front();
  if (!line) return;
  const int source = reinterpret_cast<const Record*>(line)->source;
  // A record of another communicator only costs a line.
  if (static_cast<unsigned>(source) >= static_cast<unsigned>(comm.peer_size())) return;
  const Address to = comm.plain ? Address{comm.peers->process(source), comm.lane, 0} : comm.address(source);
  const shm::Peer* peer = shm::find(to.process);
  const shm::Port* port = peer ? peer->port(to.lane) : nullptr;
  if (port) port->ring.expect();
}

/// Whether another thread of this process may hand the message over in the VCI itself, where looks at the ring do not see it.
inline bool may_come_from_here(const Vci& vci, const Comm& comm, int source) noexcept {
  if (!runtime.threads.load(std::memory_order_relaxed)) return false;
  if (source == MPI_ANY_SOURCE) return true;
  const Address from = comm.address(source);
  return from.process == runtime.self && &vci_of_lane(from.lane) == &vci;
}

/// MPI_Recv: returns the error code. A message that is here, or comes soon, is copied to the user without a request.
template <Space space>
inline int receive_now(const Buffer& buffer, int source, int tag, Comm& comm, MPI_Status* status) noexcept {
  if (source == MPI_PROC_NULL || (space == Space::user && comm.routing && comm.routing->spread)) [[unlikely]]
    return wait(irecv(buffer, source, tag, comm, space), status);
  const match::Pattern pattern{own_context(comm, space), source, tag};
  const std::uint64_t capacity = buffer.bytes();
  Vci& vci = home_vci(comm);
  Request* request = nullptr;
  bool taken = false, around = false;
  for (bool looked = false;; looked = true) {
    submit(vci, [&](VciGuard& guard) __attribute__((always_inline)) {
      if (looked) expect_answer(vci, comm);
      Unexpected* message = nullptr;
      if (vci.matcher.unexpected()) message = static_cast<Unexpected*>(vci.matcher.find_arrival(pattern));
      if (message) {
        taken = message->bytes <= capacity && take_unexpected(guard, *message, buffer, status);
        if (taken) return;
      } else if (take_from_ring(guard, pattern, buffer, capacity, status)) {
        taken = true;
        around = look_around(vci);
        return;
      }
      if (!looked && !message && !has_work(vci)) return;
      request = receive<space>(guard, buffer, source, tag, comm);
      if (vci.ring.pending() && progress(guard, request)) {  // it may be among the next in the ring
        taken = reap(guard, *request, status);
        around = look_around(vci);
      }
    });
    if (taken || request) break;
    if (may_come_from_here(vci, comm, source)) continue;
    for (unsigned looks = 4 * idle_looks(); looks && !vci.ring.pending(); --looks) sync::one_look();
  }
  if (around) [[unlikely]]
    progress_all();
  return taken ? MPI_SUCCESS : wait(request, status);
}

}  // namespace heddle::proto
