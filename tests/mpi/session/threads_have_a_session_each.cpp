// ranks: 2
// timeout: 60
// Two sessions that each promise one thread at a time, and each has a thread of its own: the threads are in the library together.
#include "../support.hpp"

using namespace test;

namespace {

void communicate(const char* level, const char* tag) {
  MPI_Session session;
  MPI_Info info;
  MPI_Group group;
  MPI_Comm comm;
  CHECK_OK(MPI_Info_create(&info));
  CHECK_OK(MPI_Info_set(info, "thread_level", level));
  CHECK_OK(MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session));
  CHECK_OK(MPI_Info_free(&info));
  CHECK_OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
  CHECK_OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
  CHECK_OK(MPI_Group_free(&group));
  int rank = -1;
  MPI_Comm_rank(comm, &rank);
  for (int i = 0; i < 20000; ++i) {
    MPI_Request requests[2];
    int in = -1;
    const int out = i * 2 + rank;
    CHECK_OK(MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, i % 7, comm, &requests[0]));
    CHECK_OK(MPI_Isend(&out, 1, MPI_INT, 1 - rank, i % 7, comm, &requests[1]));
    CHECK_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK_EQ(in, i * 2 + 1 - rank);
  }
  CHECK_OK(MPI_Comm_free(&comm));
  CHECK_OK(MPI_Session_finalize(&session));
}

}  // namespace

int main() {
  std::thread other(communicate, "MPI_THREAD_FUNNELED", "funneled");
  communicate("MPI_THREAD_SERIALIZED", "serialized");
  other.join();
  return 0;
}
