// ranks: 1
// launcher: none
// timeout: 30
// Started without mpiexec, a program is a world of one that can talk to itself.
#include "../support.hpp"

using namespace test;

int main() {
  const World w = init_threads();
  CHECK_EQ(w.size, 1);
  CHECK_EQ(w.rank, 0);
  int got = 0;
  const int value = 11;
  MPI_Sendrecv(&value, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQ(got, 11);
  MPI_Barrier(MPI_COMM_WORLD);
  return finish();
}
