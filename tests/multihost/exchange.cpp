// Ranks that keep talking: every rank sends to and hears from every other, over and over, for so many seconds, in small
// and in large messages, and checks what comes. What the tests of faults break.
//
//   exchange wait        after the first round, half of the ranks wait for the other half, which sleeps outside MPI for good
//   exchange late FILE   says "running" before any message, and goes on for a moment when FILE exists
//   exchange exit CODE   after the first round, the last rank calls exit(CODE), and the others wait for a message of it
//   exchange SECONDS     "running" after the first round, "done" at the end, both from rank 0
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "check.h"

namespace {

void say_running(int rank) {
  if (rank == 0) std::printf("running\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_OK(MPI_Init(&argc, &argv));
  const bool waits = argc > 1 && std::strcmp(argv[1], "wait") == 0;
  const bool exits = argc > 2 && std::strcmp(argv[1], "exit") == 0;
  const bool late = argc > 2 && std::strcmp(argv[1], "late") == 0;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (late) {
    say_running(rank);
    while (access(argv[2], F_OK) != 0) usleep(1000);
  }
  const double start = MPI_Wtime();
  int on = 1;
  for (int round = 0; on != 0; ++round) {
    for (const int count : {1, 100, 100'000}) {
      std::vector<int> out(static_cast<std::size_t>(count), rank * 1000 + round % 1000);
      for (int distance = 1; distance < size; ++distance) {
        std::vector<int> in(static_cast<std::size_t>(count));
        const int to = (rank + distance) % size, from = (rank - distance + size) % size;
        CHECK_OK(MPI_Sendrecv(out.data(), count, MPI_INT, to, round % 1000, in.data(), count, MPI_INT, from,
                              round % 1000, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(in.front(), from * 1000 + round % 1000);
        CHECK_EQ(in.back(), from * 1000 + round % 1000);
      }
    }
    if (round == 0 && !late) say_running(rank);
    if (exits) {
      CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
      if (rank == size - 1) std::exit(std::atoi(argv[2]));
      CHECK_OK(MPI_Recv(&on, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    if (waits) {
      if (rank >= size / 2)
        for (;;) pause();
      CHECK_OK(MPI_Recv(&on, 1, MPI_INT, rank + size / 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    on = MPI_Wtime() - start < seconds;
    CHECK_OK(MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD));
  }
  if (rank == 0) std::printf("done\n");
  CHECK_OK(MPI_Finalize());
}
