// ranks: 1 2 4 5
// timeout: 60
// MPI_Comm_create with one group for the even and one for the odd ranks; members outside any group get MPI_COMM_NULL; the
// parent's collectives still work after it, whoever was a member.
#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  MPI_Group world, mine;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int round = 0; round < 20; ++round) {
    // Backwards, so that the leader is not the lowest rank; the last rank is left out in odd rounds.
    std::vector<int> ranks;
    for (int r = w.size - 1; r >= 0; --r)
      if (r % 2 == w.rank % 2 && !(round % 2 && r == w.size - 1)) ranks.push_back(r);
    MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &mine);
    MPI_Comm comm;
    CHECK_OK(MPI_Comm_create(MPI_COMM_WORLD, mine, &comm));
    int rank = -1, size = -1, sum = -1, wanted = 0;
    MPI_Group_rank(mine, &rank);
    if (rank == MPI_UNDEFINED) {
      CHECK(comm == MPI_COMM_NULL);
    } else {
      MPI_Comm_rank(comm, &size);
      CHECK_EQ(size, rank);
      MPI_Comm_size(comm, &size);
      CHECK_EQ(size, static_cast<int>(ranks.size()));
      MPI_Allreduce(&w.rank, &sum, 1, MPI_INT, MPI_SUM, comm);
      for (int r : ranks) wanted += r;
      CHECK_EQ(sum, wanted);
      MPI_Comm_free(&comm);
    }
    MPI_Allreduce(&w.rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(sum, w.size * (w.size - 1) / 2);
    MPI_Group_free(&mine);
  }
  MPI_Comm none;
  CHECK_OK(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &none));
  CHECK(none == MPI_COMM_NULL);

  // A group with members from outside the communicator.
  if (w.size > 1) {
    MPI_Comm self;
    MPI_Comm_dup(MPI_COMM_SELF, &self);
    MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Comm_create(self, world, &none), MPI_ERR_GROUP);
    MPI_Comm_free(&self);
  }
  MPI_Group_free(&world);
  return finish();
}
