// ranks: 1 2 4
// timeout: 60
// Windows on duplicates, halves, reversed orders and MPI_COMM_SELF, on a communicator of a session and on one that is freed before the
// window is used: ranks are those of the communicator, and windows that share memory or ranks do not mix.
#include "windows.hpp"

using namespace test;

namespace {

void check(MPI_Comm comm, Flavour flavour, Epoch epoch) {
  const int rank = rank_in(comm), n = size_in(comm);
  Memory memory(flavour, 512, comm, 8);
  std::vector<long> values(static_cast<std::size_t>(n));
  in_epoch(epoch, memory.win, comm, [&] {
    for (int r = 0; r < n; ++r) {
      long& value = values[static_cast<std::size_t>(r)];
      value = 100 * rank + r;
      CHECK_OK(MPI_Put(&value, 1, MPI_LONG, r, memory.at(r, 8u * static_cast<unsigned>(rank)), 1, MPI_LONG, memory.win));
    }
  });
  for (int r = 0; r < n; ++r) CHECK_EQ(memory.as<long>()[r], 100 * r + rank);
  MPI_Barrier(comm);
  memory.free();
}

}  // namespace

int main() {
  const World w = init();
  std::vector<MPI_Comm> comms(4);
  CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]));
  CHECK_OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -w.rank, &comms[1]));
  CHECK_OK(MPI_Comm_split(MPI_COMM_WORLD, w.rank % 2, w.rank, &comms[2]));
  CHECK_OK(MPI_Comm_split(MPI_COMM_WORLD, w.rank / 2, -w.rank, &comms[3]));
  comms.push_back(MPI_COMM_SELF);
  for (const MPI_Comm comm : comms)
    for (const Flavour flavour : flavours_on(comm))
      for (const Epoch epoch : all_epochs) check(comm, flavour, epoch);

  // Several windows on several communicators over the same memory: all ranks add to rank 0 of each.
  std::vector<long> memory(8, 0);
  std::vector<MPI_Win> wins(comms.size());
  for (std::size_t i = 0; i < comms.size(); ++i) CHECK_OK(MPI_Win_create(memory.data(), 64, 8, MPI_INFO_NULL, comms[i], &wins[i]));
  const long one = 1;
  for (std::size_t i = 0; i < comms.size(); ++i) {
    CHECK_OK(MPI_Win_lock_all(0, wins[i]));
    CHECK_OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, static_cast<MPI_Aint>(i), 1, MPI_LONG, MPI_SUM, wins[i]));
  }
  for (auto win = wins.rbegin(); win != wins.rend(); ++win) CHECK_OK(MPI_Win_unlock_all(*win));
  MPI_Barrier(MPI_COMM_WORLD);
  for (std::size_t i = 0; i < comms.size(); ++i) CHECK_EQ(memory[i], rank_in(comms[i]) == 0 ? size_in(comms[i]) : 0);
  MPI_Barrier(MPI_COMM_WORLD);

  // The communicators go first; the windows work on.
  comms.pop_back();
  for (MPI_Comm& comm : comms) CHECK_OK(MPI_Comm_free(&comm));
  for (std::size_t i = 0; i < wins.size(); ++i) {
    CHECK_OK(MPI_Win_fence(0, wins[i]));
    CHECK_OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, static_cast<MPI_Aint>(i), 1, MPI_LONG, MPI_SUM, wins[i]));
    CHECK_OK(MPI_Win_fence(0, wins[i]));
    CHECK_OK(MPI_Win_free(&wins[i]));
  }
  CHECK_EQ(memory[4], 2);
  if (w.rank == 0) CHECK_EQ(memory[0], 2 * w.size);

  // A session's communicator.
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
  CHECK_OK(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
  CHECK_OK(MPI_Comm_create_from_group(group, ("windows of " + std::to_string(w.rank)).c_str(), MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
  CHECK_OK(MPI_Group_free(&group));
  for (const Flavour flavour : flavours_on(comm)) check(comm, flavour, Epoch::lock_all);
  CHECK_OK(MPI_Comm_free(&comm));
  CHECK_OK(MPI_Session_finalize(&session));
  return finish();
}
