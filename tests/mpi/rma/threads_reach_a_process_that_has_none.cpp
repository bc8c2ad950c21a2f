// ranks: 2
// timeout: 60
// env: HEDDLE_RMA=am HEDDLE_VCIS=8
// Many threads of one rank, each with an interface of its own, work by messages on the window of a rank that has used but a few of its
// interfaces: those messages are answered too.
#include <atomic>

#include "../support.hpp"

using namespace test;

int main() {
  const World w = init_threads();
  long* base = nullptr;
  MPI_Win win;
  CHECK_OK(MPI_Win_allocate(sizeof(long), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  *base = 0;
  CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
  constexpr long threads = 20;
  if (w.rank == 1) {
    CHECK_OK(MPI_Win_lock_all(0, win));
    std::vector<std::thread> all;
    std::atomic<long> started{0};
    for (long t = 0; t < threads; ++t)
      all.emplace_back([&] {
        const long one = 1;
        long before = -1, now = -1;
        ++started;
        while (started < threads) std::this_thread::yield();  // an interface is a thread's own while it lives
        CHECK_OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, win));
        CHECK_OK(MPI_Win_flush(0, win));
        CHECK_OK(MPI_Get(&now, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
        CHECK_OK(MPI_Win_flush(0, win));
        CHECK(before >= 0 && now > before && now <= threads);
      });
    for (std::thread& thread : all) thread.join();
    CHECK_OK(MPI_Win_unlock_all(win));
  }
  CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK_OK(MPI_Win_free(&win));
  return finish();
}
