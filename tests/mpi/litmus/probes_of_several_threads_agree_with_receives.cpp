// ranks: 1 2
// threads: 4
// timeout: 60
// env: HEDDLE_VCIS=8
// On one communicator at once: a thread that probes for its own tag and receives what it saw, and two threads that take
// whatever has the common tag by matched probe, blocking and not. What a probe saw is what the receive gets; what a
// matched probe took nobody else gets; every message is seen exactly once.
#include <algorithm>
#include <mutex>

#include "litmus.hpp"

using namespace test;

namespace {

constexpr int messages = 40, own_tag = 1, common_tag = 2, stop = -1;

int count_for(int i) { return i % 8 == 5 ? 20'000 : 1 + i % 3; }

void send(int to, MPI_Comm comm, int tag, int stops) {
  std::vector<int> data(20'000);
  for (int i = 0; i < messages; ++i) {
    data[0] = i;
    MPI_Send(data.data(), count_for(i), MPI_INT, to, tag, comm);
  }
  data[0] = stop;
  for (int s = 0; s < stops; ++s) MPI_Send(data.data(), 1, MPI_INT, to, tag, comm);
}

void probe_and_receive(MPI_Comm comm, int round) {
  std::vector<int> data(20'000);
  for (int i = 0;; ++i) {
    MPI_Status seen, got;
    if ((round + i) % 2) {
      MPI_Probe(MPI_ANY_SOURCE, own_tag, comm, &seen);
    } else {
      int flag = 0;
      CHECK(eventually([&] { return MPI_Iprobe(MPI_ANY_SOURCE, own_tag, comm, &flag, &seen), flag != 0; }));
    }
    const int count = static_cast<int>(count_of(seen, MPI_INT));
    MPI_Recv(data.data(), count, MPI_INT, seen.MPI_SOURCE, own_tag, comm, &got);
    CHECK_EQ(count_of(got, MPI_INT), count);
    if (data[0] == stop) {
      CHECK_EQ(i, messages);
      return;
    }
    CHECK_EQ(data[0], i);
    CHECK_EQ(count, count_for(i));
  }
}

void take(MPI_Comm comm, bool blocking, std::vector<int>& seen, std::mutex& mutex) {
  std::vector<int> data(20'000);
  for (;;) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    if (blocking) {
      MPI_Mprobe(MPI_ANY_SOURCE, common_tag, comm, &message, &status);
    } else {
      int flag = 0;
      CHECK(eventually(
          [&] { return MPI_Improbe(MPI_ANY_SOURCE, common_tag, comm, &flag, &message, &status), flag != 0; }));
    }
    const int count = static_cast<int>(count_of(status, MPI_INT));
    MPI_Mrecv(data.data(), count, MPI_INT, &message, &status);
    CHECK_EQ(count_of(status, MPI_INT), count);
    if (data[0] == stop) return;
    CHECK_EQ(count, count_for(data[0]));
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
    std::thread senders;
    if (w.rank == 0)
      senders = std::thread(
          [&] { run_threads(2, [&](int t) { send(w.size - 1, comm, t ? common_tag : own_tag, t ? 2 : 1); }); });
    if (w.rank == w.size - 1) {
      std::vector<int> seen;
      std::mutex mutex;
      run_threads(3, [&](int t) { t ? take(comm, t == 1, seen, mutex) : probe_and_receive(comm, i); });
      std::sort(seen.begin(), seen.end());
      CHECK_EQ(seen.size(), messages);
      for (int k = 0; k < messages; ++k) CHECK_EQ(seen[static_cast<std::size_t>(k)], k);
    }
    if (senders.joinable()) senders.join();
  }
  comms.free();
  return finish();
}
