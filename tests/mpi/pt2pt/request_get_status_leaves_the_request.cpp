// ranks: 2
// timeout: 60
// MPI_Request_get_status and its _any, _some and _all forms make progress, report completion with the right status as
// often as they are asked, and leave the requests to be completed by MPI_Wait.
#include "../support.hpp"

using namespace test;

namespace {

constexpr int n = 6;

void start(const World& w, std::vector<int>& out, std::vector<int>& in, std::vector<MPI_Request>& requests) {
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    out[k] = w.rank * 100 + i, in[k] = -1;
    MPI_Irecv(&in[k], 1, MPI_INT, 1 - w.rank, i, MPI_COMM_WORLD, &requests[k]);
  }
}

void check_status(const World& w, const MPI_Status& status, int i) {
  CHECK_EQ(status.MPI_SOURCE, 1 - w.rank);
  CHECK_EQ(status.MPI_TAG, i);
  CHECK_EQ(count_of(status, MPI_INT), 1);
}

void send(const World& w, std::vector<int>& out, int i) {
  MPI_Send(&out[static_cast<std::size_t>(i)], 1, MPI_INT, 1 - w.rank, i, MPI_COMM_WORLD);
}

}  // namespace

int main() {
  const World w = init();
  std::vector<int> out(n), in(n);
  std::vector<MPI_Request> requests(n);
  MPI_Status status;
  std::vector<MPI_Status> statuses(n);
  std::vector<int> indices(n);
  int flag = -1, index = -1, some = -1;

  // Nothing has been sent: nothing is complete.
  start(w, out, in, requests);
  const std::vector<MPI_Request> before = requests;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int repeat = 0; repeat < 100; ++repeat) {
    MPI_Request_get_status(requests[0], &flag, &status);
    CHECK_EQ(flag, 0);
    MPI_Request_get_status_any(n, requests.data(), &index, &flag, &status);
    CHECK_EQ(flag, 0);
    CHECK_EQ(index, MPI_UNDEFINED);
    MPI_Request_get_status_some(n, requests.data(), &some, indices.data(), statuses.data());
    CHECK_EQ(some, 0);
    MPI_Request_get_status_all(n, requests.data(), &flag, statuses.data());
    CHECK_EQ(flag, 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);

  // One arrives: each form finds it, twice.
  send(w, out, 2);
  for (int repeat = 0; repeat < 2; ++repeat) {
    CHECK(eventually([&] {
      MPI_Request_get_status(requests[2], &flag, &status);
      return flag != 0;
    }));
    check_status(w, status, 2);
    CHECK(eventually([&] {
      MPI_Request_get_status_any(n, requests.data(), &index, &flag, &status);
      return flag != 0;
    }));
    CHECK_EQ(index, 2);
    check_status(w, status, 2);
    MPI_Request_get_status_some(n, requests.data(), &some, indices.data(), statuses.data());
    CHECK_EQ(some, 1);
    CHECK_EQ(indices[0], 2);
    check_status(w, statuses[0], 2);
    MPI_Request_get_status_all(n, requests.data(), &flag, MPI_STATUSES_IGNORE);
    CHECK_EQ(flag, 0);
    CHECK(requests == before);
    CHECK_EQ(in[2], (1 - w.rank) * 100 + 2);
  }
  MPI_Wait(&requests[2], &status);
  check_status(w, status, 2);
  CHECK(requests[2] == MPI_REQUEST_NULL);

  MPI_Barrier(MPI_COMM_WORLD);  // the peer has looked too before more is sent
  // All arrive: _all says so, and every request still waits to be completed.
  for (int i = n - 1; i >= 0; --i)
    if (i != 2) send(w, out, i);
  CHECK(eventually([&] {
    MPI_Request_get_status_all(n, requests.data(), &flag, statuses.data());
    return flag != 0;
  }));
  for (int i = 0; i < n; ++i) {
    if (i == 2)
      CHECK(is_empty(statuses[2]));
    else
      check_status(w, statuses[static_cast<std::size_t>(i)], i);
  }
  MPI_Request_get_status_some(n, requests.data(), &some, indices.data(), MPI_STATUSES_IGNORE);
  CHECK_EQ(some, n - 1);
  for (int k = 0; k < some; ++k) CHECK_EQ(indices[static_cast<std::size_t>(k)], k < 2 ? k : k + 1);
  MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
  CHECK_EQ(flag, 1);
  MPI_Waitall(n, requests.data(), statuses.data());
  for (int i = 0; i < n; ++i) {
    if (i != 2) check_status(w, statuses[static_cast<std::size_t>(i)], i);
    CHECK_EQ(in[static_cast<std::size_t>(i)], (1 - w.rank) * 100 + i);
  }

  // Asking is enough progress for a large message.
  std::vector<int> large(500'000, w.rank), landed(500'000, -1);
  MPI_Request pair[2];
  MPI_Irecv(landed.data(), 500'000, MPI_INT, 1 - w.rank, 50, MPI_COMM_WORLD, &pair[0]);
  MPI_Isend(large.data(), 500'000, MPI_INT, 1 - w.rank, 50, MPI_COMM_WORLD, &pair[1]);
  CHECK(eventually([&] {
    MPI_Request_get_status_all(2, pair, &flag, MPI_STATUSES_IGNORE);
    return flag != 0;
  }));
  for (const int x : landed) CHECK_EQ(x, 1 - w.rank);
  MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
  return finish();
}
