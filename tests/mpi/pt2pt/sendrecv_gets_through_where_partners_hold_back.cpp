// ranks: 2 3
// timeout: 60
// env: HEDDLE_UNEXPECTED=64K
// All ranks first send their neighbours more than these keep unasked, so that messages wait at the senders; then they
// exchange with MPI_Sendrecv, whose receive must be there although its own send cannot leave.
#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  const int right = (w.rank + 1) % w.size, left = (w.rank + w.size - 1) % w.size;
  constexpr int n = 2000, size = 1000;
  std::vector<std::vector<unsigned char>> out(n, std::vector<unsigned char>(size));
  std::vector<MPI_Request> requests(n);
  for (int i = 0; i < n; ++i) {
    fill(out[i].data(), size, static_cast<std::uint64_t>(w.rank * n + i));
    MPI_Isend(out[i].data(), size, MPI_BYTE, right, 1, MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = 0; i < 100; ++i) {
    int mine = w.rank * 1000 + i, theirs = -1;
    MPI_Status status = dirty_status();
    MPI_Sendrecv(&mine, 1, MPI_INT, right, 2, &theirs, 1, MPI_INT, left, 2, MPI_COMM_WORLD, &status);
    CHECK_EQ(theirs, left * 1000 + i);
    CHECK_EQ(status.MPI_SOURCE, left);
    CHECK_EQ(status.MPI_TAG, 2);
  }
  std::vector<unsigned char> in(size);
  for (int i = 0; i < n; ++i) {
    MPI_Recv(in.data(), size, MPI_BYTE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_FILLED(in.data(), size, static_cast<std::uint64_t>(left * n + i));
  }
  MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE);
  return finish();
}
