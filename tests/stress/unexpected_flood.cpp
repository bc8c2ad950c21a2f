// ranks: 2
// threads: 3
// timeout: 300
// 1 GiB of eager messages that nobody receives holds the senders back instead of filling the receiver's memory: by
// MPI_Isend and by MPI_Send from several threads. Meanwhile a message by another tag gets through, and in the end
// nothing is lost.
//
//   unexpected_flood [--mib N]       how much is sent (1024)
//
// The receiver is inside MPI all the time (it polls for the other tag), so that it does take messages off the wire. Its
// resident memory may grow by what the library keeps of unexpected messages, which must have a bound: 256 MiB is far
// above it and far below what is sent. MPICH and Open MPI have no bound and fail this.
#include <algorithm>
#include <atomic>
#include <string_view>

#include "../mpi/threads/team.hpp"

using namespace test;

namespace {

constexpr std::size_t sizes[] = {0, 8, 200, 1'024, 4'000, 8'000};
constexpr int flood_tag = 1, other_tag = 2, go_tag = 3;
constexpr long long bound_mib = 256;

long long resident_mib() {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  long long kib = 0;
  while (file && std::fgets(line, sizeof line, file))
    if (std::sscanf(line, "VmRSS: %lld kB", &kib) == 1) break;
  if (file) std::fclose(file);
  return kib / 1024;
}

long long total_bytes(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::string_view(argv[i]) == "--mib") return std::atoll(argv[i + 1]) << 20;
  return 1LL << 30;
}

// How many messages of `size` make a flood of `bytes`. Of the smallest, as many as show whether what the library keeps
// for each, payload or not, counts: at 64 bytes each they would fill the bound.
long long count_for(std::size_t size, long long bytes) {
  return std::min(bytes / static_cast<long long>(std::max<std::size_t>(size, 1)), bytes >> 8);
}

// Receives the flood of one tag and checks that all of it comes, in order.
void drain(MPI_Comm comm, int tag, std::size_t size, long long messages) {
  std::vector<unsigned char> data(size + 8);
  for (long long i = 0; i < messages; ++i) {
    MPI_Status status;
    MPI_Recv(data.data(), static_cast<int>(size), MPI_BYTE, 0, tag, comm, &status);
    CHECK_EQ(count_of(status), size);
    long long value = -1;
    std::memcpy(&value, data.data(), 8);
    if (size > 0) CHECK_EQ(value, i);
  }
}

// Waits for the message by the other tag, which is sent into the flood, and watches the memory meanwhile and after.
void watch(const char* what, MPI_Comm comm) {
  const long long before = resident_mib();
  long long most = 0;
  int flag = 0, value = 0;
  CHECK(eventually([&] {
    MPI_Iprobe(0, other_tag, comm, &flag, MPI_STATUS_IGNORE);
    most = std::max(most, resident_mib() - before);
    return flag != 0;
  }, 120));
  MPI_Recv(&value, 1, MPI_INT, 0, other_tag, comm, MPI_STATUS_IGNORE);
  CHECK_EQ(value, 42);
  // Polls until the memory has stood still for half a second: what is to come has come.
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  auto changed = start;
  for (long long last = -1; clock::now() - changed < std::chrono::milliseconds(500) &&
                            clock::now() - start < std::chrono::seconds(30);) {
    for (int i = 0; i < 50; ++i) MPI_Iprobe(0, other_tag, comm, &flag, MPI_STATUS_IGNORE);
    const long long now = resident_mib() - before;
    if (now != last) changed = clock::now();
    last = now;
    most = std::max(most, now);
  }
  std::printf("%s: the receiver grew by %lld MiB\n", what, most);
  std::fflush(stdout);
  if (!library_is_mpich()) CHECK_LT(most, bound_mib);
}

void by_isend(const World& w, MPI_Comm comm, long long bytes, std::size_t size) {
  const long long messages = count_for(size, bytes);
  if (w.rank == 0) {
    constexpr std::size_t window = 20'000;  // outstanding at once: what is held back is held in these requests
    std::vector<unsigned char> data(window * size + 8);
    std::vector<MPI_Request> requests(window, MPI_REQUEST_NULL);
    const int other = 42;
    for (long long i = 0; i < messages; ++i) {
      const auto k = static_cast<std::size_t>(i) % window;
      MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
      std::memcpy(&data[k * size], &i, 8);
      MPI_Isend(&data[k * size], static_cast<int>(size), MPI_BYTE, 1, flood_tag, comm, &requests[k]);
      // A window's worth is on its way and, held back or not, the other message must pass it.
      if (i == std::min(messages, static_cast<long long>(window)) - 1)
        MPI_Send(&other, 1, MPI_INT, 1, other_tag, comm);
    }
    MPI_Waitall(window, requests.data(), MPI_STATUSES_IGNORE);
  } else {
    watch(("MPI_Isend of " + std::to_string(size) + " bytes").c_str(), comm);
    drain(comm, flood_tag, size, messages);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// Two threads flood with blocking sends, each by its tag; a third sends the message that must get through.
void by_threads(const World& w, MPI_Comm comm, MPI_Comm control, long long bytes, std::size_t size) {
  const long long messages = count_for(size, bytes / 2);
  if (w.rank == 0) {
    run_threads(3, [&](int t) {
      if (t == 2) {
        const int other = 42;
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, go_tag, control, MPI_STATUS_IGNORE);
        MPI_Send(&other, 1, MPI_INT, 1, other_tag, comm);
        return;
      }
      std::vector<unsigned char> data(size + 8);
      for (long long i = 0; i < messages; ++i) {
        std::memcpy(data.data(), &i, 8);
        MPI_Send(data.data(), static_cast<int>(size), MPI_BYTE, 1, 10 + t, comm);
      }
    });
  } else {
    int flag = 0;
    for (int polls = 0; polls < 200'000; ++polls) MPI_Iprobe(0, other_tag, comm, &flag, MPI_STATUS_IGNORE);
    MPI_Send(nullptr, 0, MPI_BYTE, 0, go_tag, control);
    watch(("MPI_Send of " + std::to_string(size) + " bytes by two threads").c_str(), comm);
    run_threads(2, [&](int t) { drain(comm, 10 + t, size, messages); });
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  const World w = init_threads();
  const long long bytes = total_bytes(argc, argv);
  Communicators comms(2);
  for (const std::size_t size : sizes) {
    by_isend(w, comms[0], bytes, size);
    by_threads(w, comms[0], comms[1], bytes, size);
  }
  comms.free();
  return finish();
}
