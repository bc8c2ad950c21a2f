// A receive that has nothing to do for three seconds uses a small part of them, and is woken by its message. Over a device that
// is done by its interrupts: a queue whose descriptor never becomes ready would show as a hang, one that always is as a busy core.
#include <mpi.h>
#include <sys/resource.h>
#include <time.h>

#include "check.h"

namespace {

double seconds(const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; }

double processor_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

int main() {
  MPI_Init(nullptr, nullptr);
  int rank, value = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int peer = 1 - rank;
  // The connections are there, and both ends have stopped looking for messages by now and then.
  MPI_Sendrecv_replace(&value, 1, MPI_INT, peer, 0, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    const timespec pause{3, 0};
    nanosleep(&pause, nullptr);
    MPI_Send(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
  } else {
    const double began = MPI_Wtime(), before = processor_seconds();
    MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const double waited = MPI_Wtime() - began, used = processor_seconds() - before;
    std::printf("used %.3f s of %.3f s\n", used, waited);
    CHECK_LT(used, waited / 4);
  }
  MPI_Finalize();
  return 0;
}
