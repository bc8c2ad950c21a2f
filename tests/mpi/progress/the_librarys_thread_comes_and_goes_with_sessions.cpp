// ranks: 1 2
// timeout: 120
// env: HEDDLE_PROGRESS=thread
// Two hundred sessions, one after the other: each has one thread that makes progress, which is gone after it, also where messages were under way
// when the session ended.
#include "away.hpp"

using namespace test;

int main() {
  constexpr int large = 200'000;
  std::vector<unsigned char> out(large), in(large);
  for (int round = 0; round < 200; ++round) {
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    if (!library_is_heddle()) return MPI_Session_finalize(&session);
    CHECK_EQ(servers(), 1);
    if (round % 10 == 0) {
      MPI_Group group;
      MPI_Comm comm;
      MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
      MPI_Comm_create_from_group(group, "comes and goes", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
      MPI_Group_free(&group);
      int rank, size;
      MPI_Comm_rank(comm, &rank);
      MPI_Comm_size(comm, &size);
      MPI_Request requests[2];
      fill(out.data(), large, static_cast<std::uint64_t>(round));
      MPI_Irecv(in.data(), large, MPI_BYTE, (rank + 1) % size, 0, comm, &requests[0]);
      MPI_Isend(out.data(), large, MPI_BYTE, (rank + 1) % size, 0, comm, &requests[1]);
      if (rank) std::this_thread::sleep_for(std::chrono::milliseconds(round / 10 % 4));
      MPI_Request_free(&requests[1]);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      CHECK_FILLED(in.data(), large, static_cast<std::uint64_t>(round));
      MPI_Comm_free(&comm);
    }
    MPI_Session_finalize(&session);
    CHECK_EQ(servers(), 0);
  }
  return 0;
}
