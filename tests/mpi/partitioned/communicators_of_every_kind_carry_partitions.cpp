// ranks: 2 4
// timeout: 60
// Partitions go to the ranks that a communicator names: of the other side of an intercommunicator, of a communicator whose ranks are reversed. A
// communicator may be freed while its requests are in use.
#include "../support.hpp"

using namespace test;

namespace {

// Both ways with `peer`, for some rounds after the handle is gone.
void exchange(MPI_Comm comm, int peer, int mine, int theirs) {
  constexpr int partitions = 5, count = 3000;
  std::vector<int> out(partitions * count), in(partitions * count);
  MPI_Request requests[2];
  CHECK_OK(MPI_Psend_init(out.data(), partitions, count, MPI_INT, peer, 1, comm, MPI_INFO_NULL, &requests[0]));
  CHECK_OK(MPI_Precv_init(in.data(), partitions, count, MPI_INT, peer, 1, comm, MPI_INFO_NULL, &requests[1]));
  MPI_Comm_free(&comm);
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = mine * 1000000 + round * 100000 + static_cast<int>(i);
    CHECK_OK(MPI_Startall(2, requests));
    CHECK_OK(MPI_Pready_range(0, partitions - 1, requests[0]));
    MPI_Status statuses[2];
    CHECK_OK(MPI_Waitall(2, requests, statuses));
    CHECK_EQ(statuses[1].MPI_SOURCE, peer);
    for (std::size_t i = 0; i < in.size(); ++i) CHECK_EQ(in[i], theirs * 1000000 + round * 100000 + static_cast<int>(i));
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm half, both, reversed;
  const int side = w.rank % 2;
  MPI_Comm_split(MPI_COMM_WORLD, side, w.rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 3, &both);
  exchange(both, w.rank / 2, w.rank, side ? w.rank - 1 : w.rank + 1);
  MPI_Comm_free(&half);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -w.rank, &reversed);
  int rank;
  MPI_Comm_rank(reversed, &rank);
  CHECK_EQ(rank, w.size - 1 - w.rank);
  exchange(reversed, w.size - 1 - rank, w.rank, w.size - 1 - w.rank);
  return finish();
}
