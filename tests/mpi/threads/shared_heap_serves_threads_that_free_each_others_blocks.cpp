// ranks: 2
// threads: 4
// env: HEDDLE_SHARED_HEAP=1
// timeout: 120
// With HEDDLE_SHARED_HEAP=1 and MPI_THREAD_MULTIPLE: threads send from blocks that other threads allocated and free them, while
// others fork.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "../support.hpp"

using namespace test;

int main() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 77;  // sanitizers replace malloc themselves
#endif
  const World w = init_threads();
  constexpr int threads = 4, rounds = 60;
  std::atomic<unsigned char*> handed[threads] = {};
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t)
    team.emplace_back([&, t] {
      Random random(static_cast<std::uint64_t>(t));  // the same on both ranks
      for (int i = 0; i < rounds; ++i) {
        const std::size_t bytes = 10'000 + random.below(400'000);
        const int n = static_cast<int>(bytes), peer = 1 - w.rank;
        auto* out = static_cast<unsigned char*>(malloc(bytes));
        auto* in = static_cast<unsigned char*>(malloc(bytes));
        fill(out, bytes, static_cast<std::uint64_t>(t * rounds + i + w.rank));
        MPI_Sendrecv(out, n, MPI_BYTE, peer, t, in, n, MPI_BYTE, peer, t, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_FILLED(in, bytes, static_cast<std::uint64_t>(t * rounds + i + peer));
        free(handed[(t + 1) % threads].exchange(in, std::memory_order_acq_rel));  // the block of another thread
        free(out);
        if (t == 0 && i % 20 == 5) {
          const pid_t child = fork();
          if (child == 0) _exit(0);
          int status = -1;
          CHECK_EQ(waitpid(child, &status, 0), child);
          CHECK_EQ(status, 0);
        }
      }
    });
  for (auto& thread : team) thread.join();
  for (auto& block : handed) free(block.load(std::memory_order_relaxed));
  return finish();
}
