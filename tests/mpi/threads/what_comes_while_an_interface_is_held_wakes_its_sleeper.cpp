// ranks: 2
// threads: 2
// timeout: 30
// env: HEDDLE_SPIN_US=0
// A thread goes to sleep for a message while another one holds their interface for long (it copies a large message to
// itself), and the message came just before that. It is received as soon as the interface is free, though the other thread then
// stays out of MPI. (A sleeper that missed it would sleep a second each time, which is longer than there is.)
#include <atomic>

#include "../litmus/litmus.hpp"

using namespace test;
using namespace std::chrono_literals;

namespace {

constexpr int rounds = 100;
constexpr int bytes = 16 << 20;

struct Stage {
  std::atomic<int> copying, sent;
};

}  // namespace

int main() {
  const World w = init_threads();
  auto& stage = share_past_mpi<Stage>(w);
  if (w.rank == 1) {
    for (int round = 1; round <= rounds; ++round) {
      while (stage.copying.load() != round) std::this_thread::yield();
      std::this_thread::sleep_for(1ms);
      MPI_Send(nullptr, 0, MPI_BYTE, 0, round, MPI_COMM_WORLD);
      stage.sent.store(round);
    }
    return finish();
  }
  MPI_Datatype spread;  // copied byte by byte, which takes long
  MPI_Type_vector(bytes, 1, 2, MPI_BYTE, &spread);
  MPI_Type_commit(&spread);
  std::vector<unsigned char> from(bytes, 1), to(std::size_t{2} * bytes);
  for (int round = 1; round <= rounds; ++round) {
    MPI_Request request;
    MPI_Irecv(nullptr, 0, MPI_BYTE, 1, round, MPI_COMM_WORLD, &request);
    std::atomic<bool> received{false};
    std::thread other([&] {
      MPI_Request self[2];
      MPI_Isend(from.data(), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &self[0]);
      stage.copying.store(round);
      MPI_Irecv(to.data(), 1, spread, 0, 0, MPI_COMM_WORLD, &self[1]);
      while (!received.load()) std::this_thread::sleep_for(1ms);
      MPI_Waitall(2, self, MPI_STATUSES_IGNORE);
    });
    while (stage.sent.load() != round) std::this_thread::sleep_for(100us);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    received.store(true);
    other.join();
  }
  MPI_Type_free(&spread);
  return finish();
}
