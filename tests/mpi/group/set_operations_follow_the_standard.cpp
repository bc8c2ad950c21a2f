// ranks: 1 4
// timeout: 30
// Groups of MPI_COMM_WORLD: the set operations, ranges, translation and comparison, what is empty is MPI_GROUP_EMPTY, wrong
// arguments are refused by class, and a group outlives its communicator.
#include "../support.hpp"

using namespace test;

namespace {

std::vector<int> world_ranks(MPI_Group group, MPI_Group world) {
  int size = -1;
  MPI_Group_size(group, &size);
  std::vector<int> ranks(static_cast<std::size_t>(size)), out(ranks.size());
  for (int r = 0; r < size; ++r) ranks[static_cast<std::size_t>(r)] = r;
  CHECK_OK(MPI_Group_translate_ranks(group, size, ranks.data(), world, out.data()));
  return out;
}

using List = std::vector<int>;

}  // namespace

int main() {
  const World w = init();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Group world, a, b, c;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int rank = -1, size = -1, result = -1;
  MPI_Group_rank(world, &rank);
  MPI_Group_size(world, &size);
  CHECK_EQ(rank, w.rank);
  CHECK_EQ(size, w.size);
  if (w.size == 4) {
    const int up[] = {3, 1}, down[] = {1, 2};
    CHECK_OK(MPI_Group_incl(world, 2, up, &a));
    CHECK_OK(MPI_Group_incl(world, 2, down, &b));
    CHECK(world_ranks(a, world) == (List{3, 1}));
    CHECK_OK(MPI_Group_union(a, b, &c));
    CHECK(world_ranks(c, world) == (List{3, 1, 2}));
    MPI_Group_rank(c, &rank);
    CHECK_EQ(rank, w.rank == 0 ? MPI_UNDEFINED : 3 - (w.rank == 3 ? 3 : w.rank == 1 ? 2 : 1));
    MPI_Group_free(&c);
    CHECK_OK(MPI_Group_intersection(a, b, &c));
    CHECK(world_ranks(c, world) == (List{1}));
    MPI_Group_free(&c);
    CHECK_OK(MPI_Group_difference(a, b, &c));
    CHECK(world_ranks(c, world) == (List{3}));
    MPI_Group_free(&c);
    CHECK_OK(MPI_Group_excl(world, 2, up, &c));
    CHECK(world_ranks(c, world) == (List{0, 2}));
    MPI_Group_free(&c);
    int ranges[][3] = {{3, 2, -1}, {0, 1, 2}};
    CHECK_OK(MPI_Group_range_incl(world, 2, ranges, &c));
    CHECK(world_ranks(c, world) == (List{3, 2, 0}));
    MPI_Group_compare(c, world, &result);
    CHECK_EQ(result, MPI_UNEQUAL);
    MPI_Group_free(&c);
    CHECK_OK(MPI_Group_range_excl(world, 2, ranges, &c));
    CHECK(world_ranks(c, world) == (List{1}));
    MPI_Group_free(&c);
    int all[][3] = {{3, 0, -1}};
    CHECK_OK(MPI_Group_range_incl(world, 1, all, &c));
    MPI_Group_compare(c, world, &result);
    CHECK_EQ(result, MPI_SIMILAR);
    MPI_Group_free(&c);
    CHECK(world_ranks(world, b) == (List{MPI_UNDEFINED, 0, 1, MPI_UNDEFINED}));
    MPI_Group_free(&a);
    MPI_Group_free(&b);
  }
  MPI_Group_compare(world, world, &result);
  CHECK_EQ(result, MPI_IDENT);

  CHECK_OK(MPI_Group_incl(world, 0, nullptr, &a));
  CHECK(a == MPI_GROUP_EMPTY);
  CHECK_OK(MPI_Group_difference(world, world, &b));
  CHECK(b == MPI_GROUP_EMPTY);
  MPI_Group_free(&b);
  CHECK(b == MPI_GROUP_NULL);
  MPI_Group_free(&a);

  const int beyond[] = {w.size}, twice[] = {0, 0};
  int none[][3] = {{0, 0, 0}};
  CHECK_CLASS(MPI_Group_incl(world, 1, beyond, &a), MPI_ERR_RANK);
  if (!library_is_mpich()) CHECK_CLASS(MPI_Group_incl(world, 2, twice, &a), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Group_range_incl(world, 1, none, &a), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Group_size(MPI_GROUP_NULL, &size), MPI_ERR_GROUP);
  if (library_is_heddle()) {  // others end there
    CHECK_CLASS(MPI_Group_incl(world, 1, nullptr, &a), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Group_range_excl(world, 1, nullptr, &a), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Group_translate_ranks(world, 1, nullptr, world, &size), MPI_ERR_ARG);
    CHECK_OK(MPI_Group_incl(world, 0, nullptr, &a));
    CHECK(a == MPI_GROUP_EMPTY);
  }
  if (!library_is_mpich()) {
    a = world;
    MPI_Comm_group(MPI_COMM_WORLD, &b);
    MPI_Group stale = b;
    CHECK_OK(MPI_Group_free(&b));
    CHECK_CLASS(MPI_Group_free(&stale), MPI_ERR_GROUP);  // twice: seen, and the communicator keeps its own
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK_EQ(rank, w.rank);
  }

  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_group(comm, &a);
  MPI_Comm_free(&comm);
  MPI_Group_compare(a, world, &result);
  CHECK_EQ(result, MPI_IDENT);
  MPI_Group_free(&a);
  MPI_Group_free(&world);
  return finish();
}
