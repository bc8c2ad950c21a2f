// ranks: 1 2
// threads: 4
// timeout: 100
// Four threads make the partitions of a send ready while others ask for those of the receive, for a thousand rounds; nothing is lost, torn or
// taken from another round. Rank 0 sends, the last rank receives.
#include "../support.hpp"

#include <atomic>
#include <barrier>

using namespace test;

namespace {

constexpr int threads = 4, partitions = 24;

void run(const World& w, int rounds, int count, int in_partitions) {
  const bool sends = w.rank == 0, receives = w.rank == w.size - 1;
  const std::size_t n = static_cast<std::size_t>(partitions) * static_cast<std::size_t>(count);
  const std::size_t share = n / static_cast<std::size_t>(in_partitions);
  std::vector<std::uint64_t> out(n), in(n);
  MPI_Request send = MPI_REQUEST_NULL, receive = MPI_REQUEST_NULL;
  if (sends) MPI_Psend_init(out.data(), partitions, count, MPI_UINT64_T, w.size - 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
  if (receives) MPI_Precv_init(in.data(), in_partitions, static_cast<int>(share), MPI_UINT64_T, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
  std::barrier meet(threads);
  std::vector<std::thread> team;
  const auto work = [&](int thread) {
    Random random(static_cast<std::uint64_t>(thread));
    for (int round = 0; round < rounds; ++round) {
      if (thread == 0 && receives) CHECK_OK(MPI_Start(&receive));
      if (thread == 0 && sends) CHECK_OK(MPI_Start(&send));
      meet.arrive_and_wait();
      for (int p = thread; sends && p < partitions; p += threads) {
        for (int k = 0; k < count; ++k) {
          const std::size_t i = static_cast<std::size_t>(p) * static_cast<std::size_t>(count) + static_cast<std::size_t>(k);
          out[i] = mix(static_cast<std::uint64_t>(round) << 32 | i);
        }
        CHECK_OK(MPI_Pready(p, send));
      }
      for (int p = thread; receives && round % 4 && p < in_partitions; p += threads) {
        int flag = 0;
        while (!flag) CHECK_OK(MPI_Parrived(receive, p, &flag));
        for (std::size_t i = static_cast<std::size_t>(p) * share; i < static_cast<std::size_t>(p + 1) * share; ++i)
          CHECK_EQ(in[i], mix(static_cast<std::uint64_t>(round) << 32 | i));
      }
      if (thread == threads - 1 && receives) CHECK_OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));  // while others still make ready
      if (thread == 0 && sends) CHECK_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
      meet.arrive_and_wait();
      if (thread == 0 && receives)
        for (std::size_t i = 0; i < n; ++i) CHECK_EQ(in[i], mix(static_cast<std::uint64_t>(round) << 32 | i));
      meet.arrive_and_wait();
    }
  };
  for (int t = 0; t < threads; ++t) team.emplace_back(work, t);
  for (std::thread& t : team) t.join();
  if (sends) MPI_Request_free(&send);
  if (receives) MPI_Request_free(&receive);
}

}  // namespace

int main() {
  const World w = init_threads();
  run(w, 1000, 2, partitions);
  run(w, 200, 60, 10);
  return finish();
}
