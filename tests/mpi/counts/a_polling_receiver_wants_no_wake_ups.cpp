// ranks: 2
// timeout: 120
// env: HEDDLE_PROGRESS=thread HEDDLE_SPIN_US=1000000000
// binary: own (its instructions are counted)
// Who sends to a process that waits in MPI makes no system call, though that process has a thread of the library's which would be woken if nobody
// waited. Other programs may take the waiting thread's core away for so long that its library believes nobody there, so not all messages count.
#include "counts.hpp"

using namespace test;

int main() {
  const World w = init_to_count();
  constexpr int messages = 400;
  int quiet = 0;
  for (int i = 0; i < messages; ++i) {
    int value = i, answer = -1;
    if (w.rank == 0) {
      const Counts sending = count([&] { MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD); });
      quiet += sending.calls == 0;
      MPI_Recv(&answer, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_EQ(answer, i);
    } else {
      MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
  }
  if (w.rank == 0) {
    std::printf("%d of %d sends made no system call\n", quiet, messages);
    CHECK_GT(quiet, messages / 4);
  }
  return finish();
}
