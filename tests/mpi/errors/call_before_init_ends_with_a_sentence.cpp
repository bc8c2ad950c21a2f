// ranks: 1
// timeout: 30
// expect: fail "(MPI|internal)_Send.*(?i:init)|(?i:init).*(MPI|internal)_Send"
// A call that needs MPI before MPI_Init ends the process with the call's name and the cause, not with a crash.
#include <mpi.h>

int main() {
  int value = 0;
  MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  MPI_Init(nullptr, nullptr);
  MPI_Finalize();
  return 0;
}
