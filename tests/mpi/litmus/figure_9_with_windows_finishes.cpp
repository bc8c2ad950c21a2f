// ranks: 2
// threads: 2
// timeout: 60
// env: HEDDLE_VCIS=8
// Paper 004's figure 9, right: both ranks get from each other through two windows; a thread that flushes window 2 must
// let the other rank's operations on window 1 through.
#include <barrier>

#include "litmus.hpp"

using namespace test;

namespace {

constexpr int ints = 300'000;

struct Window {
  MPI_Win win = MPI_WIN_NULL;
  int* base = nullptr;
};

void make(Window& window, MPI_Comm comm) {
  CHECK_OK(MPI_Win_allocate(ints * sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &window.base, &window.win));
}

}  // namespace

int main(int argc, char** argv) {
  const World w = init_threads();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  Window windows[2];
  for (auto& window : windows) make(window, comm);
  const int peer = 1 - w.rank;
  for (auto& window : windows) {
    CHECK_OK(MPI_Win_lock_all(0, window.win));
    for (int i = 0; i < ints; ++i) window.base[i] = w.rank * 1'000'000 + i;
    CHECK_OK(MPI_Win_sync(window.win));
  }
  MPI_Barrier(comm);
  std::vector<int> got[2] = {std::vector<int>(ints), std::vector<int>(ints)};
  for (int round = 0, times = repeats(argc, argv, 20); round < times; ++round) {
    if (w.rank == 0) {
      for (int k : {0, 1}) CHECK_OK(MPI_Get(got[k].data(), ints, MPI_INT, peer, 0, ints, MPI_INT, windows[k].win));
      for (int k : {0, 1}) CHECK_OK(MPI_Win_flush(peer, windows[k].win));
    } else {
      std::barrier<> gate(2);
      run_threads(2, [&](int t) {
        CHECK_OK(MPI_Get(got[t].data(), ints, MPI_INT, peer, 0, ints, MPI_INT, windows[t].win));
        gate.arrive_and_wait();
        if (t == 0) gate.arrive_and_wait();
        CHECK_OK(MPI_Win_flush(peer, windows[t].win));
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
    CHECK_OK(MPI_Win_unlock_all(window.win));
    CHECK_OK(MPI_Win_free(&window.win));
  }
  MPI_Comm_free(&comm);
  return finish();
}
