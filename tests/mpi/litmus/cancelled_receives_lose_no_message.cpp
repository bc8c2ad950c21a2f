// ranks: 1 2
// threads: 4
// timeout: 60
// env: HEDDLE_VCIS=8
// Several threads post receives for the same messages and cancel them while the messages come: each receive either got
// a message or is cancelled, never both, and what no receive got is still there. Every message is seen exactly once.
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

// Until the stop message.
void receive(MPI_Comm comm, int thread, Seen& seen) {
  std::vector<int> data(20'000);
  for (int attempt = thread;; ++attempt) {
    MPI_Request request;
    MPI_Status status;
    data[0] = -2;
    MPI_Irecv(data.data(), static_cast<int>(data.size()), MPI_INT, attempt % 2 ? 0 : MPI_ANY_SOURCE, 0, comm,
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
    seen.add(data[0]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return send_and_receive(argc, argv, 40, send, [](MPI_Comm comm, int) {
    Seen seen;
    run_threads(receivers, [&](int t) { receive(comm, t, seen); });
    seen.check_each_once(messages);
  });
}
