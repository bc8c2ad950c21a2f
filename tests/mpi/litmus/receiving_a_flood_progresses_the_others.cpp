// ranks: 2
// threads: 2
// timeout: 60
// env: HEDDLE_VCIS=8
// A thread that receives a flood on one communicator is never out of work there, yet it must bring in what arrives on
// the others: the sender ends the flood only when its synchronous send on another communicator is done. And it must
// bring it in soon: before `bound` further messages of the flood are received, counted from when the message was there.
#include "litmus.hpp"

using namespace test;

namespace {

constexpr int end_tag = 1, bound = 20'000;

struct Shared {
  std::atomic<int> pinged{0};  // messages sent on the calm communicator so far
};

// Rank 0: one thread floods, the other sends on `calm`; the flood ends after that.
void send(MPI_Comm flooded, MPI_Comm calm, Shared& shared, int round) {
  std::atomic<bool> delivered{false};
  run_threads(2, [&](int t) {
    if (t == 0) {
      int i = 0;
      // Acquire pairs with the release below; the limit is far beyond what a fair library needs.
      for (; !delivered.load(std::memory_order_acquire) && i < 10'000'000; ++i) MPI_Send(&i, 1, MPI_INT, 1, 0, flooded);
      MPI_Send(&i, 1, MPI_INT, 1, end_tag, flooded);
    } else if (round % 2) {
      MPI_Ssend(&round, 1, MPI_INT, 1, 0, calm);
      delivered.store(true, std::memory_order_release);
    } else {
      MPI_Send(&round, 1, MPI_INT, 1, 0, calm);
      shared.pinged.store(round + 1, std::memory_order_release);  // pairs with the receiver's acquire
      int ack = -1;
      MPI_Recv(&ack, 1, MPI_INT, 1, 0, calm, MPI_STATUS_IGNORE);
      delivered.store(true, std::memory_order_release);
    }
  });
}

// Rank 1, one thread: receives the flood until its end.
void receive(MPI_Comm flooded, MPI_Comm calm, Shared& shared, int round) {
  int ping = -1, value = -1, since = 0;
  MPI_Request request;
  MPI_Irecv(&ping, 1, MPI_INT, 0, 0, calm, &request);
  bool answered = round % 2;  // that the synchronous send returns is the answer
  for (int received = 0;; ++received) {
    MPI_Status status;
    MPI_Recv(&value, 1, MPI_INT, 0, MPI_ANY_TAG, flooded, &status);
    CHECK_EQ(value, received);
    if (status.MPI_TAG == end_tag) break;
    if (answered) continue;
    // Looks at the buffer past MPI: to ask MPI about the request would be to make progress for it.
    if (std::atomic_ref<int>(ping).load(std::memory_order_acquire) == round) {
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Send(&round, 1, MPI_INT, 0, 0, calm);
      answered = true;
    } else if (shared.pinged.load(std::memory_order_acquire) == round + 1) {
      CHECK_LE(++since, bound);
    }
  }
  if (request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQ(ping, round);
}

}  // namespace

int main(int argc, char** argv) {
  const World w = init_threads();
  Shared& shared = share_past_mpi<Shared>(w);
  Communicators comms(4);
  for (int i = 0, times = repeats(argc, argv, 20); i < times; ++i)
    (w.rank ? receive : send)(comms[i % 4], comms[(i + 1) % 4], shared, i);
  comms.free();
  return finish();
}
