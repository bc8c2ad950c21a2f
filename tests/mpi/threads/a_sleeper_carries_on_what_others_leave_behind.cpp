// ranks: 2
// threads: 2
// timeout: 30
// env: HEDDLE_VCIS=4 HEDDLE_SPIN_US=0
// A thread sleeps in MPI_Recv. Another one of its process starts an operation that only the process's progress can end,
// and stays out of MPI from then on: the sleeper sees to it at once. (A sleeper that did so only when it happens to wake
// up, once a second, would need twice the time that there is.)
#include <atomic>

#include "../litmus/litmus.hpp"

using namespace test;
using namespace std::chrono_literals;

namespace {

constexpr int rounds = 30;
constexpr int large = 1 << 20, small = 8000, burst = 64;

// A message that is here when its receive is posted, and that the receiver copies alone.
void receive_of_a_waiting_message(const World& w, MPI_Comm quiet, MPI_Comm busy) {
  void* memory = nullptr;
  MPI_Alloc_mem(large, MPI_INFO_NULL, &memory);
  auto* data = static_cast<unsigned char*>(memory);
  for (int round = 0; round < rounds; ++round) {
    const auto seed = static_cast<std::uint64_t>(round);
    if (w.rank == 1) {
      fill(data, large, seed);
      MPI_Send(data, large, MPI_BYTE, 0, round, busy);
      MPI_Send(nullptr, 0, MPI_BYTE, 0, round, quiet);
      continue;
    }
    std::thread sleeper([&] { MPI_Recv(nullptr, 0, MPI_BYTE, 1, round, quiet, MPI_STATUS_IGNORE); });
    std::this_thread::sleep_for(5ms);
    MPI_Request request;
    MPI_Probe(1, round, busy, MPI_STATUS_IGNORE);
    std::this_thread::sleep_for(5ms);  // for the sleeper; nothing depends on it
    MPI_Irecv(data, large, MPI_BYTE, 1, round, busy, &request);
    sleeper.join();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_FILLED(data, large, seed);
  }
  MPI_Free_mem(memory);
}

// More messages than the receiver's ring takes before it looks.
void more_sends_than_a_ring_takes(const World& w, MPI_Comm quiet, MPI_Comm busy, std::atomic<int>& sent) {
  std::vector<unsigned char> data(std::size_t{burst} * small);
  for (int round = 0; round < rounds; ++round) {
    const auto seed = static_cast<std::uint64_t>(round);
    if (w.rank == 1) {
      while (sent.load() != round + 1) std::this_thread::sleep_for(1ms);
      for (int m = 0; m < burst; ++m) MPI_Recv(&data[std::size_t(m) * small], small, MPI_BYTE, 0, round, busy, MPI_STATUS_IGNORE);
      CHECK_FILLED(data.data(), data.size(), seed);
      MPI_Send(nullptr, 0, MPI_BYTE, 0, round, quiet);
      continue;
    }
    fill(data.data(), data.size(), seed);
    std::thread sleeper([&] { MPI_Recv(nullptr, 0, MPI_BYTE, 1, round, quiet, MPI_STATUS_IGNORE); });
    std::this_thread::sleep_for(10ms);
    std::vector<MPI_Request> requests(burst);
    for (int m = 0; m < burst; ++m)
      MPI_Isend(&data[std::size_t(m) * small], small, MPI_BYTE, 1, round, busy, &requests[std::size_t(m)]);
    sent.store(round + 1);
    sleeper.join();
    MPI_Waitall(burst, requests.data(), MPI_STATUSES_IGNORE);
  }
}

}  // namespace

int main() {
  const World w = init_threads();
  auto& sent = share_past_mpi<std::atomic<int>>(w);
  Communicators comms(2);
  receive_of_a_waiting_message(w, comms[0], comms[1]);
  more_sends_than_a_ring_takes(w, comms[0], comms[1], sent);
  comms.free();
  return finish();
}
