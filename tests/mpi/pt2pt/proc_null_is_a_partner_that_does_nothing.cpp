// ranks: 1 2
// timeout: 30
// Every send and receive call with MPI_PROC_NULL succeeds at once, leaves buffers alone, and gives the status the
// standard fixes: source MPI_PROC_NULL, tag MPI_ANY_TAG, count 0. Null buffers are fine there.
#include "../support.hpp"

using namespace test;

namespace {

void check_status(const MPI_Status& status) {
  CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
  CHECK_EQ(status.MPI_TAG, MPI_ANY_TAG);
  CHECK_EQ(count_of(status), 0);
  int cancelled = -1;
  MPI_Test_cancelled(&status, &cancelled);
  CHECK_EQ(cancelled, 0);
}

}  // namespace

int main() {
  const World w = init();
  int value = 42, flag = 0;
  constexpr int nobody = MPI_PROC_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status = dirty_status();
  MPI_Comm comm = MPI_COMM_WORLD;

  CHECK_OK(MPI_Send(&value, 1, MPI_INT, nobody, 1, comm));
  CHECK_OK(MPI_Send(nullptr, 0, MPI_INT, nobody, 1, comm));
  CHECK_OK(MPI_Bsend(&value, 1, MPI_INT, nobody, 1, comm));  // needs no buffer: nothing is sent
  CHECK_OK(MPI_Ssend(&value, 1, MPI_INT, nobody, 1, comm));
  CHECK_OK(MPI_Rsend(&value, 1, MPI_INT, nobody, 1, comm));
  CHECK_OK(MPI_Send_c(&value, MPI_Count{1}, MPI_INT, nobody, 1, comm));

  using Isend = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  for (const Isend isend : {MPI_Isend, MPI_Ibsend, MPI_Issend, MPI_Irsend}) {
    CHECK_OK(isend(&value, 1, MPI_INT, nobody, 1, comm, &request));
    MPI_Wait(&request, &status);
    CHECK(request == MPI_REQUEST_NULL);
  }
  for (const Isend send_init : {MPI_Send_init, MPI_Bsend_init, MPI_Ssend_init, MPI_Rsend_init}) {
    CHECK_OK(send_init(&value, 1, MPI_INT, nobody, 1, comm, &request));
    for (int round = 0; round < 3; ++round) {
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
  }

  CHECK_OK(MPI_Recv(&value, 1, MPI_INT, nobody, 1, comm, &status));
  check_status(status);
  status = dirty_status();
  CHECK_OK(MPI_Recv(nullptr, 0, MPI_INT, nobody, MPI_ANY_TAG, comm, &status));
  check_status(status);
  status = dirty_status();
  CHECK_OK(MPI_Irecv(&value, 1, MPI_INT, nobody, 1, comm, &request));
  CHECK_OK(MPI_Wait(&request, &status));
  check_status(status);
  status = dirty_status();
  CHECK_OK(MPI_Recv_init(&value, 1, MPI_INT, nobody, 1, comm, &request));
  for (int round = 0; round < 3; ++round) {
    status = dirty_status();
    MPI_Start(&request);
    CHECK(eventually([&] { return MPI_Test(&request, &flag, &status), flag != 0; }));
    if (!library_is_mpich()) check_status(status);  // MPICH 5.0.2 gives the empty status instead
  }
  MPI_Request_free(&request);

  status = dirty_status();
  CHECK_OK(MPI_Probe(nobody, 1, comm, &status));
  check_status(status);
  status = dirty_status();
  flag = 0;
  CHECK_OK(MPI_Iprobe(nobody, MPI_ANY_TAG, comm, &flag, &status));
  CHECK_EQ(flag, 1);
  check_status(status);

  status = dirty_status();
  CHECK_OK(MPI_Sendrecv(&value, 1, MPI_INT, nobody, 1, nullptr, 0, MPI_INT, nobody, 1, comm, &status));
  check_status(status);
  status = dirty_status();
  CHECK_OK(MPI_Sendrecv_replace(&value, 1, MPI_INT, nobody, 1, nobody, 1, comm, &status));
  check_status(status);

  // An any-source receive does not take what was sent to nobody, and a cancelled one to nobody may complete.
  CHECK_OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE));
  CHECK_EQ(flag, 0);
  CHECK_OK(MPI_Irecv(&value, 1, MPI_INT, nobody, 1, comm, &request));
  CHECK_OK(MPI_Cancel(&request));
  CHECK_OK(MPI_Wait(&request, &status));
  CHECK_EQ(value, 42);
  MPI_Barrier(comm);
  CHECK(w.size >= 1);
  return finish();
}
