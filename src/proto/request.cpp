// The life of a request: made, completed, waited for, given back.
#include <cstdlib>

#include "core/status.hpp"
#include "proto/protocol_state.hpp"
#include "sys/log.hpp"
#include "vci/wait.hpp"

namespace heddle {

namespace {

/// Operations whose request the user gave back before they were complete: MPI_Finalize waits for them, receives too, since whoever
/// sends to this process needs it until the message is over. Relaxed: the waiter makes progress itself, under the VCIs' locks.
std::atomic<std::int64_t> freed_operations{0};

/// Who completes a generalized request is the program, which may do so at any time or never.
bool communicates(const Request& r) noexcept { return r.type != Request::Type::generalized; }

/// Gives a request's memory back.
void recycle(Request& r) noexcept {
  if (r.ops && r.ops->free) r.ops->free(r);
  if (r.datatype) release(*r.datatype);
  if (r.persistent && (r.type == Request::Type::persistent_send || r.type == Request::Type::persistent_recv))
    release_comm(r.comm);
  if (r.holds_comm) release_comm(r.comm);
  // Back to the default state, which `new_request` relies on.
  r.special = r.persistent = r.cancelled = r.user_freed = r.holds_comm = false;
  r.ops = nullptr;
  r.data = nullptr;
  r.continuation = nullptr;
  r.source = MPI_ANY_SOURCE;
  r.tag = MPI_ANY_TAG;
  r.error = MPI_SUCCESS;
  r.bytes = 0;
  r.datatype = nullptr;
  r.vci->requests.release(&r);
}

}  // namespace

void Request::fail(int code) noexcept {
  error = code;
  special = true;
  // Parts of other operations, which have a continuation, tell those; their communicator may be gone.
  if (!comm || continuation || holds_comm) return;
  holds_comm = true;
  retain_comm(*comm);
}

void keep_for_pending(Comm& comm) noexcept {
  for_each_vci([&](Vci& vci) {
    submit(vci, [&](VciGuard&) {
      vci.requests.for_each([&](Request& r) {
        // One that is done is its waiter's; if it failed it has its reference. Parts of other operations: as in `fail`.
        if (!r.is(Kind::request) || r.is_done() || r.continuation || r.persistent || r.holds_comm || !r.comm) return;
        if (r.comm != &comm && r.comm->stands_for != &comm) return;
        r.comm = &comm;
        r.special = r.holds_comm = true;
        retain_comm(comm);
      });
    });
  });
}

void detail::complete_specially(Request& r, VciGuard& guard) noexcept {
  r.asked = 0;  // what comes later is no answer any more
  if (!r.persistent && r.datatype) {
    release(*r.datatype);
    r.datatype = nullptr;
  }
  if (r.continuation) queue_continuation(guard, r);
  if (r.user_freed) [[unlikely]] {
    if (communicates(r)) freed_operations.fetch_sub(1, std::memory_order_relaxed);
    return recycle(r);
  }
  r.state.store(Request::done_bit | Request::special_bit, std::memory_order_release);  // pairs with is_done
  wake_sleepers(guard.vci());
}

void complete_elsewhere(Request& request) noexcept {
  Vci& vci = *request.vci;
  Request* head = vci.ended_elsewhere.load(std::memory_order_relaxed);
  do request.next = head;  // Release pairs with the acquire in `progress`.
  while (
      !vci.ended_elsewhere.compare_exchange_weak(head, &request, std::memory_order_release, std::memory_order_relaxed));
  vci.moving.fetch_add(1, std::memory_order_relaxed);
  wake_sleepers(vci);
}

void complete_from_outside(Request& request) noexcept {
  const bool freed = submit(*request.vci, [&](VciGuard& guard) {
    if (request.user_freed) return true;
    complete(request, guard);
    return false;
  });
  if (freed) recycle(request);  // runs the user's free callback, so without the VCI
}

namespace proto {
void end_request(VciGuard& guard, Request& request) noexcept {
  if (request.error) request.fail(request.error);
  complete(request, guard);
}
bool has_freed_operations() noexcept { return freed_operations.load(std::memory_order_relaxed) != 0; }
}  // namespace proto

void release_by_user(Request& r) noexcept {
  if (!r.vci) return;
  const bool done = submit(*r.vci, [&](VciGuard&) {
    if (r.is_done()) return true;
    r.special = r.user_freed = true;
    if (communicates(r)) freed_operations.fetch_add(1, std::memory_order_relaxed);
    return false;
  });
  if (done) recycle(r);
}

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
  const proto::Path path = leg.peer == MPI_PROC_NULL ? proto::Path{{}, 0, comm.vci} : proto::resolve(comm, leg.peer, leg.tag, Space::user);
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

void retire(Request* r) noexcept {
  if (!r->vci) return;  // one of the shared complete requests
  if (r->persistent) {
    r->state.store(Request::done_bit | Request::inactive_bit, std::memory_order_relaxed);
    return;
  }
  recycle(*r);
}

void free_request(Request* request, VciGuard&) noexcept { retire(request); }

namespace {

void describe(const Request& request, MPI_Status* status) noexcept {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = request.source;
  status->MPI_TAG = request.tag;
  set_status_bytes(*status, request.bytes);
  set_status_cancelled(*status, request.cancelled);
}

/// Done and nothing else: no error, nothing to look after. Acquire: as in is_done.
bool is_simply_done(const Request& request) noexcept { return request.state.load(std::memory_order_acquire) == Request::done_bit; }

}  // namespace

bool reap(VciGuard& guard, Request& request, MPI_Status* status) noexcept {
  if (!is_simply_done(request)) return false;
  describe(request, status);
  guard.vci().requests.release_held(&request);
  return true;
}

int wait(Request* request, MPI_Status* status) noexcept {
  // The thread that waits is mostly the one that sees the message: it gives the request back while it holds the VCI.
  bool reaped = false;
  wait_until(
      request->vci, [&] { return reaped || request->is_done(); }, request,
      [&](VciGuard& guard) { reaped = reap(guard, *request, status); }, {.request = request});
  if (reaped) [[likely]] return MPI_SUCCESS;
  describe(*request, status);
  if (is_simply_done(*request)) {
    if (request->vci) request->vci->requests.release(request);
    return MPI_SUCCESS;
  }
  const int code = request->error;
  retire(request);
  return code;
}

int send(const Buffer& buffer, int dest, int tag, Comm& comm, Space space) noexcept { return wait(isend(buffer, dest, tag, comm, space)); }

namespace proto {

namespace {

constexpr std::size_t small_payload = 64;  ///< bytes that every node has room for: such nodes are used again
constexpr unsigned most_spares = 1024;     ///< of a VCI; a few hundred kilobytes

Unexpected* take_spare(Vci& vci) noexcept {
  Unexpected* spare = vci.spare;
  if (spare) {
    vci.spare = static_cast<Unexpected*>(spare->all.next);
    --vci.spares;
  }
  return spare;
}

}  // namespace

Unexpected* new_unexpected(Vci& vci, std::size_t payload) noexcept {
  const std::size_t room = sizeof(Unexpected) + (payload < small_payload ? small_payload : payload);
  void* memory = payload <= small_payload ? take_spare(vci) : nullptr;
  if (!memory) memory = std::malloc(room);
  if (!memory)
    sys::fatal(
        "no memory for an unexpected message of %zu bytes; %zu messages that no receive asked for are kept already "
        "(HEDDLE_UNEXPECTED bounds them)",
        payload, vci.matcher.unexpected());
  auto* message = new (memory) Unexpected;
  message->room = room;  // the node itself counts too, or many small messages would not
  vci.unexpected_bytes += message->room;
  if (!vci.holding && vci.unexpected_bytes > limits.unexpected) {
    vci.holding = true;
    vci.ring.set_hold(true);
  }
  return message;
}

void keep(Vci& vci, Unexpected& message) noexcept {
  vci.matcher.keep(message);
  wake_sleepers(vci);
}

void free_unexpected(Vci& vci, Unexpected* message) noexcept {
  vci.unexpected_bytes -= message->room;
  // Half, so that the flag does not flutter at the limit.
  if (vci.holding && vci.unexpected_bytes <= limits.unexpected / 2) {
    vci.holding = false;
    vci.ring.set_hold(false);
  }
  if (message->room > sizeof(Unexpected) + small_payload || vci.spares == most_spares) return std::free(message);
  message->all.next = vci.spare;
  vci.spare = message;
  ++vci.spares;
}

void free_spares(Vci& vci) noexcept {
  while (Unexpected* spare = take_spare(vci)) std::free(spare);
}

void consume(VciGuard& guard, Request& receive, Unexpected& message) noexcept {
  Vci& vci = guard.vci();
  switch (message.form) {
    case Unexpected::Form::sync: {
      const RecordHead head{message.key.context, 0, 0, PointToPoint::ack, 0};
      reply(guard, message.offer.process, message.lane, head, &message.offer.request, sizeof(RequestToken));
      [[fallthrough]];
    }
    case Unexpected::Form::eager:
      deliver(guard, receive, message.payload(), message.bytes, message.key.source, message.key.tag);
      break;
    case Unexpected::Form::offer:
      begin_transfer(guard, receive, message.offer, message.lane, message.key.source, message.key.tag);
      break;
    case Unexpected::Form::local: {
      Request& sender = *message.sender;
      copy(sender.target(), receive.target());
      set_received(receive, message.bytes, message.key.source, message.key.tag);
      complete(receive, guard);
      complete(sender, guard);
      break;
    }
  }
  free_unexpected(vci, &message);
}

}  // namespace proto
}  // namespace heddle
