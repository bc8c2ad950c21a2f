// ranks: 1
// timeout: 30
// expect: fail "(MPI|internal)_Comm_rank.*(?i:finali)|(?i:finali).*(MPI|internal)_Comm_rank"
// A call that needs MPI after MPI_Finalize ends the process with the call's name and the cause, not with a crash.
#include <mpi.h>

int main() {
  int rank = 0;
  MPI_Init(nullptr, nullptr);
  MPI_Finalize();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return 0;
}
