// ranks: 1 2 4 5
// timeout: 60
// Every process gets the group of its color, ordered by key and, among equal keys, by old rank; MPI_UNDEFINED gets
// MPI_COMM_NULL; messages reach the right process. Colors and keys are random, every rank predicts all.
#include <algorithm>

#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  for (std::uint64_t round = 0; round < 60; ++round) {
    Random random(round);
    std::vector<int> color(static_cast<std::size_t>(w.size)), key(color.size());
    for (std::size_t r = 0; r < color.size(); ++r) {
      color[r] = random.between(0, 3) == 3 ? MPI_UNDEFINED : random.between(0, 1) * 1000000007;
      key[r] = round % 3 == 0 ? 0 : random.between(-2, 2);
    }
    const auto me = static_cast<std::size_t>(w.rank);
    std::vector<int> wanted;
    for (int r = 0; r < w.size; ++r)
      if (color[static_cast<std::size_t>(r)] == color[me]) wanted.push_back(r);
    std::stable_sort(wanted.begin(), wanted.end(),
                     [&](int a, int b) { return key[static_cast<std::size_t>(a)] < key[static_cast<std::size_t>(b)]; });

    MPI_Comm comm = MPI_COMM_WORLD;
    CHECK_OK(MPI_Comm_split(MPI_COMM_WORLD, color[me], key[me], &comm));
    if (color[me] == MPI_UNDEFINED) {
      CHECK(comm == MPI_COMM_NULL);
      continue;
    }
    int rank = -1, size = -1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    CHECK_EQ(size, static_cast<int>(wanted.size()));
    CHECK_EQ(wanted[static_cast<std::size_t>(rank)], w.rank);

    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(comm, &group);
    std::vector<int> ranks(wanted.size()), old(wanted.size());
    for (int r = 0; r < size; ++r) ranks[static_cast<std::size_t>(r)] = r;
    MPI_Group_translate_ranks(group, size, ranks.data(), world, old.data());
    CHECK(old == wanted);
    MPI_Group_free(&world);
    MPI_Group_free(&group);

    // Around the ring: the world rank of the left neighbour arrives.
    int got = -1;
    MPI_Sendrecv(&w.rank, 1, MPI_INT, (rank + 1) % size, 5, &got, 1, MPI_INT, (rank + size - 1) % size, 5, comm,
                 MPI_STATUS_IGNORE);
    CHECK_EQ(got, wanted[static_cast<std::size_t>((rank + size - 1) % size)]);
    CHECK_OK(MPI_Comm_free(&comm));
    CHECK(comm == MPI_COMM_NULL);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm unused;
  if (w.size == 1 && !library_is_mpich()) CHECK_CLASS(MPI_Comm_split(MPI_COMM_WORLD, -3, 0, &unused), MPI_ERR_ARG);
  return finish();
}
