// ranks: 1 2 3 4 5
// timeout: 120
// Hundreds of nonblocking and persistent collectives outstanding at once on one communicator: each rank completes them
// in its own order, by different calls, with point-to-point traffic and blocking collectives in between.
#include <algorithm>
#include <numeric>

#include "forms.hpp"

using namespace test;

namespace {

constexpr int kinds = 6, many = 240;

struct Operation {
  int kind, root;
  std::vector<int> send, recv;
  MPI_Request request = MPI_REQUEST_NULL;
};

int value(int rank, int operation, int i) { return rank * 7919 + operation * 31 + i; }

void start(const World& w, Operation& op, int number, Random& shared) {
  const int n = w.size, count = static_cast<int>(shared.below(5) == 0 ? 3000 + shared.below(5000) : shared.below(20));
  op.kind = number % kinds;
  op.root = static_cast<int>(shared.below(static_cast<std::uint64_t>(n)));
  op.send.resize(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) op.send[static_cast<std::size_t>(i)] = value(w.rank, number, i);
  switch (op.kind) {
    case 0:
      op.recv.resize(op.send.size());
      CHECK_OK(MPI_Iallreduce(op.send.data(), op.recv.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &op.request));
      break;
    case 1:
      op.recv = op.send;
      CHECK_OK(MPI_Ibcast(op.recv.data(), count, MPI_INT, op.root, MPI_COMM_WORLD, &op.request));
      break;
    case 2:
      op.recv.resize(op.send.size() * static_cast<std::size_t>(n));
      CHECK_OK(
          MPI_Iallgather(op.send.data(), count, MPI_INT, op.recv.data(), count, MPI_INT, MPI_COMM_WORLD, &op.request));
      break;
    case 3:
      CHECK_OK(MPI_Ibarrier(MPI_COMM_WORLD, &op.request));
      break;
    case 4:
      op.recv.resize(op.send.size());
      CHECK_OK(
          MPI_Ireduce(op.send.data(), op.recv.data(), count, MPI_INT, MPI_MAX, op.root, MPI_COMM_WORLD, &op.request));
      break;
    case 5:
      op.recv.resize(op.send.size());
      CHECK_OK(MPI_Iscan(op.send.data(), op.recv.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &op.request));
      break;
  }
}

void check(const World& w, const Operation& op, int number) {
  const int count = static_cast<int>(op.send.size()), n = w.size;
  for (int i = 0; i < static_cast<int>(op.recv.size()); ++i) {
    const int got = op.recv[static_cast<std::size_t>(i)];
    int expected = got;
    switch (op.kind) {
      case 0:
        expected = 0;
        for (int r = 0; r < n; ++r) expected += value(r, number, i);
        break;
      case 1:
        expected = value(op.root, number, i);
        break;
      case 2:
        expected = value(i / count, number, i % count);
        break;
      case 4:
        if (w.rank == op.root) expected = value(n - 1, number, i);
        break;
      case 5:
        expected = 0;
        for (int r = 0; r <= w.rank; ++r) expected += value(r, number, i);
        break;
    }
    if (got != expected)
      check_fail(__FILE__, __LINE__, "operation %d of kind %d, element %d: %d and not %d", number, op.kind, i, got,
                 expected);
  }
}

// Completes all requests in an order of the rank's own.
void complete(std::vector<Operation>& ops, Random& own) {
  std::vector<int> order(ops.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[own.below(i)]);
  std::size_t next = 0;
  while (next < order.size()) {
    const std::size_t batch = std::min<std::size_t>(order.size() - next, 1 + own.below(30));
    std::vector<MPI_Request> requests;
    for (std::size_t i = 0; i < batch; ++i) requests.push_back(ops[static_cast<std::size_t>(order[next + i])].request);
    const int m = static_cast<int>(batch);
    switch (own.below(4)) {
      case 0:
        CHECK_OK(MPI_Waitall(m, requests.data(), MPI_STATUSES_IGNORE));
        break;
      case 1:
        for (int i = 0; i < m; ++i) {
          int index = -1;
          CHECK_OK(MPI_Waitany(m, requests.data(), &index, MPI_STATUS_IGNORE));
          CHECK_GE(index, 0);
        }
        break;
      case 2:
        for (MPI_Request& r : requests) {
          CHECK(eventually([&] {
            int flag = 0;
            CHECK_OK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
            return flag != 0;
          }));
        }
        break;
      case 3: {
        int left = m;
        CHECK(eventually([&] {
          int done = 0;
          std::vector<int> indices(batch);
          CHECK_OK(MPI_Testsome(m, requests.data(), &done, indices.data(), MPI_STATUSES_IGNORE));
          left -= done;
          return left == 0;
        }));
        break;
      }
    }
    for (MPI_Request r : requests) CHECK(r == MPI_REQUEST_NULL);
    next += batch;
  }
}

}  // namespace

int main() {
  const World w = init();
  for (int round = 0; round < 4; ++round) {
    Random shared(static_cast<std::uint64_t>(round)), own(static_cast<std::uint64_t>(1000 * round + w.rank));
    std::vector<Operation> ops(many);
    for (int i = 0; i < many; ++i) {
      start(w, ops[static_cast<std::size_t>(i)], i, shared);
      if (i % 60 == 59) {  // blocking ones pass by
        int one = 1, sum = 0;
        CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK_EQ(sum, w.size);
        const int to = (w.rank + 1) % w.size, from = (w.rank + w.size - 1) % w.size;
        int got = -1;
        CHECK_OK(
            MPI_Sendrecv(&w.rank, 1, MPI_INT, to, i, &got, 1, MPI_INT, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(got, from);
      }
    }
    complete(ops, own);
    for (int i = 0; i < many; ++i) check(w, ops[static_cast<std::size_t>(i)], i);
  }
  // Persistent ones: all started together, again and again, with new data each time.
  constexpr int fixed = 40;
  std::vector<int> send(fixed), recv(fixed);
  std::vector<MPI_Request> requests(fixed);
  for (int i = 0; i < fixed; ++i)
    CHECK_OK(MPI_Allreduce_init(&send[static_cast<std::size_t>(i)], &recv[static_cast<std::size_t>(i)], 1, MPI_INT,
                                MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[static_cast<std::size_t>(i)]));
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < fixed; ++i) send[static_cast<std::size_t>(i)] = value(w.rank, i, round);
    CHECK_OK(MPI_Startall(fixed, requests.data()));
    CHECK_OK(MPI_Waitall(fixed, requests.data(), MPI_STATUSES_IGNORE));
    for (int i = 0; i < fixed; ++i) {
      int expected = 0;
      for (int r = 0; r < w.size; ++r) expected += value(r, i, round);
      CHECK_EQ(recv[static_cast<std::size_t>(i)], expected);
    }
  }
  for (MPI_Request& r : requests) CHECK_OK(MPI_Request_free(&r));
  return finish();
}
