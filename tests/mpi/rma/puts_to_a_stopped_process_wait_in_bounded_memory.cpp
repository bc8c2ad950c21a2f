// ranks: 2
// timeout: 120
// env: HEDDLE_SHM=0
// endpoints: none (it stops a whole process)
// Over the network puts and gets to a process that is stopped are taken until some bound, and then wait: memory does not grow with
// their number. All arrive once it goes on.
#include <atomic>

#include "stopping.hpp"

using namespace test;

namespace {

constexpr int many = 20000, bytes = 4096, places = 64;

long resident_bytes() {
  long all = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  CHECK(file && std::fscanf(file, "%ld %ld", &all, &resident) == 2);
  std::fclose(file);
  return resident * sysconf(_SC_PAGESIZE);
}

// Calls issue(i) for every i < many, while the other process is stopped until no more of them return.
template <typename Issue>
void issue_while_stopped(pid_t other, Issue&& issue) {
  stop(other);
  const long before = resident_bytes();
  std::atomic<int> issued{0};
  std::thread watcher([&] {
    // It is no mistake if a slow machine makes this believe too early that they wait: then the check is weaker.
    for (int last = -1, still = 0; still < 10 && issued < many; std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
      const int now = issued;
      still = now == last ? still + 1 : 0;
      last = now;
    }
    const long grown = resident_bytes() - before;
    CHECK_LT(issued.load(), many);
    CHECK_LT(grown, 64L << 20);
    let_go_on(other);
  });
  for (int i = 0; i < many; ++i) {
    issue(i);
    issued = i + 1;
  }
  watcher.join();
}

}  // namespace

int main() {
  const World w = init_threads();
  std::vector<unsigned char> memory(static_cast<std::size_t>(places) * bytes, 1);
  MPI_Win win;
  CHECK_OK(MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size()), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  const std::vector<pid_t> pids = processes_of_world();
  if (w.rank == 0) {
    std::vector<unsigned char> from(bytes, 2), to(memory.size());
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
    CHECK_OK(MPI_Put(from.data(), bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win));
    CHECK_OK(MPI_Win_flush(1, win));  // connections, and what a wire keeps for them
    issue_while_stopped(pids[1], [&](int i) { CHECK_OK(MPI_Put(from.data(), bytes, MPI_BYTE, 1, MPI_Aint{i % places} * bytes, bytes, MPI_BYTE, win)); });
    CHECK_OK(MPI_Win_flush(1, win));
    issue_while_stopped(pids[1], [&](int i) {
      const MPI_Aint place = MPI_Aint{i % places} * bytes;
      CHECK_OK(MPI_Get(to.data() + place, bytes, MPI_BYTE, 1, place, bytes, MPI_BYTE, win));
    });
    CHECK_OK(MPI_Win_unlock(1, win));
    for (const unsigned char byte : to) CHECK_EQ(byte, 2);
  }
  CHECK_OK(MPI_Win_free(&win));
  if (w.rank == 1)
    for (const unsigned char byte : memory) CHECK_EQ(byte, 2);
  return finish();
}
