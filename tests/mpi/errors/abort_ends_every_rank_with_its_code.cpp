// ranks: 3
// timeout: 30
// expect: fail "."
// MPI_Abort on one rank ends the others, which are blocked in a receive, in a wait and outside of MPI.
#include <unistd.h>

#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  int value = 0;
  if (w.rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (w.rank == 1)
    for (;;) pause();
  MPI_Abort(MPI_COMM_WORLD, 7);
  return 0;  // not reached
}
