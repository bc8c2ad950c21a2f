// ranks: 1 2
// threads: 3
// timeout: 60
// env: HEDDLE_VCIS=8
// Two threads send on one communicator, each in a critical section that also takes the next number: the numbers arrive
// in order, though nothing but the program's own lock orders the two threads. With wildcards, with the source named,
// with one tag and with a tag for each thread; small, large and synchronous.
#include "litmus.hpp"

using namespace test;

namespace {

constexpr int messages = 60;

void send(int to, MPI_Comm comm, int round) {
  std::mutex section;
  int next = 0;
  run_threads(2, [&](int t) {
    std::vector<int> data(30'000);
    for (;;) {
      std::lock_guard guard(section);
      if (next == messages) return;
      data[0] = next++;
      const int count = round % 3 == 1 && data[0] % 7 == 3 ? static_cast<int>(data.size()) : 1;
      const int tag = round / 2 % 2 ? t : 0;
      if (round % 3 == 2 && data[0] % 5 == 0)
        MPI_Ssend(data.data(), count, MPI_INT, to, tag, comm);
      else
        MPI_Send(data.data(), count, MPI_INT, to, tag, comm);
    }
  });
}

void receive(MPI_Comm comm, int round) {
  std::vector<int> data(30'000);
  for (int i = 0; i < messages; ++i) {
    MPI_Recv(data.data(), static_cast<int>(data.size()), MPI_INT, round % 2 ? 0 : MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
             MPI_STATUS_IGNORE);
    CHECK_EQ(data[0], i);
  }
}

}  // namespace

int main(int argc, char** argv) { return send_and_receive(argc, argv, 40, send, receive); }
