// ranks: 1 2
// threads: 4
// timeout: 60
// env: HEDDLE_VCIS=8
// Several threads post receives for the same messages and cancel them while the messages come: each receive either got
// a message or is cancelled, never both, and what no receive got is still there. Every message is seen exactly once.
#include <algorithm>
#include <mutex>

#include "litmus.hpp"

using namespace test;

namespace {

constexpr int receivers = 3, messages = 60, stop = -1;

void send(int to, MPI_Comm comm, int round) {
  std::vector<int> data(20'000);
  for (int i = 0; i < messages; ++i) {
    data[0] = i;
    const int count = (round + i) % 9 == 4 ? static_cast<int>(data.size()) : 1;
    MPI_Send(data.data(), count, MPI_INT, to, 0, comm);
  }
  data[0] = stop;
  for (int r = 0; r < receivers; ++r) MPI_Send(data.data(), 1, MPI_INT, to, 0, comm);
}

// Returns what the calling thread received until its stop message.
void receive(int from, MPI_Comm comm, int thread, std::vector<int>& seen, std::mutex& mutex) {
  std::vector<int> data(20'000);
  for (int attempt = thread;; ++attempt) {
    MPI_Request request;
    MPI_Status status;
    data[0] = -2;
    MPI_Irecv(data.data(), static_cast<int>(data.size()), MPI_INT, attempt % 2 ? from : MPI_ANY_SOURCE, 0, comm,
              &request);
    for (int look = 0, done = 0; look < attempt % 4 && !done && request != MPI_REQUEST_NULL; ++look)
      MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
    int cancelled = 0;
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    if (cancelled) {
      CHECK_EQ(data[0], -2);
      std::this_thread::yield();
      continue;
    }
    if (data[0] == stop) return;
    std::lock_guard guard(mutex);
    seen.push_back(data[0]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const World w = init_threads();
  Communicators comms(3);
  for (int i = 0, times = repeats(argc, argv, 40); i < times; ++i) {
    const MPI_Comm comm = comms[i % 3];
    std::thread sender;
    if (w.rank == 0) sender = std::thread([&] { send(w.size - 1, comm, i); });
    if (w.rank == w.size - 1) {
      std::vector<int> seen;
      std::mutex mutex;
      run_threads(receivers, [&](int t) { receive(0, comm, t, seen, mutex); });
      std::sort(seen.begin(), seen.end());
      CHECK_EQ(seen.size(), messages);
      for (int k = 0; k < messages; ++k) CHECK_EQ(seen[static_cast<std::size_t>(k)], k);
    }
    if (sender.joinable()) sender.join();
  }
  comms.free();
  return finish();
}
