// ranks: 2
// timeout: 30
// expect: fail "(?i)rank|MPI_Send|MPI_ERR_RANK"
// MPI_ERRORS_ABORT on a communicator of all ranks: an error on rank 1 ends rank 0 as well.
#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_ABORT);
  int value = 0;
  if (w.rank == 1) MPI_Send(&value, 1, MPI_INT, 2, 0, comm);
  MPI_Recv(&value, 1, MPI_INT, 1 - w.rank, 0, comm, MPI_STATUS_IGNORE);
  return finish();  // not reached
}
