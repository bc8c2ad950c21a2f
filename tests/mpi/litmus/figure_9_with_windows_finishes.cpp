// ranks: 2
// threads: 2
// timeout: 60
// env: HEDDLE_VCIS=8
// Paper 004's figure 9, right: both ranks get from each other through two windows; a thread that flushes window 2 must
// let the other rank's operations on window 1 through. Says so and stops where windows are not built.
#include <barrier>

#include "litmus.hpp"

using namespace test;

namespace {

constexpr int ints = 300'000;

struct Window {
  MPI_Win win = MPI_WIN_NULL;
  int* base = nullptr;
};

bool make(Window& window, MPI_Comm comm) {
  const int code = MPI_Win_allocate(ints * sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &window.base, &window.win);
  if (code != MPI_SUCCESS) CHECK_EQ(error_class(code), MPI_ERR_UNSUPPORTED_OPERATION);
  return code == MPI_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  const World w = init_threads();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  Window windows[2];
  if (!make(windows[0], comm) || !make(windows[1], comm)) {
    std::printf("skipped: windows are not built\n");
    MPI_Comm_free(&comm);
    return finish();
  }
  const int peer = 1 - w.rank;
  for (auto& window : windows) {
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < ints; ++i) window.base[i] = w.rank * 1'000'000 + i;
    MPI_Win_sync(window.win);
  }
  MPI_Barrier(comm);
  std::vector<int> got[2] = {std::vector<int>(ints), std::vector<int>(ints)};
  for (int round = 0, times = repeats(argc, argv, 20); round < times; ++round) {
    if (w.rank == 0) {
      for (int k : {0, 1}) MPI_Get(got[k].data(), ints, MPI_INT, peer, 0, ints, MPI_INT, windows[k].win);
      for (int k : {0, 1}) MPI_Win_flush(peer, windows[k].win);
    } else {
      std::barrier<> gate(2);
      run_threads(2, [&](int t) {
        MPI_Get(got[t].data(), ints, MPI_INT, peer, 0, ints, MPI_INT, windows[t].win);
        gate.arrive_and_wait();
        if (t == 0) gate.arrive_and_wait();
        MPI_Win_flush(peer, windows[t].win);
        if (t == 1) gate.arrive_and_wait();
      });
    }
    for (auto& g : got) {
      for (int i = 0; i < ints; i += 97) CHECK_EQ(g[static_cast<std::size_t>(i)], peer * 1'000'000 + i);
      std::fill(g.begin(), g.end(), -1);
    }
  }
  MPI_Barrier(comm);
  for (auto& window : windows) {
    MPI_Win_unlock_all(window.win);
    MPI_Win_free(&window.win);
  }
  MPI_Comm_free(&comm);
  return finish();
}
