// ranks: 1
// timeout: 60
// threads: 2
// MPI_Grequest_*: query and then free (once) at completion by every completion call; cancel with the right flag; the
// callbacks' status and error come back; a request completed by another thread wakes a waiter; freed before completion.
#include <atomic>
#include <thread>

#include "../support.hpp"

using namespace test;

namespace {

struct State {
  std::atomic<int> queries{0}, frees{0}, cancels{0}, cancel_saw_complete{-1};
  std::atomic<bool> freed_before_query{false};
  int tag = 0, count = 0, query_error = MPI_SUCCESS, free_error = MPI_SUCCESS;
  bool cancelled = false;
};

int query(void* extra, MPI_Status* status) {
  auto& s = *static_cast<State*>(extra);
  if (s.frees.load(std::memory_order_relaxed)) s.freed_before_query.store(true, std::memory_order_relaxed);
  s.queries.fetch_add(1, std::memory_order_relaxed);
  status->MPI_SOURCE = 3;
  status->MPI_TAG = s.tag;
  MPI_Status_set_cancelled(status, s.cancelled);
  MPI_Status_set_elements(status, MPI_INT, s.count);
  return s.query_error;
}

int release(void* extra) {
  auto& s = *static_cast<State*>(extra);
  s.frees.fetch_add(1, std::memory_order_relaxed);
  return s.free_error;
}

int cancel(void* extra, int complete) {
  auto& s = *static_cast<State*>(extra);
  s.cancels.fetch_add(1, std::memory_order_relaxed);
  s.cancel_saw_complete.store(complete, std::memory_order_relaxed);
  if (!complete) s.cancelled = true;
  return MPI_SUCCESS;
}

MPI_Request start(State& s) {
  MPI_Request request = MPI_REQUEST_NULL;
  CHECK_EQ(MPI_Grequest_start(query, release, cancel, &s, &request), MPI_SUCCESS);
  CHECK(request != MPI_REQUEST_NULL);
  return request;
}

void check_done(const State& s, const MPI_Status& status) {
  CHECK_EQ(status.MPI_SOURCE, 3);
  CHECK_EQ(status.MPI_TAG, s.tag);
  CHECK_EQ(count_of(status, MPI_INT), s.count);
  CHECK(s.queries.load() >= 1);  // the standard allows more than one
  CHECK_EQ(s.frees.load(), 1);
  CHECK(!s.freed_before_query.load());
}

void every_completion_call() {
  for (int how = 0; how < 8; ++how) {
    State s;
    s.tag = how, s.count = how * 5;
    MPI_Request requests[3] = {MPI_REQUEST_NULL, start(s), MPI_REQUEST_NULL};
    MPI_Request& request = requests[1];
    MPI_Status status, statuses[3];
    int flag = -1, index = -1, some = -1, indices[3];
    MPI_Test(&request, &flag, &status);
    CHECK_EQ(flag, 0);
    MPI_Testany(3, requests, &index, &flag, &status);
    CHECK_EQ(flag, 0);
    CHECK_EQ(s.queries.load() + s.frees.load(), 0);
    MPI_Grequest_complete(request);
    switch (how) {
      case 0: MPI_Wait(&request, &status); break;
      case 1: MPI_Test(&request, &flag, &status); CHECK_EQ(flag, 1); break;
      case 2: MPI_Waitany(3, requests, &index, &status); CHECK_EQ(index, 1); break;
      case 3: MPI_Testany(3, requests, &index, &flag, &status); CHECK_EQ(index, 1); break;
      case 4: MPI_Waitall(3, requests, statuses); status = statuses[1]; break;
      case 5: MPI_Testall(3, requests, &flag, statuses); CHECK_EQ(flag, 1); status = statuses[1]; break;
      case 6: MPI_Waitsome(3, requests, &some, indices, statuses); CHECK_EQ(indices[0], 1); status = statuses[0]; break;
      default: MPI_Testsome(3, requests, &some, indices, statuses); CHECK_EQ(some, 1); status = statuses[0]; break;
    }
    CHECK(request == MPI_REQUEST_NULL);
    check_done(s, status);
  }
}

// The query function must run even when the caller ignores the status.
void ignored_statuses() {
  State s;
  MPI_Request request = start(s);
  MPI_Grequest_complete(request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(s.queries.load() >= 1);
  CHECK_EQ(s.frees.load(), 1);
}

void get_status_queries_without_freeing() {
  State s;
  s.tag = 5, s.count = 2;
  MPI_Request request = start(s);
  int flag = -1;
  MPI_Status status;
  MPI_Request_get_status(request, &flag, &status);
  CHECK_EQ(flag, 0);
  MPI_Grequest_complete(request);
  MPI_Request_get_status(request, &flag, &status);
  CHECK_EQ(flag, 1);
  CHECK_EQ(status.MPI_TAG, 5);
  CHECK_EQ(count_of(status, MPI_INT), 2);
  CHECK_EQ(s.frees.load(), 0);
  MPI_Wait(&request, &status);
  CHECK_EQ(s.frees.load(), 1);
}

void cancel_callback() {
  State s;
  MPI_Request request = start(s);
  MPI_Cancel(&request);
  CHECK_EQ(s.cancels.load(), 1);
  CHECK_EQ(s.cancel_saw_complete.load(), 0);
  MPI_Grequest_complete(request);
  MPI_Status status;
  int flag = -1;
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &flag);
  CHECK_EQ(flag, 1);

  State late;
  request = start(late);
  MPI_Grequest_complete(request);
  MPI_Cancel(&request);
  CHECK_EQ(late.cancel_saw_complete.load(), 1);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &flag);
  CHECK_EQ(flag, 0);
}

void freed_before_completion() {
  State s;
  MPI_Request request = start(s), copy = request;
  MPI_Request_free(&request);
  CHECK(request == MPI_REQUEST_NULL);
  CHECK_EQ(s.frees.load(), 0);
  MPI_Grequest_complete(copy);
  CHECK_EQ(s.frees.load(), 1);
  CHECK_EQ(s.queries.load(), 0);  // nobody asked
}

void freed_after_completion() {
  State s;
  MPI_Request request = start(s);
  MPI_Grequest_complete(request);
  CHECK_EQ(s.frees.load(), 0);
  MPI_Request_free(&request);
  CHECK_EQ(s.frees.load(), 1);
}

// "the error code returned by the callback is returned by the MPI call that invoked it"
void errors_come_back() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  State s;
  s.query_error = MPI_ERR_NO_SUCH_FILE;
  MPI_Request request = start(s);
  MPI_Grequest_complete(request);
  MPI_Status status;
  CHECK_EQ(error_class(MPI_Wait(&request, &status)), MPI_ERR_NO_SUCH_FILE);
  CHECK_EQ(s.frees.load(), 1);

  State t;
  t.query_error = MPI_ERR_QUOTA;
  MPI_Request pair[2] = {start(t), MPI_REQUEST_NULL};
  MPI_Grequest_complete(pair[0]);
  MPI_Status statuses[2] = {dirty_status(), dirty_status()};
  CHECK_EQ(error_class(MPI_Waitall(2, pair, statuses)), MPI_ERR_IN_STATUS);
  // MPICH 5.0.2 turns it into MPI_ERR_OTHER on the way.
  if (!library_is_mpich()) CHECK_EQ(error_class(statuses[0].MPI_ERROR), MPI_ERR_QUOTA);
  CHECK_EQ(statuses[1].MPI_ERROR, MPI_SUCCESS);

  for (int how = 0; how < (library_is_mpich() ? 3 : 4); ++how) {  // MPICH 5.0.2 drops what a late free_fn returns
    State f;
    f.free_error = MPI_ERR_DISP;
    request = start(f);
    MPI_Request copy = request;
    if (how == 3) MPI_Request_free(&request);
    const int completed = MPI_Grequest_complete(copy);
    CHECK_EQ(error_class(completed), how == 3 ? MPI_ERR_DISP : MPI_SUCCESS);
    int flag = 0;
    if (how == 0) CHECK_EQ(error_class(MPI_Wait(&request, MPI_STATUS_IGNORE)), MPI_ERR_DISP);
    if (how == 1) CHECK_EQ(error_class(MPI_Test(&request, &flag, &status)), MPI_ERR_DISP);
    if (how == 2) CHECK_EQ(error_class(MPI_Request_free(&request)), MPI_ERR_DISP);
    CHECK_EQ(f.frees.load(), 1);
    if (!library_is_mpich()) CHECK(request == MPI_REQUEST_NULL);  // MPICH 5.0.2 keeps the freed handle
  }
}

void completed_by_another_thread() {
  for (int round = 0; round < 300; ++round) {
    State s;
    s.tag = round, s.count = 1;
    MPI_Request request = start(s), copy = request;
    std::thread other([copy] { MPI_Grequest_complete(copy); });
    MPI_Status status;
    if (round % 3 == 0) {
      MPI_Wait(&request, &status);
    } else if (round % 3 == 1) {
      MPI_Waitall(1, &request, &status);
    } else {
      int flag = 0;
      CHECK(eventually([&] { return MPI_Test(&request, &flag, &status), flag != 0; }));
    }
    // The call that completed the request calls free_fn; MPICH 5.0.2 leaves it to whichever thread is last.
    if (library_is_mpich()) other.join();
    check_done(s, status);
    if (other.joinable()) other.join();
  }
}

// Together with receives in one array: Waitany returns whichever is there.
void mixed_with_receives() {
  State s;
  s.tag = 9;
  int in = -1, out = 4, index = -1;
  MPI_Request requests[2] = {start(s), MPI_REQUEST_NULL};
  MPI_Irecv(&in, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Send(&out, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  MPI_Status status;
  MPI_Waitany(2, requests, &index, &status);
  CHECK_EQ(index, 1);
  CHECK_EQ(in, 4);
  MPI_Grequest_complete(requests[0]);
  MPI_Waitany(2, requests, &index, &status);
  CHECK_EQ(index, 0);
  CHECK_EQ(status.MPI_TAG, 9);
}

}  // namespace

int main() {
  init_threads();
  every_completion_call();
  ignored_statuses();
  get_status_queries_without_freeing();
  cancel_callback();
  freed_before_completion();
  freed_after_completion();
  completed_by_another_thread();
  mixed_with_receives();
  errors_come_back();
  return finish();
}
