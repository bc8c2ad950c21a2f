// ranks: 2 4 5
// timeout: 60
// threads: 2
// MPI_Comm_create_group is called by the members alone: the others are busy in a receive. Two threads make groups on one
// parent at once, told apart by the tag, while user messages with the same tags wait to be received.
#include "../support.hpp"

using namespace test;

int main() {
  const World w = init_threads();
  MPI_Group world, group;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  const int excluded[] = {0};
  MPI_Group_excl(world, 1, excluded, &group);
  if (w.rank == 0) {
    for (int r = 1; r < w.size; ++r) {
      int token = -1;
      MPI_Recv(&token, 1, MPI_INT, r, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_EQ(token, w.size - 1);
    }
  } else {
    MPI_Comm comm;
    CHECK_OK(MPI_Comm_create_group(MPI_COMM_WORLD, group, 77, &comm));
    int size = 0, rank = -1;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    CHECK_EQ(rank, w.rank - 1);
    MPI_Barrier(comm);
    MPI_Send(&size, 1, MPI_INT, 0, 77, MPI_COMM_WORLD);
    MPI_Comm_free(&comm);
  }
  MPI_Barrier(MPI_COMM_WORLD);

  // A message of the program with the tags used below must not be taken for one of the library's.
  const int to = (w.rank + 1) % w.size, from = (w.rank + w.size - 1) % w.size;
  int sent[2] = {w.rank, w.rank + 100}, got[2] = {-1, -1};
  MPI_Request early[2];
  for (int t = 0; t < 2; ++t) MPI_Isend(&sent[t], 1, MPI_INT, to, t, MPI_COMM_WORLD, &early[t]);

  auto work = [&](int tag) {
    for (int round = 0; round < 40; ++round) {
      MPI_Comm comm;
      CHECK_OK(MPI_Comm_create_group(MPI_COMM_WORLD, world, tag, &comm));
      int out = tag * 1000 + round, in = -1;
      MPI_Sendrecv(&out, 1, MPI_INT, to, 0, &in, 1, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE);
      CHECK_EQ(in, out);  // the neighbour's communicator of the same tag and round
      MPI_Comm_free(&comm);
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (int t = 0; t < 2; ++t) {
    MPI_Recv(&got[t], 1, MPI_INT, from, t, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(got[t], from + 100 * t);
  }
  MPI_Waitall(2, early, MPI_STATUSES_IGNORE);
  MPI_Group_free(&world);
  MPI_Group_free(&group);
  return finish();
}
