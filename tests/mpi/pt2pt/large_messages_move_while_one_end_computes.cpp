// ranks: 2
// timeout: 120
// A large message whose receive is matched gets through although one end makes no MPI call for as long as it takes: first the
// sender is away, then the receiver. Where the kernel lets processes read each other's memory; elsewhere both ends are needed.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

#include "../support.hpp"

using namespace test;

namespace {

constexpr std::size_t bytes = (8u << 20) + 12345;

/// A counter that both ranks see without MPI.
std::atomic<int>* shared_counter(const World& w) {
  char name[] = "/tmp/heddle-test-XXXXXX";
  int file = -1;
  if (w.rank == 0) {
    file = mkstemp(name);
    CHECK(file >= 0 && ftruncate(file, 4096) == 0);
  }
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (w.rank != 0) file = open(name, O_RDWR);
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CHECK(page != MAP_FAILED);
  close(file);
  MPI_Barrier(MPI_COMM_WORLD);
  if (w.rank == 0) unlink(name);
  return static_cast<std::atomic<int>*>(page);
}

/// Returns once the counter has the value: no MPI call meanwhile. False after 30 seconds, so that a failure is one.
bool compute_until(const std::atomic<int>& counter, int value) {
  for (int i = 0; i < 30'000 && counter.load() != value; ++i) {
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
  return counter.load() == value;
}

bool memory_is_readable(const World& w) {
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int here;
  MPI_Comm_size(node, &here);
  MPI_Comm_free(&node);
  if (here < w.size) return false;  // two ranks: both see the same
  struct {
    long pid;
    const void* at;
  } mine{getpid(), &mine}, other{};
  MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, 1 - w.rank, 0, &other, sizeof other, MPI_BYTE, 1 - w.rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  long word;
  iovec to{&word, sizeof word}, from{const_cast<void*>(other.at), sizeof word};
  int works = process_vm_readv(static_cast<pid_t>(other.pid), &to, 1, &from, 1, 0) == sizeof word, all = 0;
  for (const char* parameter : {"HEDDLE_CMA", "HEDDLE_SHM"})
    if (std::getenv(parameter)) works = 0;
  MPI_Allreduce(&works, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all;
}

}  // namespace

int main() {
  const World w = init();
  if (!library_is_heddle() || !memory_is_readable(w)) return finish();
  std::atomic<int>& counter = *shared_counter(w);
  std::vector<unsigned char> data(bytes);
  const int n = static_cast<int>(bytes);
  for (int round = 0; round < 5; ++round) {
    const auto seed = static_cast<std::uint64_t>(round);
    MPI_Request request;
    // The sender is away.
    if (w.rank == 0) {
      fill(data.data(), bytes, seed);
      MPI_Isend(data.data(), n, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
      CHECK(compute_until(counter, 2 * round + 1));
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(data.data(), n, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_FILLED(data.data(), bytes, seed);
      counter.store(2 * round + 1);
    }
    // The receiver is away, after it has matched the message.
    if (w.rank == 0) {
      fill(data.data(), bytes, seed + 100);
      MPI_Send(data.data(), n, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
      counter.store(2 * round + 2);
    } else {
      MPI_Probe(0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Irecv(data.data(), n, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request);
      CHECK(compute_until(counter, 2 * round + 2));
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK_FILLED(data.data(), bytes, seed + 100);
    }
  }
  return finish();
}
