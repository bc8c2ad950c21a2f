// ranks: 2 3 5
// timeout: 120
// Thousands of communicators, some kept, some freed at once while other ranks are late: what a collective keeps per
// communicator is neither lost nor mixed up, also when there are more of them than there is fast memory for.
#include "forms.hpp"

using namespace test;

namespace {

void use(MPI_Comm comm, int times, int seed) {
  const int n = size_of(comm), rank = rank_of(comm);
  for (int i = 0; i < times; ++i) {
    int mine = seed * 31 + i + rank, sum = -1;
    CHECK_OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(sum, n * (seed * 31 + i) + n * (n - 1) / 2);
    std::vector<int> all(static_cast<std::size_t>(n), -1);
    CHECK_OK(MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, comm));
    for (int r = 0; r < n; ++r) CHECK_EQ(all[static_cast<std::size_t>(r)], seed * 31 + i + r);
    std::vector<int> to(static_cast<std::size_t>(n)), from(to.size(), -1);
    for (int r = 0; r < n; ++r) to[static_cast<std::size_t>(r)] = mine * 100 + r;
    CHECK_OK(MPI_Alltoall(to.data(), 1, MPI_INT, from.data(), 1, MPI_INT, comm));
    for (int r = 0; r < n; ++r) CHECK_EQ(from[static_cast<std::size_t>(r)], (seed * 31 + i + r) * 100 + rank);
    CHECK_OK(MPI_Barrier(comm));
  }
}

}  // namespace

int main() {
  const World w = init();
  volatile double burn = 0;
  for (int i = 0; i < 1500; ++i) {
    MPI_Comm comm;
    CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    use(comm, i % 4 + 1, i);
    // Somebody is still in the last barrier while the others free the communicator and make the next.
    if (i % w.size == w.rank)
      for (int k = 0; k < 3000; ++k) burn = burn + 1e-9 * k;
    CHECK_OK(MPI_Comm_free(&comm));
  }
  std::vector<MPI_Comm> kept(600);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &kept[i]));
    use(kept[i], 2, static_cast<int>(i));
  }
  for (std::size_t i = 0; i < kept.size(); ++i) use(kept[(i * 7) % kept.size()], 1, static_cast<int>(i));
  for (MPI_Comm& comm : kept) CHECK_OK(MPI_Comm_free(&comm));
  MPI_Comm half;
  CHECK_OK(MPI_Comm_split(MPI_COMM_WORLD, w.rank % 2, 0, &half));
  use(half, 20, 5);
  CHECK_OK(MPI_Comm_free(&half));
  return finish();
}
