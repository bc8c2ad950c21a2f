// ranks: 2 3
// threads: 4
// timeout: 60
// env: HEDDLE_VCIS=8
// All threads duplicate communicators of their own at the same time. The last rank's first thread begins only when its
// rank 0 says that all other threads there have made theirs: a library that makes communicators one at a time hangs.
// Duplicates are used at once, and no two of them mix their messages.
#include <atomic>

#include "litmus.hpp"

using namespace test;

namespace {

constexpr int threads = 4, gate_tag = 7;

void use(MPI_Comm comm, int value) {
  int rank = 0, size = 0, got = -1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int out = value + rank, from = (rank + size - 1) % size;
  MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE);
  CHECK_EQ(got, value + from);
}

}  // namespace

int main(int argc, char** argv) {
  const World w = init_threads();
  Communicators parents(threads);
  for (int i = 0, times = repeats(argc, argv, 60); i < times; ++i) {
    std::atomic<int> made{0};
    run_threads(threads, [&](int t) {
      MPI_Comm comm = MPI_COMM_NULL, child = MPI_COMM_NULL;
      if (t == 0 && w.rank == w.size - 1) MPI_Recv(nullptr, 0, MPI_INT, 0, gate_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Comm_dup(parents[t], &comm);
      // The release pairs with the acquire in the same operation: who comes last has seen the others.
      if (t > 0 && made.fetch_add(1, std::memory_order_acq_rel) == threads - 2 && w.rank == 0)
        MPI_Send(nullptr, 0, MPI_INT, w.size - 1, gate_tag, MPI_COMM_WORLD);
      use(comm, (i * threads + t) * 10);
      MPI_Comm_dup(comm, &child);
      MPI_Comm_free(&comm);
      use(child, (i * threads + t) * 10 + 5);
      MPI_Comm_free(&child);
    });
  }
  parents.free();
  return finish();
}
