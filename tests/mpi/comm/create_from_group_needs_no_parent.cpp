// ranks: 1 2 3 4
// timeout: 60
// threads: 2
// MPI_Comm_create_from_group and MPI_Intercomm_create_from_groups work from groups alone; two threads with different string
// tags do so at once, and the results do not mix. A process that makes two communicators of different groups by one string, in
// turn, is not misled by a member of the second group that comes first.
#include "../support.hpp"

using namespace test;

int main() {
  const World w = init_threads();
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  const int to = (w.rank + 1) % w.size, from = (w.rank + w.size - 1) % w.size;
  auto work = [&](const char* tag, int number) {
    for (int round = 0; round < 20; ++round) {
      MPI_Comm comm;
      CHECK_OK(MPI_Comm_create_from_group(world, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
      int out = number * 1000 + round, in = -1;
      MPI_Sendrecv(&out, 1, MPI_INT, to, 0, &in, 1, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE);
      CHECK_EQ(in, out);
      MPI_Errhandler handler;
      MPI_Comm_get_errhandler(comm, &handler);
      CHECK(handler == MPI_ERRORS_RETURN);
      MPI_Comm_free(&comm);
    }
  };
  std::thread other(work, "org.example/second", 2);
  work("org.example/first", 1);
  other.join();

  if (w.size % 2 == 0) {
    // Odd ranks against even ones.
    std::vector<int> mine, theirs;
    for (int r = 0; r < w.size; ++r) (r % 2 == w.rank % 2 ? mine : theirs).push_back(r);
    MPI_Group local, remote;
    MPI_Group_incl(world, static_cast<int>(mine.size()), mine.data(), &local);
    MPI_Group_incl(world, static_cast<int>(theirs.size()), theirs.data(), &remote);
    const int here = static_cast<int>(mine.size()) - 1, there = static_cast<int>(theirs.size()) - 1;
    MPI_Comm inter;
    CHECK_OK(MPI_Intercomm_create_from_groups(local, here, remote, there, "org.example/inter", MPI_INFO_NULL,
                                              MPI_ERRORS_RETURN, &inter));
    int rank = -1, in = -1;
    MPI_Comm_rank(inter, &rank);
    CHECK_EQ(mine[static_cast<std::size_t>(rank)], w.rank);
    MPI_Sendrecv(&w.rank, 1, MPI_INT, rank, 0, &in, 1, MPI_INT, rank, 0, inter, MPI_STATUS_IGNORE);
    CHECK_EQ(in, theirs[static_cast<std::size_t>(rank)]);
    MPI_Comm_free(&inter);
    MPI_Group_free(&local);
    MPI_Group_free(&remote);
  }
  if (w.size > 2 && w.rank < 3) {
    const auto make = [&](int first) {
      const int members[] = {2, first};
      MPI_Group pair;
      MPI_Comm comm;
      MPI_Group_incl(world, 2, members, &pair);
      CHECK_OK(MPI_Comm_create_from_group(pair, "org.example/pairs", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
      MPI_Group_free(&pair);
      return comm;
    };
    MPI_Comm one = MPI_COMM_NULL, zero = MPI_COMM_NULL;
    if (w.rank == 0) {  // what it has to say to rank 2 comes, nearly always, before what rank 1 has to say
      MPI_Send(nullptr, 0, MPI_INT, 1, 5, MPI_COMM_WORLD);
      zero = make(0);
    } else if (w.rank == 1) {
      MPI_Recv(nullptr, 0, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      one = make(1);
    } else {
      one = make(1);
      zero = make(0);
    }
    for (MPI_Comm* comm : {&one, &zero}) {
      if (*comm == MPI_COMM_NULL) continue;
      int in = w.rank, all = -1;
      MPI_Allreduce(&in, &all, 1, MPI_INT, MPI_SUM, *comm);
      CHECK_EQ(all, comm == &one ? 3 : 2);  // 1 + 2, 0 + 2
      MPI_Comm_free(comm);
    }
  }
  MPI_Group_free(&world);
  return finish();
}
