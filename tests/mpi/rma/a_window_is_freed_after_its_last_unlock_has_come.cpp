// ranks: 2 3
// timeout: 60
// env: HEDDLE_RMA=am
// endpoints: none (it is about messages between processes)
// Where locks are let go by messages, a window that is freed at once is not gone before they come: the barrier of MPI_Win_free
// takes a shorter way, through shared memory, and who comes last to it does not look at its messages.
#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  int memory[16] = {};
  Random random(static_cast<std::uint64_t>(w.rank));
  for (int i = 0; i < 300; ++i) {
    MPI_Win win;
    CHECK_OK(MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    for (int fences = 0; fences < 8; ++fences) CHECK_OK(MPI_Win_fence(0, win));  // until barriers on it take the shorter way
    if (w.rank == 0) {
      for (int target = 1; target < w.size; ++target) CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
      for (int target = 1; target < w.size; ++target) CHECK_OK(MPI_Send(nullptr, 0, MPI_BYTE, target, 0, MPI_COMM_WORLD));
      for (int target = 1; target < w.size; ++target) CHECK_OK(MPI_Win_unlock(target, win));
    } else {
      CHECK_OK(MPI_Recv(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(random.below(60));
      while (std::chrono::steady_clock::now() < end) {
      }
    }
    CHECK_OK(MPI_Win_free(&win));
  }
  return finish();
}
