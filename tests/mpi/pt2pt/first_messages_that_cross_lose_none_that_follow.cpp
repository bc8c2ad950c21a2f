// ranks: 4
// endpoints: none (it is about connections of processes)
// timeout: 60
// Two ranks send each other their first message at the same time. One then sends thousands of small messages while the other computes: all
// of them arrive, in order. Over the network both have connected, and what follows may come before what the other connection still holds.
#include <unistd.h>

#include <cmath>

#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  constexpr int messages = 4000, first_tag = 1, tag = 2;
  constexpr double apart = 0.25;  // seconds; nobody calls MPI until the moment has come, or one would know of the other's connection
  const int partners[3] = {w.rank ^ 1, w.rank ^ 2, w.rank ^ 3};
  for (int round = 0; round < 3; ++round) {
    const int partner = partners[round];
    const double moment = (std::floor(MPI_Wtime() / apart) + 2) * apart;
    usleep(static_cast<useconds_t>((moment - MPI_Wtime()) * 1e6));
    MPI_Request first;
    int out = round, in = -1;
    MPI_Isend(&out, 1, MPI_INT, partner, first_tag, MPI_COMM_WORLD, &first);
    if ((w.rank < partner) == (round != 1)) {
      for (int i = 0; i < messages; ++i) {
        MPI_Request request;
        int done = 0;
        MPI_Isend(&i, 1, MPI_INT, partner, tag, MPI_COMM_WORLD, &request);
        while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        MPI_Iprobe(partner, tag, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);  // each in a frame of its own
      }
    } else {
      usleep(200'000);
      for (int i = 0; i < messages; ++i) {
        int value = -1;
        MPI_Recv(&value, 1, MPI_INT, partner, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQ(value, i);
      }
    }
    MPI_Recv(&in, 1, MPI_INT, partner, first_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(in, round);
    MPI_Wait(&first, MPI_STATUS_IGNORE);
  }
  return finish();
}
