// MPI-5.0 §3.7, §3.9, §13.2: completing, freeing and starting requests; generalized requests.
#include "mpi/request.hpp"

#include "core/status.hpp"
#include "generated/impl.hpp"
#include "mpi/check.hpp"
#include "part/partitioned.hpp"
#include "sys/error.hpp"
#include "vci/wait.hpp"

namespace heddle::mpi {

int blame_comm(Comm* comm, int code) noexcept {
  return blame(comm && !comm->is(Kind::freed) ? comm : nullptr, code);
}

namespace {

int bad_request() noexcept {
  return error(MPI_ERR_REQUEST, "the request handle is not one: it was freed or completed before, or never set");
}

void clear(MPI_Status& status) noexcept {
  status.MPI_SOURCE = MPI_ANY_SOURCE;
  status.MPI_TAG = MPI_ANY_TAG;
  set_status_bytes(status, 0);
  set_status_cancelled(status, false);
}

void set_empty(MPI_Status* status) noexcept {
  if (status == MPI_STATUS_IGNORE) return;
  clear(*status);
  status->MPI_ERROR = MPI_SUCCESS;  // part of an empty status, unlike of others (MPI-5.0 §3.7.3)
}

bool is_inactive(const Request& r) noexcept { return r.state.load(std::memory_order_relaxed) & Request::inactive_bit; }

/// Describes a complete request. Returns its error code.
int describe(Request& r, MPI_Status* status) noexcept {
  if (r.ops && r.ops->query) return r.ops->query(r, status);
  fill_status(status, r.source, r.tag, r.bytes, r.cancelled);
  return r.error;
}

/// What the free callback returned of the generalized request that this thread freed last.
thread_local int free_error = MPI_SUCCESS;

/// Ends a complete request: status, handle, memory.
/// \param blames its communicator gets the error of the function, if it has failed
int conclude(Request& r, MPI_Request* handle, MPI_Status* status, bool blames = true) noexcept {
  if (is_inactive(r)) {
    set_empty(status);
    return MPI_SUCCESS;
  }
  int code = describe(r, status);
  if (code && blames) blame_comm(r.comm, code);  // the request may be what the communicator lives for
  if (!r.persistent) *handle = MPI_REQUEST_NULL;
  if (r.error) r.error = MPI_SUCCESS;  // not a plain store: the shared complete requests are never written
  if (r.type == Request::Type::generalized) [[unlikely]] {
    retire(&r);
    return free_error ? free_error : code;  // the last callback's (MPI-5.0 §13.2), but a failed query is not forgotten
  }
  retire(&r);
  return code;
}

/// The common end, without looking into anything special: an operation that is complete, not persistent, without error. False
/// when it is not that simple.
/// \param give_back called with the request unless it is the one that all finished sends share
template <typename GiveBack>
inline bool conclude_simply(MPI_Request* handle, MPI_Status* status, GiveBack&& give_back) noexcept {
  if (*handle == to_handle(completed_request())) {
    fill_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    *handle = MPI_REQUEST_NULL;
    return true;
  }
  Request* r = resolve<Request>(*handle);
  // Acquire pairs with `complete`: the status and the received data are ours.
  if (!r || r->state.load(std::memory_order_acquire) != Request::done_bit) return false;
  fill_status(status, r->source, r->tag, r->bytes);
  *handle = MPI_REQUEST_NULL;
  give_back(*r);
  return true;
}
inline bool conclude_simply(MPI_Request* handle, MPI_Status* status) noexcept {
  return conclude_simply(handle, status, [](Request& request) { request.vci->requests.release(&request); });
}

/// The requests of an array, seen one by one. Null handles count as complete and empty.
struct Seen {
  Request* request;  ///< nullptr: MPI_REQUEST_NULL
  bool valid;
};
Seen see(MPI_Request handle) noexcept {
  if (handle == MPI_REQUEST_NULL) return {nullptr, true};
  Request* r = resolve<Request>(handle);
  return {r, r != nullptr};
}

/// \param first index of `requests[0]` in the user's array, for the text.
int check_all(int count, const MPI_Request* requests, int first = 0) noexcept {
  for (int i = 0; i < count; ++i)
    if (!see(requests[i]).valid)
      return error(MPI_ERR_REQUEST, "element %d of the request array is not a request: it was freed or completed before, or never set", first + i);
  return MPI_SUCCESS;
}

/// Progress for whatever the array waits for: the VCI of the first operation that is not complete.
void progress_for_array(int count, const MPI_Request* requests) noexcept {
  for (int i = 0; i < count; ++i)
    if (Request* r = see(requests[i]).request; r && !r->is_done()) return poll_for_test(*r->vci);
}

/// The index of a complete active request, or -1; `active` tells whether any is active.
int find_complete(int count, const MPI_Request* requests, bool& active) noexcept {
  active = false;
  for (int i = 0; i < count; ++i) {
    Request* r = see(requests[i]).request;
    if (!r || is_inactive(*r)) continue;
    active = true;
    if (r->is_done()) return i;
  }
  return -1;
}

/// The same, with a step of progress when there is none.
int test_for_complete(int count, const MPI_Request* requests, bool& active) noexcept {
  const int found = find_complete(count, requests, active);
  if (found >= 0 || !active) return found;
  progress_for_array(count, requests);
  return find_complete(count, requests, active);
}

bool all_complete(int count, const MPI_Request* requests) noexcept {
  for (int i = 0; i < count; ++i)
    if (Request* r = see(requests[i]).request; r && !r->is_done()) return false;
  return true;
}

/// Ends all requests of an array that is complete.
int conclude_all(int count, MPI_Request* requests, MPI_Status* statuses) noexcept {
  bool failed = false;
  int first_code = MPI_SUCCESS;
  ReleaseBatch back;
  for (int i = 0; i < count; ++i) {
    MPI_Status* status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
    int code = MPI_SUCCESS;
    if (conclude_simply(&requests[i], status, [&](Request& request) { back.add(request, request.vci->requests); })) {
      // nothing more to do
    } else if (Request* r = see(requests[i]).request) {
      code = conclude(*r, &requests[i], status, !failed);
      if (code && !failed) {
        failed = true;
        first_code = code;
      }
    } else {
      set_empty(status);
    }
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = code;
  }
  if (!failed) return MPI_SUCCESS;
  char text[MPI_MAX_ERROR_STRING];
  error_text(first_code, text);
  return error(MPI_ERR_IN_STATUS, "an operation failed, see the statuses; the first: %.400s", text);
}

/// Ends the complete ones among the requests. `*outcount` is MPI_UNDEFINED when none is active.
int conclude_some(int count, MPI_Request* requests, int* outcount, int* indices, MPI_Status* statuses) noexcept {
  bool failed = false;
  int n = 0;
  bool active = false;
  for (int i = 0; i < count; ++i) {
    Request* r = see(requests[i]).request;
    if (!r || is_inactive(*r)) continue;
    active = true;
    if (!r->is_done()) continue;
    MPI_Status* status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[n];
    const int code = conclude(*r, &requests[i], status, !failed);
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = code;
    failed = failed || code;
    indices[n++] = i;
  }
  *outcount = active ? n : MPI_UNDEFINED;
  return failed ? error(MPI_ERR_IN_STATUS, "an operation failed; its error code is in its status") : MPI_SUCCESS;
}

}  // namespace

namespace {

[[gnu::noinline]] int wait_slowly(MPI_Request* request, MPI_Status* status) noexcept {
  const auto [r, valid] = see(*request);
  if (!valid) return check::raise_blamed(bad_request(), "MPI_Wait");
  if (!r) return set_empty(status), MPI_SUCCESS;
  wait_until(r->vci, [r = r] { return r->is_done(); }, {.request = r, .function = "MPI_Wait"});
  const int code = conclude(*r, request, status);
  return code ? check::raise_blamed(code, "MPI_Wait") : code;
}

[[gnu::noinline]] int test_slowly(MPI_Request* request, int* flag, MPI_Status* status) noexcept {
  const auto [r, valid] = see(*request);
  if (!valid) return check::raise_blamed(bad_request(), "MPI_Test");
  if (!r) return set_empty(status), MPI_SUCCESS;
  if (!r->is_done()) {
    poll_for_test(*r->vci);
    if (!r->is_done()) return *flag = 0, MPI_SUCCESS;
  }
  const int code = conclude(*r, request, status);
  return code ? check::raise_blamed(code, "MPI_Test") : code;
}

}  // namespace

int Wait(MPI_Request* request, MPI_Status* status) {
  return conclude_simply(request, status) ? MPI_SUCCESS : wait_slowly(request, status);
}

int Test(MPI_Request* request, int* flag, MPI_Status* status) {
  *flag = 1;
  return conclude_simply(request, status) ? MPI_SUCCESS : test_slowly(request, flag, status);
}

namespace {

/// MPI_Waitall of an array whose requests before `first` are concluded.
[[gnu::noinline]] int waitall_rest(int count, MPI_Request* requests, MPI_Status* statuses, int first) noexcept {
  int code = check_all(count - first, requests + first, first);
  if (!code) {
    for (int i = first; i < count; ++i)
      if (Request* r = see(requests[i]).request) wait_until(r->vci, [r] { return r->is_done(); }, {.request = r, .function = "MPI_Waitall"});
    code = conclude_all(count - first, requests + first, statuses == MPI_STATUSES_IGNORE ? statuses : statuses + first);
  }
  if (!code) return MPI_SUCCESS;
  if (statuses != MPI_STATUSES_IGNORE)
    for (int i = 0; i < first; ++i) statuses[i].MPI_ERROR = MPI_SUCCESS;  // MPI_ERR_IN_STATUS: those before count too
  return check::raise_blamed(code, "MPI_Waitall");
}

/// MPI_Waitall of many: releasing a request costs a read-modify-write where VCIs are locked, and those of a VCI share one.
[[gnu::noinline]] int waitall_together(int count, MPI_Request* requests, MPI_Status* statuses) noexcept {
  int i = 0;
  {
    ReleaseBatch back;
    const auto conclude_next = [&] {
      MPI_Status* status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
      return conclude_simply(&requests[i], status, [&](Request& done) { back.add(done, done.vci->requests); });
    };
    for (bool checked = false; i < count; ++i) {
      if (conclude_next()) continue;
      if (!checked && check_all(count - i, requests + i)) break;  // before it waits; what is wrong is said in `waitall_rest`
      checked = true;
      Request* r = see(requests[i]).request;
      if (!r) break;
      wait_until(r->vci, [r] { return r->is_done(); }, {.request = r, .function = "MPI_Waitall"});
      if (!conclude_next()) break;
    }
  }
  return i == count ? MPI_SUCCESS : waitall_rest(count, requests, statuses, i);
}

}  // namespace

int Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  if (count > 2) return waitall_together(count, requests, statuses);
  // One pass over what is complete and simple; from the first request that is not, the general way.
  int i = 0;
  if (statuses == MPI_STATUSES_IGNORE) {
    for (; i < count; ++i)
      if (!conclude_simply(&requests[i], MPI_STATUS_IGNORE)) [[unlikely]] return waitall_rest(count, requests, statuses, i);
    return MPI_SUCCESS;
  }
  for (; i < count; ++i)
    if (!conclude_simply(&requests[i], &statuses[i])) [[unlikely]] return waitall_rest(count, requests, statuses, i);
  return MPI_SUCCESS;
}

int Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  if (const int code = check_all(count, requests)) return code;
  *flag = all_complete(count, requests);
  if (!*flag) {
    progress_for_array(count, requests);
    *flag = all_complete(count, requests);
  }
  return *flag ? conclude_all(count, requests, statuses) : MPI_SUCCESS;
}

int Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  if (const int code = check_all(count, requests)) return code;
  bool active;
  int found = find_complete(count, requests, active);
  if (active && found < 0) wait_until(nullptr, [&] { return (found = find_complete(count, requests, active)) >= 0; });
  if (found < 0) return *index = MPI_UNDEFINED, set_empty(status), MPI_SUCCESS;
  *index = found;
  return conclude(*see(requests[found]).request, &requests[found], status);
}

int Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  if (const int code = check_all(count, requests)) return code;
  bool active;
  const int found = test_for_complete(count, requests, active);
  *flag = found >= 0 || !active;
  *index = found >= 0 ? found : MPI_UNDEFINED;
  if (found < 0) {
    if (*flag) set_empty(status);
    return MPI_SUCCESS;
  }
  return conclude(*see(requests[found]).request, &requests[found], status);
}

int Waitsome(int count, MPI_Request requests[], int* outcount, int indices[], MPI_Status statuses[]) {
  if (const int code = check_all(count, requests)) return code;
  bool active;
  if (find_complete(count, requests, active) < 0 && active)
    wait_until(nullptr, [&] { return find_complete(count, requests, active) >= 0; });
  return conclude_some(count, requests, outcount, indices, statuses);
}

int Testsome(int count, MPI_Request requests[], int* outcount, int indices[], MPI_Status statuses[]) {
  if (const int code = check_all(count, requests)) return code;
  bool active;
  if (find_complete(count, requests, active) < 0 && active) progress_for_array(count, requests);
  return conclude_some(count, requests, outcount, indices, statuses);
}

int Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  *flag = 1;
  if (request == MPI_REQUEST_NULL) return set_empty(status), MPI_SUCCESS;
  Request* r = resolve<Request>(request);
  if (!r) return bad_request();
  if (!r->is_done()) {
    poll_for_test(*r->vci);
    if (!r->is_done()) return *flag = 0, MPI_SUCCESS;
  }
  if (is_inactive(*r)) return set_empty(status), MPI_SUCCESS;
  const int code = describe(*r, status);
  return r->type == Request::Type::generalized ? code : MPI_SUCCESS;  // an operation's own error waits for its completion call
}

int Request_get_status_any(int count, const MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  if (const int code = check_all(count, requests)) return code;
  bool active;
  const int found = test_for_complete(count, requests, active);
  *flag = found >= 0 || !active;
  *index = found >= 0 ? found : MPI_UNDEFINED;
  if (found >= 0) describe(*see(requests[found]).request, status);
  else if (*flag) set_empty(status);
  return MPI_SUCCESS;
}

int Request_get_status_all(int count, const MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  if (const int code = check_all(count, requests)) return code;
  *flag = all_complete(count, requests);
  if (!*flag) {
    progress_for_array(count, requests);
    *flag = all_complete(count, requests);
  }
  for (int i = 0; *flag && statuses != MPI_STATUSES_IGNORE && i < count; ++i) {
    Request* r = see(requests[i]).request;
    if (r && !is_inactive(*r)) describe(*r, &statuses[i]); else set_empty(&statuses[i]);
  }
  return MPI_SUCCESS;
}

int Request_get_status_some(int count, const MPI_Request requests[], int* outcount, int indices[], MPI_Status statuses[]) {
  if (const int code = check_all(count, requests)) return code;
  bool active;
  if (find_complete(count, requests, active) < 0 && active) progress_for_array(count, requests);
  int n = 0;
  active = false;
  for (int i = 0; i < count; ++i) {
    Request* r = see(requests[i]).request;
    if (!r || is_inactive(*r)) continue;
    active = true;
    if (!r->is_done()) continue;
    if (statuses != MPI_STATUSES_IGNORE) describe(*r, &statuses[n]);
    indices[n++] = i;
  }
  *outcount = active ? n : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

int Request_free(MPI_Request* request) {
  Request* r = resolve<Request>(*request);
  if (!r) return bad_request();
  if (part::is_partitioned(*r) && !is_inactive(*r))
    return blame_comm(r->comm, error(MPI_ERR_REQUEST, "a partitioned request that is active cannot be freed: complete it first"));
  *request = MPI_REQUEST_NULL;
  free_error = MPI_SUCCESS;
  release_by_user(*r);
  return free_error;
}

int Start(MPI_Request* request) {
  Request* r = resolve<Request>(*request);
  if (!r || !r->persistent) return r ? error(MPI_ERR_REQUEST, "only a persistent request can be started") : bad_request();
  if (!is_inactive(*r)) return error(MPI_ERR_REQUEST, "the persistent request is active: wait for it before starting it again");
  const int code = start_persistent(*r);
  return code ? blame_comm(r->comm, code) : code;
}

int Startall(int count, MPI_Request requests[]) {
  if (const int code = check_all(count, requests)) return code;
  for (int i = 0; i < count; ++i)
    if (const int code = Start(&requests[i])) return code;
  return MPI_SUCCESS;
}

int Cancel(MPI_Request* request) {
  Request* r = resolve<Request>(*request);
  if (!r) return bad_request();
  if (is_inactive(*r)) return error(MPI_ERR_REQUEST, "the persistent request is not active: there is nothing to cancel");
  if (r->ops && r->ops->cancel) return r->ops->cancel(*r);
  if (r->type == Request::Type::recv || r->type == Request::Type::persistent_recv) {
    if (r->vci) cancel_receive(*r);
  } else if (r->type == Request::Type::send || r->type == Request::Type::persistent_send) {
    if (r->vci) cancel_send(*r);  // else it was complete when it began
  } else {
    return error(MPI_ERR_REQUEST, "collective operations cannot be cancelled");
  }
  return MPI_SUCCESS;
}

namespace {

/// A generalized request's callbacks. \see MPI-5.0 §13.2
struct Generalized {
  MPI_Grequest_query_function* query;
  MPI_Grequest_free_function* free;
  MPI_Grequest_cancel_function* cancel;
  void* extra;
};

const RequestOps generalized_ops{
    .start = nullptr,
    .cancel =
        [](Request& r) {
          auto& g = *static_cast<Generalized*>(r.data);
          return g.cancel(g.extra, r.is_done());
        },
    .query =
        [](Request& r, MPI_Status* status) {
          auto& g = *static_cast<Generalized*>(r.data);
          MPI_Status own{};
          MPI_Status* to = status == MPI_STATUS_IGNORE ? &own : status;
          clear(*to);
          return g.query(g.extra, to);
        },
    .free =
        [](Request& r) {
          auto* g = static_cast<Generalized*>(r.data);
          const int code = g->free ? g->free(g->extra) : MPI_SUCCESS;
          delete g;
          free_error = code;  // only now: the callback may itself free others
        },
};

}  // namespace

int Grequest_start(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
                   MPI_Grequest_cancel_function* cancel_fn, void* extra_state, MPI_Request* request) {
  auto* state = new (std::nothrow) Generalized{query_fn, free_fn, cancel_fn, extra_state};
  if (!state) return error(MPI_ERR_NO_MEM, "no memory for a generalized request");
  submit(vci_of_lane(Lane{}), [&](VciGuard& guard) {
    Request* r = new_request(guard.vci(), Request::Type::generalized, nullptr);
    r->ops = &generalized_ops;
    r->special = true;
    r->data = state;
    *request = to_handle(r);
  });
  return MPI_SUCCESS;
}

int Grequest_complete(MPI_Request request) {
  Request* r = resolve<Request>(request);
  if (!r || r->type != Request::Type::generalized) return error(MPI_ERR_REQUEST, "not a generalized request");
  free_error = MPI_SUCCESS;
  complete_from_outside(*r);
  return free_error;
}

}  // namespace heddle::mpi
