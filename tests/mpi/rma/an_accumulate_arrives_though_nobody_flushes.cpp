// ranks: 2
// timeout: 60
// An operation makes progress though its origin neither flushes nor unlocks: the target sees it in its own memory, and the origin, which
// waits for a message meanwhile, learns that (MPI-5.0 §12.7.3; mpi4py's locks are made so).
#include "windows.hpp"

using namespace test;

int main() {
  const World w = init();
  for (int turn = 0; turn < 20; ++turn) {
    long* memory = nullptr;
    MPI_Win win;
    CHECK_OK(MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    *memory = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_lock_all(0, win));
    long value = 7, seen = 0;
    if (w.rank == 0) {
      CHECK_OK(MPI_Accumulate(&value, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_REPLACE, win));
      CHECK_OK(MPI_Recv(&seen, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK_EQ(seen, value);
    } else if (w.rank == 1) {
      while (seen != value) {
        CHECK_OK(MPI_Fetch_and_op(nullptr, &seen, MPI_LONG, 1, 0, MPI_NO_OP, win));
        CHECK_OK(MPI_Win_flush(1, win));
      }
      CHECK_OK(MPI_Send(&seen, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD));
    }
    CHECK_OK(MPI_Win_unlock_all(win));
    CHECK_OK(MPI_Win_free(&win));
  }
  return finish();
}
