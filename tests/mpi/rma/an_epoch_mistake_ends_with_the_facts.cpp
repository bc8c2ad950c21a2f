// ranks: 2
// timeout: 30
// expect: fail "MPI_Put on window the halo: MPI_ERR_RMA_SYNC: .*rank 1, but this rank \(0\).*MPI_Win_lock"
// endpoints: none (the text counts processes)
// The default handler of windows ends the job; the text names the call, the window, the ranks and the remedy.
#include "windows.hpp"

using namespace test;

int main() {
  const World w = init();
  MPI_Win win;
  long* base = nullptr;
  CHECK_OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  CHECK_OK(MPI_Win_set_name(win, "the halo"));
  const long value = 1;
  if (w.rank == 0) MPI_Put(&value, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win);
  MPI_Win_free(&win);
  return finish();
}
