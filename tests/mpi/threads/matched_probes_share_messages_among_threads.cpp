// ranks: 1 2
// threads: 4
// timeout: 60
// Several threads receive whatever comes by MPI_Mprobe or MPI_Improbe with wildcards, while several threads send: each
// message is received exactly once, whole, by the thread that matched it.
#include <atomic>

#include "team.hpp"

using namespace test;

namespace {

constexpr int senders = 2, receivers = 3, per_sender = 4'000, stop_tag = 99;

std::size_t size_of(int sender, int i) {
  static const std::size_t sizes[] = {8, 100, 8, 6'000, 64, 80'000, 8, 30};
  return sizes[(sender + i) % 8];
}

void send(int to, int me, MPI_Comm comm) {
  std::vector<unsigned char> data(80'000);
  for (int i = 0; i < per_sender; ++i) {
    const std::size_t n = size_of(me, i);
    fill(data.data(), n, static_cast<std::uint64_t>(me * per_sender + i));
    const int id[2] = {me, i};
    std::memcpy(data.data(), id, sizeof id);
    MPI_Send(data.data(), static_cast<int>(n), MPI_BYTE, to, i % 7, comm);
  }
}

void receive(MPI_Comm comm, bool blocking, std::vector<std::atomic<int>>& seen) {
  std::vector<unsigned char> data, expected;
  for (;;) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    if (blocking) {
      MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &message, &status);
    } else {
      int flag = 0;
      CHECK(eventually([&] {
        MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &message, &status);
        return flag != 0;
      }));
    }
    const auto n = static_cast<std::size_t>(count_of(status));
    data.assign(n + 1, 0);
    MPI_Status received;
    MPI_Mrecv(data.data(), static_cast<int>(n), MPI_BYTE, &message, &received);
    CHECK_EQ(received.MPI_TAG, status.MPI_TAG);
    CHECK_EQ(count_of(received), n);
    if (status.MPI_TAG == stop_tag) return;
    int id[2];
    std::memcpy(id, data.data(), sizeof id);
    CHECK(id[0] >= 0 && id[0] < senders && id[1] >= 0 && id[1] < per_sender);
    CHECK_EQ(n, size_of(id[0], id[1]));
    CHECK_EQ(status.MPI_TAG, id[1] % 7);
    expected.assign(n, 0);
    fill(expected.data(), n, static_cast<std::uint64_t>(id[0] * per_sender + id[1]));
    std::memcpy(expected.data(), id, sizeof id);
    CHECK_EQ(std::memcmp(data.data(), expected.data(), n), 0);
    // Relaxed: read after the threads are joined.
    seen[static_cast<std::size_t>(id[0] * per_sender + id[1])].fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace

int main() {
  const World w = init_threads();
  Communicators comms(2);
  for (const bool blocking : {true, false}) {
    const MPI_Comm comm = comms[blocking];
    std::vector<std::atomic<int>> seen(senders * per_sender);
    std::thread receiving([&] {
      if (w.rank == w.size - 1) run_threads(receivers, [&](int) { receive(comm, blocking, seen); });
    });
    if (w.rank == 0) {
      run_threads(senders, [&](int s) { send(w.size - 1, s, comm); });
      for (int r = 0; r < receivers; ++r) MPI_Send(nullptr, 0, MPI_BYTE, w.size - 1, stop_tag, comm);
    }
    receiving.join();
    if (w.rank == w.size - 1)
      for (int k = 0; k < senders * per_sender; ++k) {
        const int times = seen[static_cast<std::size_t>(k)].load(std::memory_order_relaxed);
        if (times != 1)
          check_fail(__FILE__, __LINE__, "by %s: message %d of sender %d (%zu bytes) was received %d times",
                     blocking ? "MPI_Mprobe" : "MPI_Improbe", k % per_sender, k / per_sender,
                     size_of(k / per_sender, k % per_sender), times);
      }
  }
  comms.free();
  return finish();
}
