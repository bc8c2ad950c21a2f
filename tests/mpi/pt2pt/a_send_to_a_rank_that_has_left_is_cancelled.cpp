// ranks: 2
// timeout: 60
// endpoints: none (it is about processes)
// On a node a rank that has left MPI_Finalize, and whose process is gone, answers nobody any more. A message that comes after it has left can be
// cancelled all the same, and so can one that waits in a full ring; what it had received before is reported as sent.
#include <signal.h>
#include <unistd.h>

#include "../support.hpp"

using namespace test;

namespace {

bool ends_cancelled(MPI_Request& request) {
  MPI_Status status;
  int cancelled = 0;
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  return cancelled != 0;
}

}  // namespace

int main() {
  const World w = init();
  int value = static_cast<int>(getpid());
  if (w.rank == 1) {
    MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return finish();
  }
  int other = 0;
  MPI_Request received;
  MPI_Recv(&other, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Issend(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &received);
  CHECK(eventually([&] { return kill(other, 0) != 0; }));  // its parent has seen it end
  CHECK(!ends_cancelled(received));
  std::vector<char> data(1 << 20);
  for (const int bytes : {0, 8, 3'000, 1 << 20}) {
    std::vector<MPI_Request> requests(bytes == 3'000 ? 1'000 : 3);  // more than a ring holds
    for (MPI_Request& request : requests) MPI_Issend(data.data(), bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request);
    for (MPI_Request& request : requests) CHECK(ends_cancelled(request));
  }
  return finish();
}
