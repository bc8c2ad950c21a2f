// Litmus programs: the smallest MPI programs that go wrong when a promise about threads is not kept, made to be run
// over and over: `--repeat N` runs one N times; tools/dev/litmus.sh runs all of them a thousand times.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>

#include "../threads/team.hpp"

namespace test {

// The number after --repeat, or what ctest takes.
inline int repeats(int argc, char** argv, int usual) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], "--repeat") == 0) return std::atoi(argv[i + 1]);
  return usual;
}

// A litmus of messages to a last rank from rank 0, which may be the same process: `send(to, comm, round)` on a thread of its own beside
// `receive(comm, round)`, `usual` times on several communicators in turn. What main returns.
template <typename Send, typename Receive>
int send_and_receive(int argc, char** argv, int usual, Send send, Receive receive) {
  const World w = init_threads();
  Communicators comms(3);
  for (int round = 0, times = repeats(argc, argv, usual); round < times; ++round) {
    const MPI_Comm comm = comms[round % 3];
    std::thread sender;
    if (w.rank == 0) sender = std::thread([&] { send(w.size - 1, comm, round); });
    if (w.rank == w.size - 1) receive(comm, round);
    if (sender.joinable()) sender.join();
  }
  comms.free();
  return finish();
}

// The numbers that several threads received between them.
class Seen {
 public:
  void add(int number) {
    const std::lock_guard guard(mutex_);
    numbers_.push_back(number);
  }
  // Each from 0 to count-1, once. When all threads are done.
  void check_each_once(int count) {
    std::sort(numbers_.begin(), numbers_.end());
    CHECK_EQ(numbers_.size(), count);
    for (int k = 0; k < count; ++k) CHECK_EQ(numbers_[static_cast<std::size_t>(k)], k);
  }

 private:
  std::mutex mutex_;
  std::vector<int> numbers_;
};

// A zeroed T that the ranks of a node share past MPI, so that one rank knows what another has done before it makes any
// MPI call. T must hold lock-free atomics only. Collective over MPI_COMM_WORLD; where that spans several nodes, the
// program is skipped.
template <typename T>
T& share_past_mpi(const World& w) {
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int here, all;
  MPI_Comm_size(node, &here);
  MPI_Comm_free(&node);
  MPI_Allreduce(&here, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (all < w.size) {
    if (w.rank == 0) std::printf("skipped: it needs memory that all ranks share, and they are on several hosts\n");
    MPI_Finalize();
    std::exit(77);
  }
  const std::size_t bytes = (sizeof(T) + 4095) / 4096 * 4096;
  int where[2] = {0, -1};
  if (w.rank == 0) {
    where[0] = getpid();
    where[1] = memfd_create("litmus", 0);
    CHECK(where[1] >= 0 && ftruncate(where[1], static_cast<off_t>(bytes)) == 0);
  }
  MPI_Bcast(where, 2, MPI_INT, 0, MPI_COMM_WORLD);
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", where[0], where[1]);
  const int file = open(path, O_RDWR);
  CHECK(file >= 0);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CHECK(memory != MAP_FAILED);
  close(file);
  MPI_Barrier(MPI_COMM_WORLD);
  if (w.rank == 0) close(where[1]);
  return *static_cast<T*>(memory);
}

}  // namespace test
