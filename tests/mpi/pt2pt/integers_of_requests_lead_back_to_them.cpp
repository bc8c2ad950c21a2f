// ranks: 2
// timeout: 30
// MPI_Request_toint and MPI_Request_fromint, which Fortran's handles go through: requests that were complete when they were made have
// integers of their own, so that Waitany, Waitsome and Testall see them for what they are.
#include <set>

#include "../support.hpp"

using namespace test;

namespace {

constexpr int reserved = 4096;  // integers below are the ABI's, for predefined handles

}  // namespace

int main() {
  const World w = init();
  const int peer = 1 - w.rank;
  CHECK_EQ(MPI_Request_toint(MPI_REQUEST_NULL), 0x180);
  CHECK(MPI_Request_fromint(0x180) == MPI_REQUEST_NULL);
  CHECK(MPI_Request_fromint(0) == MPI_REQUEST_NULL);

  int in = -1, out = 17 + w.rank, other = -1;
  MPI_Request requests[4];
  CHECK_OK(MPI_Irecv(&in, 1, MPI_INT, peer, 5, MPI_COMM_WORLD, &requests[0]));
  CHECK_OK(MPI_Isend(&out, 1, MPI_INT, peer, 4, MPI_COMM_WORLD, &requests[1]));
  CHECK_OK(MPI_Isend(&out, 1, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &requests[2]));
  CHECK_OK(MPI_Irecv(&other, 1, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &requests[3]));
  int numbers[4];
  for (int i = 0; i < 4; ++i) {
    numbers[i] = MPI_Request_toint(requests[i]);
    CHECK_GE(numbers[i], reserved);
    CHECK(MPI_Request_fromint(numbers[i]) == requests[i]);
  }
  // A receive that waits is nobody else; a complete receive is no send.
  CHECK(std::set<int>({numbers[0], numbers[1], numbers[3]}).size() == 3);

  // What Fortran's bindings do: integers to handles, the call, handles to integers.
  MPI_Request again[4];
  for (int i = 0; i < 4; ++i) again[i] = MPI_Request_fromint(numbers[i]);
  std::set<int> seen;
  for (int n = 0; n < 3; ++n) {
    int index = -1;
    MPI_Status status;
    CHECK_OK(MPI_Waitany(4, again, &index, &status));
    CHECK(index >= 1 && index <= 3);
    seen.insert(index);
    if (index == 3) CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
    CHECK_EQ(MPI_Request_toint(again[index]), 0x180);
  }
  CHECK_EQ(static_cast<int>(seen.size()), 3);
  int done = -1;
  CHECK_OK(MPI_Testall(4, again, &done, MPI_STATUSES_IGNORE));
  CHECK(!done);
  MPI_Barrier(MPI_COMM_WORLD);  // only now may the message come that the receive waits for

  CHECK_OK(MPI_Recv(&other, 1, MPI_INT, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK_EQ(other, 17 + peer);
  CHECK_OK(MPI_Send(&out, 1, MPI_INT, peer, 5, MPI_COMM_WORLD));
  CHECK_OK(MPI_Wait(&again[0], MPI_STATUS_IGNORE));
  CHECK_EQ(in, 17 + peer);
  return finish();
}
