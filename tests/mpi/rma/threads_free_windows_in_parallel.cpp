// ranks: 1 2
// threads: 2
// timeout: 120
// Paper 004's figure 15: threads make, use and free windows of their own at the same time, each on a communicator of its own, all
// flavours beside each other; and the windows that one thread has made are freed by many.
#include "../threads/team.hpp"
#include "windows.hpp"

using namespace test;

int main() {
  const World w = init_threads();
  constexpr int threads = 8;
  Communicators comms(threads);
  const auto flavours = flavours_on(MPI_COMM_WORLD);
  const int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size;
  const auto flavour = [&](int i) { return flavours[static_cast<std::size_t>(i) % flavours.size()]; };

  run_threads(threads, [&](int t) {
    for (int i = 0; i < 40; ++i) {
      Memory memory(flavour(t + i), 256, comms[t], 8);
      const long value = 1000 * w.rank + 10 * t + i;
      in_epoch(all_epochs[i % 4], memory.win, comms[t], [&] {
        CHECK_OK(MPI_Put(&value, 1, MPI_LONG, next, memory.at(next, 8), 1, MPI_LONG, memory.win));
      });
      CHECK_EQ(memory.as<long>()[1], 1000 * before + 10 * t + i);
      MPI_Barrier(comms[t]);
      memory.free();
    }
  });

  // Made by one, freed by all: each waits for its own window only.
  for (int round = 0; round < 10; ++round) {
    std::vector<Memory> windows;
    for (int t = 0; t < threads; ++t) windows.emplace_back(flavour(t + round), 64, comms[t], 8);
    run_threads(threads, [&](int t) {
      // Ranks free in opposite orders.
      const auto k = static_cast<std::size_t>(w.rank % 2 ? threads - 1 - t : t);
      windows[k].free();
    });
  }
  comms.free();
  return finish();
}
