// ranks: 1 2
// timeout: 60
// The world and a session live beside each other; after MPI_Finalize the session still communicates; after everything is closed
// MPI can be started again with a new session.
#include "../support.hpp"

using namespace test;

namespace {

void use(MPI_Session session, const char* tag) {
  MPI_Group group;
  MPI_Comm comm;
  CHECK_OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
  CHECK_OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  int rank = -1, size = -1, sum = -1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  CHECK_OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK_EQ(sum, size * (size - 1) / 2);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
}

}  // namespace

int main() {
  MPI_Session session;
  CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
  use(session, "before");
  MPI_Init(nullptr, nullptr);
  MPI_Barrier(MPI_COMM_WORLD);
  use(session, "beside");
  MPI_Finalize();
  use(session, "after");
  CHECK_OK(MPI_Session_finalize(&session));
  if (library_is_mpich()) return 0;
  for (int round = 0; round < 3; ++round) {
    CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    use(session, "again");
    CHECK_OK(MPI_Session_finalize(&session));
  }
  return 0;
}
