// Persistent sends and receives: made inactive, started any number of times.
#include "proto/protocol_state.hpp"

namespace heddle {

int start_persistent(Request& r) noexcept {
  r.error = MPI_SUCCESS;
  r.cancelled = false;
  r.bytes = 0;
  r.source = MPI_ANY_SOURCE;
  r.tag = MPI_ANY_TAG;
  r.state.store(Request::active, std::memory_order_relaxed);
  if (r.ops && r.ops->start) return r.ops->start(r);
  submit(*r.vci, [&](VciGuard& guard) {
    const bool receives = r.type == Request::Type::persistent_recv;
    if ((receives ? r.pattern.source : r.peer) == MPI_PROC_NULL) {
      if (receives) r.source = MPI_PROC_NULL;
      complete(r, guard);
    } else if (receives) {
      start_receive(guard, r);
    } else {
      start_send(guard, r);
    }
  });
  return MPI_SUCCESS;
}

namespace {
void make_persistent(Request& request, Comm& comm) noexcept {
  request.special = request.persistent = true;
  if (!comm.predefined) comm.retain();  // it can be started after its communicator's handle was freed
  request.state.store(Request::done_bit | Request::inactive_bit, std::memory_order_relaxed);
}
}  // namespace

Request* new_persistent_send(const Leg& leg, Comm& comm, SendMode mode) noexcept {
  const proto::Path path = leg.peer == MPI_PROC_NULL ? proto::Path{{}, 0, comm.lane} : proto::resolve(comm, leg.peer, leg.tag, Space::user);
  return submit(vci_of_lane(path.from), [&](VciGuard& guard) {
    Request* request = new_request(guard.vci(), Request::Type::persistent_send, &comm);
    proto::fill_send(*request, leg.buffer, leg.peer, {path.context, comm.rank, leg.tag}, path.to, mode);
    make_persistent(*request, comm);
    return request;
  });
}

Request* new_persistent_receive(const Leg& leg, Comm& comm) noexcept {
  return submit(vci_of_lane(comm.receive_lane(leg.peer, leg.tag)), [&](VciGuard& guard) {
    Request* request = new_request(guard.vci(), Request::Type::persistent_recv, &comm);
    proto::fill(*request, leg.buffer, {proto::own_context(comm, Space::user), leg.peer, leg.tag});
    make_persistent(*request, comm);
    return request;
  });
}

}  // namespace heddle
