// ranks: 3
// processors: 1
// timeout: 60
// mpiexec: --hang-report 1
// endpoints: none (the lines name the ranks of processes)
// expect: fail "(?s)(?=.*rank 0\] has waited for 1 seconds in MPI_Recv: for a message from rank 1, tag 7, on communicator talk\. Not asked for so far: a message from rank 1, tag 8, 4 bytes, on the same communicator)(?=.*rank 1\] has waited for 1 seconds in MPI_Waitall: to send 1048576 bytes to rank 0, tag 9, which has not received them yet, on communicator MPI_COMM_WORLD)(?=.*rank 2\] has waited for 1 seconds in MPI_Probe: for a message from any rank, tag 3, on communicator MPI_COMM_WORLD)(?=.*rank 2\].* in MPI_Barrier: (rank [01] has not come to it|a part (from|to) rank [01]))"
// HEDDLE_HANG_REPORT: of each thread that waits that long, a line with the function, the message or the rank, the communicator, and
// the message that came instead. Rank 1 ends the job when all must have spoken.
#include "../support.hpp"

using namespace test;

int main() {
  const World w = init_threads();
  MPI_Comm talk;
  MPI_Comm_dup(MPI_COMM_WORLD, &talk);
  MPI_Comm_set_name(talk, "talk");
  for (int i = 0; i < 8; ++i) MPI_Barrier(MPI_COMM_WORLD);
  int word = 0;
  std::vector<char> large(1 << 20);
  if (w.rank == 0) {
    MPI_Recv(&word, 1, MPI_INT, 1, 7, talk, MPI_STATUS_IGNORE);
  } else if (w.rank == 1) {
    MPI_Send(&word, 1, MPI_INT, 0, 8, talk);
    std::thread end([] {
      std::this_thread::sleep_for(std::chrono::seconds(6));
      MPI_Abort(MPI_COMM_WORLD, 5);
    });
    MPI_Request request;
    MPI_Isend(large.data(), 1 << 20, MPI_BYTE, 0, 9, MPI_COMM_WORLD, &request);
    MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
  } else {
    std::thread other([] { MPI_Barrier(MPI_COMM_WORLD); });
    MPI_Probe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return 1;  // not reached
}
