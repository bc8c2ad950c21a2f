// ranks: 2
// timeout: 60
// env: HEDDLE_SHM=0 HEDDLE_NET_WINDOW=64K
// endpoints: none (it stops a whole process)
// Accumulates of several threads to a process that is stopped wait until there is room again, asleep in the end. Each is carried out once,
// whichever thread finds that there is room: sums would show another.
#include <atomic>

#include "stopping.hpp"

using namespace test;

int main() {
  const World w = init_threads();
  constexpr int rounds = 10, many = 2000, ints = 200, threads = 4;
  std::vector<int> memory(ints, 0), ones(ints, 1), before(ints);
  MPI_Win win;
  CHECK_OK(MPI_Win_create(memory.data(), ints * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  const std::vector<pid_t> pids = processes_of_world();
  for (int round = 1; w.rank == 0 && round <= rounds; ++round) {
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
    std::atomic<int> issued{0};
    stop(pids[1]);
    std::thread watcher([&] {  // goes on once the accumulates have waited for long enough to sleep, or are all issued
      for (int last = -1, still = 0; still < 10 && issued < many; std::this_thread::sleep_for(std::chrono::milliseconds(10))) {
        still = issued == last ? still + 1 : 0;
        last = issued;
      }
      CHECK_LT(issued.load(), many);
      let_go_on(pids[1]);
    });
    std::vector<std::thread> issuers;
    for (int t = 0; t < threads; ++t)
      issuers.emplace_back([&] {
        for (int i = 0; i < many / threads; ++i, ++issued) CHECK_OK(MPI_Accumulate(ones.data(), ints, MPI_INT, 1, 0, ints, MPI_INT, MPI_SUM, win));
      });
    for (std::thread& issuer : issuers) issuer.join();
    watcher.join();
    CHECK_OK(MPI_Get_accumulate(nullptr, 0, MPI_INT, before.data(), ints, MPI_INT, 1, 0, ints, MPI_INT, MPI_NO_OP, win));
    CHECK_OK(MPI_Win_unlock(1, win));
    for (const int n : before) CHECK_EQ(n, round * many);
  }
  CHECK_OK(MPI_Win_free(&win));
  return finish();
}
