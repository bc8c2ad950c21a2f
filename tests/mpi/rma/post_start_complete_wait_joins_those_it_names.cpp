// ranks: 1 2 3 4
// timeout: 60
// MPI_Win_post, start, complete, wait and test between groups of any shape: neighbours, one and many in either role, oneself, nobody.
// An epoch concerns the ranks that are named and no others; epochs of different groups follow each other without a barrier, and a rank
// that is late holds up only its partners. MPI_Win_test opens nothing and closes what is complete.
#include "windows.hpp"

using namespace test;

namespace {

MPI_Group group_of(MPI_Win win, std::vector<int> ranks) {
  MPI_Group all, some;
  CHECK_OK(MPI_Win_get_group(win, &all));
  CHECK_OK(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some));
  MPI_Group_free(&all);
  return some;
}

// Waits as MPI_Win_wait does, or by MPI_Win_test.
void wait_for(MPI_Win win, bool by_test) {
  if (!by_test) {
    CHECK_OK(MPI_Win_wait(win));
    return;
  }
  CHECK(eventually([&] {
    int flag = 0;
    CHECK_OK(MPI_Win_test(win, &flag));
    return flag;
  }));
}

}  // namespace

int main() {
  const World w = init();
  const int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size;
  for (const Flavour flavour : flavours_on(MPI_COMM_WORLD)) {
    Memory memory(flavour, 8192, MPI_COMM_WORLD, sizeof(int));
    const MPI_Win win = memory.win;
    int* const own = memory.as<int>();

    // Neighbours, a hundred epochs without a barrier: a put of the next round must not come into this one.
    MPI_Group to = group_of(win, {next}), from = group_of(win, {before});
    for (int round = 0; round < 100; ++round) {
      CHECK_OK(MPI_Win_post(from, round % 5 == 1 ? MPI_MODE_NOSTORE : 0, win));
      CHECK_OK(MPI_Win_start(to, 0, win));
      const int values[2] = {round, w.rank};
      CHECK_OK(MPI_Put(values, 2, MPI_INT, next, memory.at(next, 16), 2, MPI_INT, win));
      int got = -1;
      CHECK_OK(MPI_Get(&got, 1, MPI_INT, next, memory.at(next, 40), 1, MPI_INT, win));
      CHECK_OK(MPI_Win_complete(win));
      CHECK_EQ(got, round ? 7 * (round - 1) + next : 0);
      wait_for(win, round % 3 == 0);
      CHECK(own[4] == round && own[5] == before);
      own[10] = 7 * round + w.rank;  // nobody has access now
    }

    // MPI_MODE_NOCHECK: the post has come before, as a message says.
    for (int round = 0; round < 10; ++round) {
      int token = 0, theirs = 0;
      CHECK_OK(MPI_Win_post(from, MPI_MODE_NOCHECK, win));
      CHECK_OK(MPI_Sendrecv(&token, 1, MPI_INT, before, 1, &theirs, 1, MPI_INT, next, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK_OK(MPI_Win_start(to, MPI_MODE_NOCHECK, win));
      CHECK_OK(MPI_Put(&round, 1, MPI_INT, next, memory.at(next, 0), 1, MPI_INT, win));
      CHECK_OK(MPI_Win_complete(win));
      CHECK_OK(MPI_Win_wait(win));
      CHECK_EQ(own[0], round);
    }
    MPI_Group_free(&to);
    MPI_Group_free(&from);

    // One target for all others, each in turn; then one origin for all others.
    for (int centre = 0; centre < w.size; ++centre) {
      std::vector<int> others;
      for (int r = 0; r < w.size; ++r)
        if (r != centre) others.push_back(r);
      MPI_Group rest = group_of(win, others), middle = group_of(win, {centre});
      own[100] = 0;
      const int one = 1;
      if (w.rank == centre) {
        CHECK_OK(MPI_Win_post(rest, 0, win));
        wait_for(win, centre % 2);
        CHECK_EQ(own[100], w.size - 1);
        CHECK_OK(MPI_Win_start(rest, 0, win));
        for (const int r : others) CHECK_OK(MPI_Put(&centre, 1, MPI_INT, r, memory.at(r, 444), 1, MPI_INT, win));
        CHECK_OK(MPI_Win_complete(win));
      } else {
        CHECK_OK(MPI_Win_start(middle, 0, win));
        CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT, centre, memory.at(centre, 400), 1, MPI_INT, MPI_SUM, win));
        CHECK_OK(MPI_Win_complete(win));
        CHECK_OK(MPI_Win_post(middle, 0, win));
        wait_for(win, w.rank % 2);
        CHECK_EQ(own[111], centre);
      }
      MPI_Group_free(&rest);
      MPI_Group_free(&middle);
    }

    // Oneself, and nobody.
    MPI_Group self = group_of(win, {w.rank});
    CHECK_OK(MPI_Win_post(self, 0, win));
    CHECK_OK(MPI_Win_start(self, 0, win));
    CHECK_OK(MPI_Put(&w.rank, 1, MPI_INT, w.rank, memory.at(w.rank, 800), 1, MPI_INT, win));
    CHECK_OK(MPI_Win_complete(win));
    CHECK_OK(MPI_Win_wait(win));
    CHECK_EQ(own[200], w.rank);
    MPI_Group_free(&self);
    CHECK_OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
    CHECK_OK(MPI_Win_complete(win));
    CHECK_OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
    CHECK_OK(MPI_Win_wait(win));
    CHECK_OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
    wait_for(win, true);
    MPI_Barrier(MPI_COMM_WORLD);

    // MPI_Win_test says no while an origin has not completed, which it does only once it is told to.
    if (w.size > 1 && w.rank < 2) {
      MPI_Group other = group_of(win, {1 - w.rank});
      int token = 5;
      if (w.rank == 0) {
        CHECK_OK(MPI_Win_post(other, 0, win));
        for (int i = 0; i < 100; ++i) {
          int flag = 1;
          CHECK_OK(MPI_Win_test(win, &flag));
          CHECK(!flag);
        }
        CHECK_OK(MPI_Send(&token, 1, MPI_INT, 1, 2, MPI_COMM_WORLD));
        wait_for(win, true);
        CHECK_EQ(own[300], 5);
      } else {
        CHECK_OK(MPI_Win_start(other, 0, win));
        CHECK_OK(MPI_Recv(&token, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_OK(MPI_Put(&token, 1, MPI_INT, 0, memory.at(0, 1200), 1, MPI_INT, win));
        CHECK_OK(MPI_Win_complete(win));
      }
      MPI_Group_free(&other);
    }

    // Rank 0 is late; the others have epochs among themselves in the meantime.
    if (w.size >= 3) {
      if (w.rank == 0) {
        int done = 0;
        CHECK_OK(MPI_Recv(&done, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      } else if (w.rank <= 2) {
        MPI_Group other = group_of(win, {3 - w.rank});
        for (int round = 0; round < 20; ++round) {
          CHECK_OK(MPI_Win_post(other, 0, win));
          CHECK_OK(MPI_Win_start(other, 0, win));
          CHECK_OK(MPI_Put(&round, 1, MPI_INT, 3 - w.rank, memory.at(3 - w.rank, 1600), 1, MPI_INT, win));
          CHECK_OK(MPI_Win_complete(win));
          CHECK_OK(MPI_Win_wait(win));
          CHECK_EQ(own[400], round);
        }
        MPI_Group_free(&other);
        if (w.rank == 1) CHECK_OK(MPI_Send(&next, 1, MPI_INT, 0, 3, MPI_COMM_WORLD));
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    memory.free();
  }
  return finish();
}
