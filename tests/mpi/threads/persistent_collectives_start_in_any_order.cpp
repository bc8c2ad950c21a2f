// ranks: 1 2 3
// threads: 4
// timeout: 60
// The initializing calls of persistent collectives are ordered; their starts are not, neither between the ranks nor
// between the threads of a rank (MPI-5.0 §6.13). Here threads start many of one communicator at the same time, each
// rank and thread in an order of its own, while one thread is in blocking and nonblocking collectives of that
// communicator.
#include <algorithm>

#include "team.hpp"

using namespace test;

namespace {

constexpr int starters = 3, each = 8, rounds = 25, large = 5'000;

// One persistent collective: what it is follows from its number, its data from the number, the round and the rank.
struct Operation {
  int number = 0;
  std::vector<int> send, recv;
  MPI_Request request = MPI_REQUEST_NULL;

  int kind() const { return number % 4; }
  int root(const World& w) const { return number % w.size; }
  int count() const { return number % 5 == 0 ? large : number % 5; }
  int value(int round, int rank, int i) const { return number * 100'003 + round * 1'009 + rank * 31 + i; }
};

void create(const World& w, Operation& op, MPI_Comm comm) {
  const int n = op.count();
  op.send.resize(static_cast<std::size_t>(n));
  op.recv.resize(static_cast<std::size_t>(n * (op.kind() == 2 ? w.size : 1)));
  switch (op.kind()) {
    case 0:
      CHECK_OK(
          MPI_Allreduce_init(op.send.data(), op.recv.data(), n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &op.request));
      break;
    case 1:
      CHECK_OK(MPI_Bcast_init(op.recv.data(), n, MPI_INT, op.root(w), comm, MPI_INFO_NULL, &op.request));
      break;
    case 2:
      CHECK_OK(
          MPI_Allgather_init(op.send.data(), n, MPI_INT, op.recv.data(), n, MPI_INT, comm, MPI_INFO_NULL, &op.request));
      break;
    default:
      CHECK_OK(MPI_Scan_init(op.send.data(), op.recv.data(), n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &op.request));
  }
}

void fill(const World& w, Operation& op, int round) {
  std::fill(op.recv.begin(), op.recv.end(), -1);
  for (int i = 0; i < op.count(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    op.send[k] = op.value(round, w.rank, i);
    if (op.kind() == 1 && w.rank == op.root(w)) op.recv[k] = op.send[k];
  }
}

void check(const World& w, const Operation& op, int round) {
  for (int i = 0; i < static_cast<int>(op.recv.size()); ++i) {
    int expected = 0;
    if (op.kind() == 1) {
      expected = op.value(round, op.root(w), i);
    } else if (op.kind() == 2) {
      expected = op.value(round, i / op.count(), i % op.count());
    } else {
      for (int r = 0; r < (op.kind() == 0 ? w.size : w.rank + 1); ++r) expected += op.value(round, r, i);
    }
    CHECK_EQ(op.recv[static_cast<std::size_t>(i)], expected);
  }
}

// Rounds of one thread's operations, each started and completed in an order of this rank and thread.
void start_and_complete(const World& w, std::vector<Operation>& ops, int thread) {
  Random own(static_cast<std::uint64_t>(w.rank * starters + thread + 1));
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = ops.size(); i > 1; --i) std::swap(ops[i - 1], ops[own.below(i)]);
    std::vector<MPI_Request> requests;
    for (Operation& op : ops) {
      fill(w, op, round);
      requests.push_back(op.request);
    }
    if (round % 2 == 0) {
      CHECK_OK(MPI_Startall(each, requests.data()));
    } else {
      for (MPI_Request& request : requests) CHECK_OK(MPI_Start(&request));
    }
    CHECK_OK(MPI_Waitall(each, requests.data(), MPI_STATUSES_IGNORE));
    for (const Operation& op : ops) check(w, op, round);
  }
}

// What the other thread does meanwhile: its calls are ordered among themselves, as they must be.
void collect_meanwhile(const World& w, MPI_Comm comm) {
  for (int round = 0; round < rounds * each; ++round) {
    const int mine = round + w.rank;
    int sum = -1, root = w.rank == 0 ? round : -1;
    MPI_Request request;
    CHECK_OK(MPI_Ibcast(&root, 1, MPI_INT, 0, comm, &request));
    CHECK_OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(sum, w.size * round + w.size * (w.size - 1) / 2);
    CHECK_EQ(root, round);
  }
}

}  // namespace

int main() {
  const World w = init_threads();
  Communicators comms(1);
  std::vector<std::vector<Operation>> ops(starters, std::vector<Operation>(each));
  for (int number = 0; number < starters * each; ++number) {  // the same order on all ranks
    Operation& op = ops[static_cast<std::size_t>(number % starters)][static_cast<std::size_t>(number / starters)];
    op.number = number;
    create(w, op, comms[0]);
  }
  run_threads(starters + 1, [&](int t) {
    if (t < starters)
      start_and_complete(w, ops[static_cast<std::size_t>(t)], t);
    else
      collect_meanwhile(w, comms[0]);
  });
  for (auto& mine : ops)
    for (Operation& op : mine) CHECK_OK(MPI_Request_free(&op.request));
  comms.free();
  return finish();
}
