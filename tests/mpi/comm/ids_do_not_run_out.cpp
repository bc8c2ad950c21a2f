// ranks: 2
// timeout: 120
// Thousands of communicators live at once, and tens of thousands one after another; those that live keep their messages
// apart. (Other libraries stop at two thousand.)
#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  if (library_is_mpich()) return finish();  // 2048 context ids
  constexpr int alive = 5000;
  std::vector<MPI_Comm> comms(alive);
  for (MPI_Comm& comm : comms) CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  const int peer = 1 - w.rank;
  for (int i = 0; i < alive; i += 7) {
    int out = i, in = -1;
    MPI_Sendrecv(&out, 1, MPI_INT, peer, 0, &in, 1, MPI_INT, peer, 0, comms[static_cast<std::size_t>(i)], MPI_STATUS_IGNORE);
    CHECK_EQ(in, i);
  }
  for (int i = 0; i < 20000; ++i) {
    MPI_Comm one;
    CHECK_OK(MPI_Comm_dup(MPI_COMM_SELF, &one));
    MPI_Comm_free(&one);
  }
  for (int i = 0; i < 3000; ++i) {
    MPI_Comm one;
    CHECK_OK(MPI_Comm_split(comms[0], 0, w.rank, &one));
    MPI_Comm_free(&one);
  }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  return finish();
}
