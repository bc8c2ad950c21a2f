// ranks: 2 3 4 5
// timeout: 60
// An intercommunicator of the first k and the other ranks: sizes, groups, messages to remote ranks; its duplicates (blocking
// and not), splits and creations; both orders of merging. Every split point k is tried.
#include "../support.hpp"

using namespace test;

namespace {

thread_local World w;

struct Side {
  bool first;
  int rank, size, remote;
};

/// Everybody sends its world rank to one remote rank and gets one from each that chose it.
void talk(MPI_Comm inter, const std::vector<int>& mine, const std::vector<int>& theirs) {
  int rank = -1, size = -1, remote = -1, flag = 0;
  MPI_Comm_test_inter(inter, &flag);
  CHECK(flag);
  MPI_Comm_rank(inter, &rank);
  MPI_Comm_size(inter, &size);
  MPI_Comm_remote_size(inter, &remote);
  CHECK_EQ(size, static_cast<int>(mine.size()));
  CHECK_EQ(remote, static_cast<int>(theirs.size()));
  CHECK_EQ(mine[static_cast<std::size_t>(rank)], w.rank);
  std::vector<int> got(theirs.size(), -1);
  std::vector<MPI_Request> requests;
  for (int r = 0; r < remote; ++r) {
    requests.emplace_back();
    MPI_Irecv(&got[static_cast<std::size_t>(r)], 1, MPI_INT, r, 4, inter, &requests.back());
    requests.emplace_back();
    MPI_Isend(&w.rank, 1, MPI_INT, r, 4, inter, &requests.back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  CHECK(got == theirs);

  MPI_Group world, group;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Comm_remote_group(inter, &group);
  std::vector<int> ranks(theirs.size()), old(theirs.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) ranks[r] = static_cast<int>(r);
  MPI_Group_translate_ranks(group, remote, ranks.data(), world, old.data());
  CHECK(old == theirs);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
}

void check_merge(MPI_Comm inter, bool high, const std::vector<int>& wanted) {
  MPI_Comm merged;
  CHECK_OK(MPI_Intercomm_merge(inter, high, &merged));
  int rank = -1, size = -1, flag = 1;
  MPI_Comm_test_inter(merged, &flag);
  CHECK(!flag);
  MPI_Comm_rank(merged, &rank);
  MPI_Comm_size(merged, &size);
  CHECK_EQ(size, static_cast<int>(wanted.size()));
  CHECK_EQ(wanted[static_cast<std::size_t>(rank)], w.rank);
  int sum = -1;
  MPI_Allreduce(&w.rank, &sum, 1, MPI_INT, MPI_SUM, merged);
  CHECK_EQ(sum, w.size * (w.size - 1) / 2);
  MPI_Comm_free(&merged);
}

void try_at(int k) {
  const bool first = w.rank < k;
  std::vector<int> low, high, both;
  for (int r = 0; r < w.size; ++r) {
    (r < k ? low : high).push_back(r);
    both.push_back(r);
  }
  const std::vector<int>&mine = first ? low : high, &theirs = first ? high : low;
  MPI_Comm local, inter, copy, later;
  MPI_Comm_split(MPI_COMM_WORLD, first, 0, &local);
  // The leaders are the last of the first and the first of the last.
  CHECK_OK(MPI_Intercomm_create(local, first ? k - 1 : 0, MPI_COMM_WORLD, first ? k : k - 1, 31, &inter));
  talk(inter, mine, theirs);

  CHECK_OK(MPI_Comm_dup(inter, &copy));
  MPI_Request request;
  CHECK_OK(MPI_Comm_idup(copy, &later, &request));
  CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  MPI_Comm_free(&inter);
  int result = -1;
  MPI_Comm_compare(copy, later, &result);
  CHECK_EQ(result, MPI_CONGRUENT);
  MPI_Comm_compare(copy, local, &result);
  CHECK_EQ(result, MPI_UNEQUAL);
  talk(later, mine, theirs);
  talk(copy, mine, theirs);

  std::vector<int> low_first = both, high_first = high;
  high_first.insert(high_first.end(), low.begin(), low.end());
  check_merge(copy, !first, low_first);
  check_merge(later, first, high_first);

  // Odd and even world ranks apart; a color that one side lacks gives nothing.
  MPI_Comm part;
  CHECK_OK(MPI_Comm_split(copy, w.rank % 2, -w.rank, &part));
  std::vector<int> my_part, their_part;
  for (std::size_t i = mine.size(); i-- > 0;)
    if (mine[i] % 2 == w.rank % 2) my_part.push_back(mine[i]);
  for (std::size_t i = theirs.size(); i-- > 0;)
    if (theirs[i] % 2 == w.rank % 2) their_part.push_back(theirs[i]);
  if (their_part.empty()) {
    CHECK(part == MPI_COMM_NULL);
  } else {
    talk(part, my_part, their_part);
    MPI_Comm_free(&part);
  }

  // The last of each side.
  MPI_Group group, last;
  MPI_Comm_group(copy, &group);
  const int ranks[] = {static_cast<int>(mine.size()) - 1};
  MPI_Group_incl(group, 1, ranks, &last);
  CHECK_OK(MPI_Comm_create(copy, last, &part));
  if (w.rank != mine.back()) {
    CHECK(part == MPI_COMM_NULL);
  } else {
    talk(part, {mine.back()}, {theirs.back()});
    MPI_Comm_free(&part);
  }
  // Nobody on one side: nothing for anybody.
  CHECK_OK(MPI_Comm_create(copy, first ? MPI_GROUP_EMPTY : group, &part));
  CHECK(part == MPI_COMM_NULL);
  // The members of a local group cannot reach each other there: that is said, and nobody waits.
  if (library_is_heddle()) {
    MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Comm_create_group(copy, group, 3, &part), MPI_ERR_COMM);
  }
  MPI_Group_free(&last);
  MPI_Group_free(&group);
  MPI_Comm_free(&copy);
  CHECK_OK(MPI_Comm_disconnect(&later));
  CHECK(later == MPI_COMM_NULL);
  MPI_Comm_free(&local);
}

}  // namespace

int main() {
  w = init();
  for (int k = 1; k < w.size; ++k) try_at(k);
  return finish();
}
