// ranks: 1 2 3
// threads: 3
// timeout: 120
// Three threads in each process run different collectives at the same time, each on its own communicator, in all forms.
#include <thread>

#include "forms.hpp"

using namespace test;

namespace {

constexpr int rounds = 150;

int value(int rank, int thread, int round, int i) { return rank * 10007 + thread * 1009 + round * 13 + i; }

void work(MPI_Comm comm, int thread) {
  const int rank = rank_of(comm), n = size_of(comm);
  Random random(static_cast<std::uint64_t>(thread));  // the same on all ranks
  for (int round = 0; round < rounds; ++round) {
    const Form form = all_forms[random.below(3)];
    const int count = static_cast<int>(random.below(6) == 0 ? 5000 : 1 + random.below(50));
    std::vector<int> send(static_cast<std::size_t>(count)), recv(static_cast<std::size_t>(count * n));
    for (int i = 0; i < count; ++i) send[static_cast<std::size_t>(i)] = value(rank, thread, round, i);
    const void* from = send.data();
    void* to = recv.data();
    switch (random.below(5)) {
      case 0:
        allreduce(form, comm, from, to, count, MPI_INT, MPI_SUM);
        for (int i = 0; i < count; ++i) {
          int expected = 0;
          for (int r = 0; r < n; ++r) expected += value(r, thread, round, i);
          CHECK_EQ(recv[static_cast<std::size_t>(i)], expected);
        }
        break;
      case 1: {
        const int root = static_cast<int>(random.below(static_cast<std::uint64_t>(n)));
        bcast(form, comm, static_cast<void*>(send.data()), count, MPI_INT, root);
        for (int i = 0; i < count; ++i) CHECK_EQ(send[static_cast<std::size_t>(i)], value(root, thread, round, i));
        break;
      }
      case 2:
        allgather(form, comm, from, count, MPI_INT, to, count, MPI_INT);
        for (int r = 0; r < n; ++r)
          for (int i = 0; i < count; ++i)
            CHECK_EQ(recv[static_cast<std::size_t>(r * count + i)], value(r, thread, round, i));
        break;
      case 3:
        barrier(form, comm);
        break;
      case 4:
        scan(form, comm, from, to, count, MPI_INT, MPI_MAX);
        for (int i = 0; i < count; ++i) CHECK_EQ(recv[static_cast<std::size_t>(i)], value(rank, thread, round, i));
        break;
    }
  }
}

}  // namespace

int main() {
  init_threads();
  constexpr int threads = 3;
  MPI_Comm comms[threads];
  for (MPI_Comm& comm : comms) CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t) team.emplace_back(work, comms[t], t);
  for (std::thread& t : team) t.join();
  for (MPI_Comm& comm : comms) CHECK_OK(MPI_Comm_free(&comm));
  return finish();
}
