// ranks: 2
// threads: 2
// timeout: 60
// At MPI_THREAD_SERIALIZED four threads call MPI in turns under a mutex of the program: requests started by one are
// completed by another.
#include <mutex>

#include "team.hpp"

using namespace test;

int main() {
  int provided = -1;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  CHECK(provided >= MPI_THREAD_SERIALIZED);
  const World w = world();
  constexpr int n = 2'000;
  std::mutex mutex;
  std::vector<int> in(n, -1), out(n);
  std::vector<MPI_Request> open;
  int started = 0, completed = 0;
  run_threads(4, [&](int t) {
    for (bool more = true; more;) {
      const std::lock_guard lock(mutex);
      if (t % 2 == 0 && started < n) {
        const auto k = static_cast<std::size_t>(started);
        out[k] = started * 3;
        open.emplace_back();
        MPI_Irecv(&in[k], 1, MPI_INT, 1 - w.rank, started, MPI_COMM_WORLD, &open.back());
        MPI_Send(&out[k], 1, MPI_INT, 1 - w.rank, started, MPI_COMM_WORLD);
        ++started;
      } else if (!open.empty()) {
        int flag = 0;
        MPI_Test(&open.back(), &flag, MPI_STATUS_IGNORE);
        if (flag) open.pop_back(), ++completed;
      }
      more = completed < n;
    }
  });
  for (int i = 0; i < n; ++i) CHECK_EQ(in[static_cast<std::size_t>(i)], i * 3);
  return finish();
}
