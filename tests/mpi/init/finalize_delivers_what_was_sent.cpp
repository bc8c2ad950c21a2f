// ranks: 2 4
// timeout: 60
// A process that has completed its sends may finalize at once: its messages arrive though the receivers look much later, small
// ones and (sent with a request that was freed) many. MPI_Finalize is no barrier that a late receiver could hang on.
#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  constexpr int n = 300;
  if (w.rank == 0) {
    for (int i = 0; i < n; ++i)
      for (int r = 1; r < w.size; ++r) MPI_Send(&i, 1, MPI_INT, r, i, MPI_COMM_WORLD);
    return finish();
  }
  // Something that takes a while: rank 0 is gone by then, or waits in MPI_Finalize.
  for (int round = 0; round < 200 && w.size > 2; ++round) {
    const int to = w.rank % (w.size - 1) + 1, from = (w.rank + w.size - 3) % (w.size - 1) + 1;
    int out = round, in = -1;
    MPI_Sendrecv(&out, 1, MPI_INT, to, 7777, &in, 1, MPI_INT, from, 7777, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(in, round);
  }
  for (int i = n - 1; i >= 0; --i) {
    int got = -1;
    MPI_Recv(&got, 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(got, i);
  }
  return finish();
}
