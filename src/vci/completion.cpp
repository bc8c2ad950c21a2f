#include "vci/completion.hpp"

#include "core/comm.hpp"
#include "core/status.hpp"

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
  if (r.buffer.type) release(*r.buffer.type);
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
  r.buffer.type = nullptr;
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
  if (!r.persistent && r.buffer.type) {
    release(*r.buffer.type);
    r.buffer.type = nullptr;
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

bool has_freed_operations() noexcept { return freed_operations.load(std::memory_order_relaxed) != 0; }

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

void retire(Request* r) noexcept {
  if (!r->vci) return;  // one of the shared complete requests
  if (r->persistent) {
    r->state.store(Request::done_bit | Request::inactive_bit, std::memory_order_relaxed);
    return;
  }
  recycle(*r);
}

namespace {

void describe(const Request& request, MPI_Status* status) noexcept {
  fill_status(status, request.source, request.tag, request.bytes, request.cancelled);
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

}  // namespace heddle
