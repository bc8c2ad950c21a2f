// ranks: 2
// timeout: 60
// A receive that has not matched is cancelled, for good: later messages go to later receives. One that has matched
// completes normally. A send may or may not be cancelled, but either it is, or its message arrives.
#include "../support.hpp"

using namespace test;

namespace {

bool was_cancelled(const MPI_Status& status) {
  int flag = -1;
  MPI_Test_cancelled(&status, &flag);
  return flag != 0;
}

void unmatched_receives(const World& w) {
  if (w.rank == 1) {
    constexpr int n = 50;
    int values[n];
    MPI_Request requests[n];
    for (int i = 0; i < n; ++i) {
      values[i] = -1;
      MPI_Irecv(&values[i], 1, MPI_INT, i % 3 ? 0 : MPI_ANY_SOURCE, i % 2 ? 4 : MPI_ANY_TAG, MPI_COMM_WORLD,
                &requests[i]);
    }
    for (int i = n - 1; i >= 0; i -= 1) CHECK_EQ(MPI_Cancel(&requests[i]), MPI_SUCCESS);
    MPI_Status statuses[n];
    MPI_Waitall(n, requests, statuses);
    for (int i = 0; i < n; ++i) {
      CHECK(was_cancelled(statuses[i]));
      CHECK(requests[i] == MPI_REQUEST_NULL);
      CHECK_EQ(values[i], -1);
    }
    MPI_Send(nullptr, 0, MPI_INT, 0, 1, MPI_COMM_WORLD);
    int got = 0;
    MPI_Status status;
    MPI_Recv(&got, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, &status);
    CHECK_EQ(got, 99);
    CHECK(!was_cancelled(status));
    for (const int v : values) CHECK_EQ(v, -1);
  } else {
    const int value = 99;
    MPI_Recv(nullptr, 0, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
  }
}

// Of two receives that the same message fits, the first is cancelled: the second gets it.
void the_next_one_inherits(const World& w) {
  if (w.rank == 1) {
    int first = -1, second = -1;
    MPI_Request one, two;
    MPI_Irecv(&first, 1, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &one);
    MPI_Irecv(&second, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &two);
    MPI_Cancel(&one);
    MPI_Status status;
    MPI_Wait(&one, &status);
    CHECK(was_cancelled(status));
    MPI_Send(nullptr, 0, MPI_INT, 0, 1, MPI_COMM_WORLD);
    MPI_Wait(&two, &status);
    CHECK(!was_cancelled(status));
    CHECK_EQ(first, -1);
    CHECK_EQ(second, 7);
  } else {
    const int value = 7;
    MPI_Recv(nullptr, 0, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&value, 1, MPI_INT, 1, 6, MPI_COMM_WORLD);
  }
}

void matched_receives(const World& w) {
  for (const int n : {1, 100'000}) {
    std::vector<int> data(static_cast<std::size_t>(n), w.rank == 0 ? 5 : 0);
    if (w.rank == 0) {
      MPI_Send(data.data(), n, MPI_INT, 1, 2, MPI_COMM_WORLD);
    } else {
      MPI_Status status;
      MPI_Probe(0, 2, MPI_COMM_WORLD, &status);  // it is here: the receive matches as it is posted
      MPI_Request request;
      MPI_Irecv(data.data(), n, MPI_INT, 0, 2, MPI_COMM_WORLD, &request);
      MPI_Cancel(&request);
      MPI_Wait(&request, &status);
      CHECK(!was_cancelled(status));
      CHECK_EQ(count_of(status, MPI_INT), n);
      CHECK_EQ(data[static_cast<std::size_t>(n) - 1], 5);
    }
  }
}

void complete_requests_and_test(const World& w) {
  int out = w.rank, in = -1;
  MPI_Request request;
  MPI_Irecv(&in, 1, MPI_INT, w.rank, 8, MPI_COMM_WORLD, &request);
  MPI_Ssend(&out, 1, MPI_INT, w.rank, 8, MPI_COMM_WORLD);  // returns only when the receive has matched
  MPI_Cancel(&request);
  int flag = 0;
  MPI_Status status;
  CHECK(eventually([&] {
    MPI_Test(&request, &flag, &status);
    return flag != 0;
  }));
  CHECK(!was_cancelled(status));
  CHECK_EQ(in, w.rank);

  MPI_Irecv(&in, 1, MPI_INT, w.rank, 8, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  CHECK(eventually([&] {
    MPI_Test(&request, &flag, &status);
    return flag != 0;
  }));
  CHECK(was_cancelled(status));

  MPI_Irecv(&in, 1, MPI_INT, w.rank, 8, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Request_free(&request);  // cancelled, never waited for
  CHECK(request == MPI_REQUEST_NULL);
  MPI_Sendrecv(&out, 1, MPI_INT, w.rank, 8, &in, 1, MPI_INT, w.rank, 8, MPI_COMM_WORLD, &status);
  CHECK_EQ(count_of(status, MPI_INT), 1);
}

// Cancelling a persistent receive ends the active communication only: it can be started again.
void persistent_receives(const World& w) {
  int value = -1, out = 31;
  MPI_Request request;
  MPI_Recv_init(&value, 1, MPI_INT, w.rank, 9, MPI_COMM_WORLD, &request);
  for (int round = 0; round < 3; ++round) {
    MPI_Status status;
    MPI_Start(&request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    CHECK(was_cancelled(status));
    CHECK(request != MPI_REQUEST_NULL);
    MPI_Start(&request);
    MPI_Ssend(&out, 1, MPI_INT, w.rank, 9, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    CHECK(!was_cancelled(status));
    CHECK_EQ(value, out++);
  }
  MPI_Request_free(&request);
}

// Deprecated in MPI-4; either the message arrives or it was cancelled.
void sends(const World& w) {
  for (const std::size_t n : {8u, 2'000u, 1u << 20})
    for (const bool synchronous : {false, true}) {
      std::vector<unsigned char> data(n);
      if (w.rank == 0) {
        fill(data.data(), n, n);
        MPI_Request request;
        if (synchronous)
          MPI_Issend(data.data(), static_cast<int>(n), MPI_BYTE, 1, 20, MPI_COMM_WORLD, &request);
        else
          MPI_Isend(data.data(), static_cast<int>(n), MPI_BYTE, 1, 20, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Status status;
        MPI_Wait(&request, &status);  // returns, though nobody receives until it has
        const int cancelled = was_cancelled(status);
        MPI_Send(&cancelled, 1, MPI_INT, 1, 21, MPI_COMM_WORLD);
      } else {
        int cancelled = -1, flag = 0;
        MPI_Recv(&cancelled, 1, MPI_INT, 0, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (cancelled) {
          MPI_Iprobe(0, 20, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
          CHECK_EQ(flag, 0);
        } else {
          MPI_Recv(data.data(), static_cast<int>(n), MPI_BYTE, 0, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          CHECK_FILLED(data.data(), n, n);
        }
      }
      MPI_Barrier(MPI_COMM_WORLD);
    }
}

}  // namespace

int main() {
  const World w = init();
  unmatched_receives(w);
  the_next_one_inherits(w);
  matched_receives(w);
  complete_requests_and_test(w);
  persistent_receives(w);
  MPI_Barrier(MPI_COMM_WORLD);
  sends(w);
  return finish();
}
