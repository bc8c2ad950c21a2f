// ranks: 2
// threads: 2
// timeout: 120
// One thread sends without pause on one communicator while another plays ping-pong on another communicator: the ping-pong finishes its rounds, and only then is the flood told to end. Nothing of the flood is lost.
#include <atomic>

#include "team.hpp"

using namespace test;

namespace {

constexpr int flood_tag = 1, ping_tag = 2, end_tag = 3, rounds = 400;

void run(const World& w, MPI_Comm flooded, MPI_Comm calm, std::size_t flood_size, std::size_t ping_size) {
  std::atomic<bool> finished{false};
  run_threads(2, [&](int t) {
    if (t == 0 && w.rank == 0) {  // the flood
      std::vector<unsigned char> data(flood_size);
      int sent = 0;
      // Acquire pairs with the release of the ping thread; the bound only keeps a broken library from filling a disk.
      for (; !finished.load(std::memory_order_acquire) && sent < 50'000'000; ++sent) {
        std::memcpy(data.data(), &sent, sizeof sent);
        MPI_Send(data.data(), static_cast<int>(flood_size), MPI_BYTE, 1, flood_tag, flooded);
      }
      MPI_Send(&sent, 1, MPI_INT, 1, end_tag, flooded);
    } else if (t == 0) {
      std::vector<unsigned char> data(flood_size);
      for (int received = 0;; ++received) {
        MPI_Status status;
        MPI_Probe(0, MPI_ANY_TAG, flooded, &status);
        if (status.MPI_TAG == end_tag) {
          int sent = 0;
          MPI_Recv(&sent, 1, MPI_INT, 0, end_tag, flooded, MPI_STATUS_IGNORE);
          CHECK_EQ(received, sent);
          return;
        }
        MPI_Recv(data.data(), static_cast<int>(flood_size), MPI_BYTE, 0, flood_tag, flooded, MPI_STATUS_IGNORE);
        int value = -1;
        std::memcpy(&value, data.data(), sizeof value);
        CHECK_EQ(value, received);
      }
    } else {  // the ping-pong
      std::vector<unsigned char> data(ping_size);
      const int n = static_cast<int>(ping_size);
      for (int i = 0; i < rounds; ++i) {
        if (w.rank == 0) MPI_Send(data.data(), n, MPI_BYTE, 1, ping_tag, calm);
        MPI_Recv(data.data(), n, MPI_BYTE, 1 - w.rank, ping_tag, calm, MPI_STATUS_IGNORE);
        if (w.rank == 1) MPI_Send(data.data(), n, MPI_BYTE, 0, ping_tag, calm);
      }
      finished.store(true, std::memory_order_release);
    }
  });
}

}  // namespace

int main() {
  const World w = init_threads();
  Communicators comms(2);
  for (const std::size_t flood_size : {8u, 3'000u, 60'000u})
    for (const std::size_t ping_size : {8u, 100'000u}) run(w, comms[0], comms[1], flood_size, ping_size);
  comms.free();
  return finish();
}
