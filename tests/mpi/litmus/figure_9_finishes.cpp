// ranks: 2
// threads: 2
// timeout: 60
// env: HEDDLE_VCIS=8
// Paper 004's figure 9, left: rank 0 sends synchronously on comm1 and then on comm2; on rank 1 the thread that waits
// for comm2 must also progress comm1, whose thread is held at a thread barrier until comm2 is done. A library that
// polls only the waiter's own VCI hangs. With small and large messages, any order of communicators, and more of them.
#include <barrier>

#include "litmus.hpp"

using namespace test;

namespace {

void litmus(const World& w, MPI_Comm first, MPI_Comm second, std::size_t n, bool plain_send) {
  std::vector<unsigned char> data(n + 1), other(n + 1);
  const int count = static_cast<int>(n);
  if (w.rank == 0) {
    fill(data.data(), n, 1);
    fill(other.data(), n, 2);
    if (plain_send) {
      MPI_Send(data.data(), count, MPI_BYTE, 1, 0, first);
      MPI_Send(other.data(), count, MPI_BYTE, 1, 0, second);
    } else {
      MPI_Ssend(data.data(), count, MPI_BYTE, 1, 0, first);
      MPI_Ssend(other.data(), count, MPI_BYTE, 1, 0, second);
    }
    return;
  }
  std::barrier<> gate(2);
  run_threads(2, [&](int t) {
    MPI_Request request;
    MPI_Irecv(t == 0 ? data.data() : other.data(), count, MPI_BYTE, 0, 0, t == 0 ? first : second, &request);
    gate.arrive_and_wait();
    if (t == 0) {
      gate.arrive_and_wait();
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK_FILLED(data.data(), n, 1u);
    } else {
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      gate.arrive_and_wait();
      CHECK_FILLED(other.data(), n, 2u);
    }
  });
}

// The same with one thread and no barrier: waiting on the second communicator progresses the first.
void one_thread(const World& w, MPI_Comm first, MPI_Comm second, std::size_t n) {
  std::vector<unsigned char> data(n + 1), other(n + 1);
  const int count = static_cast<int>(n);
  if (w.rank == 0) {
    MPI_Ssend(data.data(), count, MPI_BYTE, 1, 0, first);
    MPI_Ssend(other.data(), count, MPI_BYTE, 1, 0, second);
  } else {
    MPI_Request one, two;
    MPI_Irecv(data.data(), count, MPI_BYTE, 0, 0, first, &one);
    MPI_Irecv(other.data(), count, MPI_BYTE, 0, 0, second, &two);
    MPI_Wait(&two, MPI_STATUS_IGNORE);
    MPI_Wait(&one, MPI_STATUS_IGNORE);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const World w = init_threads();
  Communicators comms(9);
  const int times = repeats(argc, argv, 144);
  for (int i = 0; i < times; ++i) {
    const int a = i % 9, b = (a + 1 + i / 9 % 8) % 9;
    const std::size_t n = std::vector<std::size_t>{0, 8, 10'000, 1u << 20}[static_cast<std::size_t>(i / 2 % 4)];
    litmus(w, comms[a], comms[b], n, i % 2);
    one_thread(w, comms[a], comms[b], n);
  }
  comms.free();
  return finish();
}
