// ranks: 1 2 3
// threads: 3
// timeout: 120
// Threads duplicate, split and create communicators from parents of their own at the same time, use them, and free them,
// thousands of times: ids neither collide nor run out. MPI_Comm_create_group tells threads on one parent apart by tag.
#include "team.hpp"

using namespace test;

namespace {

constexpr int threads = 3, rounds = 900;

void check_exchange(MPI_Comm comm, int value) {
  int rank = 0, size = 0, got = -1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int out = value * 100 + rank, from = (rank + size - 1) % size;
  MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, 3, &got, 1, MPI_INT, from, 3, comm, MPI_STATUS_IGNORE);
  CHECK_EQ(got, value * 100 + from);
}

void collectives(MPI_Comm comm, int value) {
  int size = 0, sum = 0;
  MPI_Comm_size(comm, &size);
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK_EQ(sum, value * size);
  MPI_Barrier(comm);
}

}  // namespace

int main() {
  const World w = init_threads();
  Communicators parents(threads);
  run_threads(threads, [&](int t) {
    for (int i = 0; i < rounds; ++i) {
      MPI_Comm made = MPI_COMM_NULL, second = MPI_COMM_NULL;
      MPI_Request request;
      switch (i % 3) {
        case 0: MPI_Comm_dup(parents[t], &made); break;
        case 1: MPI_Comm_split(parents[t], 0, w.size - w.rank, &made); break;
        default:
          MPI_Comm_idup(parents[t], &made, &request);
          MPI_Wait(&request, MPI_STATUS_IGNORE);
          break;
      }
      check_exchange(made, i * threads + t);
      if (i % 10 == 0) {
        MPI_Comm_dup(made, &second);
        MPI_Comm_free(&made);  // the child outlives its parent
        collectives(second, i);
        check_exchange(second, i);
        MPI_Comm_free(&second);
      } else {
        MPI_Comm_free(&made);
      }
    }
  });
  // All threads on MPI_COMM_WORLD itself.
  MPI_Group group;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  run_threads(threads, [&](int t) {
    for (int i = 0; i < 200; ++i) {
      MPI_Comm made;
      MPI_Comm_create_group(MPI_COMM_WORLD, group, t, &made);
      check_exchange(made, i * threads + t);
      MPI_Comm_free(&made);
    }
  });
  MPI_Group_free(&group);
  parents.free();
  return finish();
}
