// ranks: 2
// threads: 2
// timeout: 120
// A flush waits for what was issued before it and for no more: beside threads that put, get and accumulate to the same target without
// end, a thread's flushes of every kind, and its requests, come to an end. The issuers stop only when it has finished.
#include <atomic>

#include "../threads/team.hpp"
#include "windows.hpp"

using namespace test;

int main() {
  const World w = init_threads();
  const int target = (w.rank + 1) % w.size;
  for (const Flavour flavour : flavours_on(MPI_COMM_WORLD)) {
    Memory memory(flavour, 1 << 16, MPI_COMM_WORLD, 8);
    CHECK_OK(MPI_Win_lock_all(0, memory.win));
    std::atomic<bool> finished{false};
    run_threads(3, [&](int t) {
      const MPI_Win win = memory.win;
      if (t) {  // the issuers: they flush locally now and then, as any program that wants its buffers back
        std::vector<long> data(512, 1), got(512);
        for (unsigned i = 0; !finished.load(std::memory_order_relaxed); ++i) {
          const MPI_Aint at = memory.at(target, 16384 * static_cast<std::size_t>(t));
          CHECK_OK(MPI_Put(data.data(), 512, MPI_LONG, target, at, 512, MPI_LONG, win));
          CHECK_OK(MPI_Accumulate(data.data(), 8, MPI_LONG, target, memory.at(target, 16384 * static_cast<std::size_t>(t) + 8192), 8, MPI_LONG,
                                  MPI_SUM, win));
          CHECK_OK(MPI_Get(&got[i % 64], 1, MPI_LONG, target, at, 1, MPI_LONG, win));
          if (i % 64 == 63) CHECK_OK(MPI_Win_flush_local(target, win));
        }
        CHECK_OK(MPI_Win_flush_local(target, win));  // the buffers go
        return;
      }
      for (long i = 0; i < 100; ++i) {
        long got = -1;
        const MPI_Aint at = memory.at(target, 0);
        CHECK_OK(MPI_Put(&i, 1, MPI_LONG, target, at, 1, MPI_LONG, win));
        CHECK_OK(i % 2 ? MPI_Win_flush(target, win) : MPI_Win_flush_all(win));
        if (i % 4) {
          CHECK_OK(MPI_Get(&got, 1, MPI_LONG, target, at, 1, MPI_LONG, win));
          CHECK_OK(i % 4 == 1 ? MPI_Win_flush_local(target, win) : MPI_Win_flush_local_all(win));
        } else {
          MPI_Request request;
          CHECK_OK(MPI_Rget(&got, 1, MPI_LONG, target, at, 1, MPI_LONG, win, &request));
          CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
        CHECK_EQ(got, i);
      }
      finished.store(true, std::memory_order_relaxed);
    });
    CHECK_OK(MPI_Win_unlock_all(memory.win));
    MPI_Barrier(MPI_COMM_WORLD);
    memory.free();
  }
  return finish();
}
