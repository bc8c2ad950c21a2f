// ranks: 1 2
// threads: 4
// timeout: 60
// env: HEDDLE_VCIS=8
// On one communicator at once: a thread that probes for its own tag and receives what it saw, and two threads that take
// whatever has the common tag by matched probe, blocking and not. What a probe saw is what the receive gets; what a
// matched probe took nobody else gets; every message is seen exactly once.
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

void take(MPI_Comm comm, bool blocking, Seen& seen) {
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
    seen.add(data[0]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto send_both = [](int to, MPI_Comm comm, int) {
    run_threads(2, [&](int t) { send(to, comm, t ? common_tag : own_tag, t ? 2 : 1); });
  };
  return send_and_receive(argc, argv, 40, send_both, [](MPI_Comm comm, int round) {
    Seen seen;
    run_threads(3, [&](int t) { t ? take(comm, t == 1, seen) : probe_and_receive(comm, round); });
    seen.check_each_once(messages);
  });
}
