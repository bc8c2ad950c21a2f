// ranks: 2
// timeout: 30
// env: HEDDLE_RMA=am
// expect: fail "rank 0 accessed .*of a dynamic window, which is not attached"
// endpoints: none (ranks of one process look for themselves)
// Where the target's process carries operations out, it is the one that finds that memory is not attached, and nobody waits for its answer: the
// job ends with a text that names the rank and the address.
#include "windows.hpp"

using namespace test;

int main() {
  const World w = init();
  MPI_Win win;
  CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  std::vector<long> memory(16);
  CHECK_OK(MPI_Win_attach(win, memory.data(), 64));
  MPI_Aint where;
  MPI_Get_address(memory.data(), &where);
  MPI_Bcast(&where, 1, MPI_AINT, 1, MPI_COMM_WORLD);
  CHECK_OK(MPI_Win_lock_all(0, win));
  const long value = 1;
  if (w.rank == 0) {
    MPI_Put(&value, 1, MPI_LONG, 1, where + 64, 1, MPI_LONG, win);
    MPI_Win_flush(1, win);
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  return finish();
}
