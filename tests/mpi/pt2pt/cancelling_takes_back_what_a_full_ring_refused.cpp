// ranks: 2
// timeout: 60
// endpoints: none (one process is not to be in MPI)
// While the receiver is not in MPI, its ring fills and messages pile up at the sender. Those are cancelled without its help, the newest
// first; what is not arrives in order, with nothing missing in between. Small messages, and offers of large ones.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "../support.hpp"

using namespace test;

namespace {

constexpr int most = 8'000, told = 2;

bool was_cancelled(const MPI_Status& status) {
  int flag = -1;
  MPI_Test_cancelled(&status, &flag);
  return flag != 0;
}

// Message i holds i, `ints` times.
void receive(int in, int ints) {
  char byte = 0;
  CHECK_EQ(read(in, &byte, 1), 1);  // not in MPI
  std::vector<int> got(static_cast<std::size_t>(ints));
  for (int last = -1;; ++last) {
    MPI_Status status;
    MPI_Recv(got.data(), ints, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    if (status.MPI_TAG == told) {
      MPI_Send(&last, 1, MPI_INT, 0, told, MPI_COMM_WORLD);
      return;
    }
    CHECK_EQ(got.front(), last + 1);
    CHECK_EQ(got.back(), last + 1);
  }
}

void send(int out, int ints, bool small) {
  std::vector<std::vector<int>> data;
  std::vector<MPI_Request> requests;
  for (int waiting = 0; static_cast<int>(requests.size()) < most && (waiting < 20 || !small);) {
    data.emplace_back(static_cast<std::size_t>(ints), static_cast<int>(requests.size()));
    MPI_Isend(data.back().data(), ints, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests.emplace_back());
    int done = 0;
    MPI_Request_get_status(requests.back(), &done, MPI_STATUS_IGNORE);
    waiting += !done;
  }
  int ended = 0, last = -1;
  for (std::size_t i = requests.size(); i-- > 0;) {
    int done = 0;
    MPI_Status status;
    MPI_Cancel(&requests[i]);
    MPI_Test(&requests[i], &done, &status);
    // Small ones were sent, or are here to be taken back. Offers in the ring, and the questions after them, wait for the receiver.
    if (small) CHECK(done);
    if (!done) break;
    if (!was_cancelled(status)) break;
    ++ended;
  }
  CHECK(ended > 0);
  CHECK_EQ(write(out, "x", 1), 1);
  int delivered = 0;
  for (MPI_Request& request : requests) {
    MPI_Status status;
    if (request == MPI_REQUEST_NULL) continue;
    MPI_Wait(&request, &status);
    delivered += !was_cancelled(status);
  }
  if (small) delivered = static_cast<int>(requests.size()) - ended;
  MPI_Send(nullptr, 0, MPI_INT, 1, told, MPI_COMM_WORLD);
  MPI_Recv(&last, 1, MPI_INT, 1, told, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQ(last, delivered - 1);
}

}  // namespace

int main() {
  const World w = init();
  char folder[] = "/tmp/cancel_XXXXXX";
  if (w.rank == 0) CHECK(mkdtemp(folder) != nullptr);
  const std::string pipe = (MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD), std::string(folder) + "/pipe");
  if (w.rank == 0) CHECK_EQ(mkfifo(pipe.c_str(), 0600), 0);
  MPI_Barrier(MPI_COMM_WORLD);
  const int end = open(pipe.c_str(), w.rank == 0 ? O_WRONLY : O_RDONLY);
  if (w.rank == 0) {
    unlink(pipe.c_str());
    rmdir(folder);
  }
  for (const int ints : {100, 5'000}) {
    if (w.rank == 0) send(end, ints, ints == 100);
    else receive(end, ints);
  }
  close(end);
  return finish();
}
