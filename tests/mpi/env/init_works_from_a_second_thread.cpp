// ranks: 1 2
// timeout: 30
// MPI_Init_thread, communication and MPI_Finalize all in one thread that is not the process's first: it is the main
// thread in MPI's sense.
#include <thread>

#include "../support.hpp"

using namespace test;

int main() {
  std::thread([] {
    const World w = init_threads();
    int is_main = 0, got = -1;
    MPI_Is_thread_main(&is_main);
    CHECK_EQ(is_main, 1);
    const int to = (w.rank + 1) % w.size, from = (w.rank + w.size - 1) % w.size;
    MPI_Sendrecv(&w.rank, 1, MPI_INT, to, 0, &got, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(got, from);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Finalize());
  }).join();
  int flag = 0;
  MPI_Finalized(&flag);
  CHECK_EQ(flag, 1);
  return 0;
}
