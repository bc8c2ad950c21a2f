// ranks: 1
// timeout: 30
// Completion and request calls given what they cannot take: starting an ordinary, an active or a null request, freeing
// or cancelling a null one, negative counts, null arrays, messages and handles of the wrong kind.
#include "../support.hpp"

using namespace test;

int main() {
  init();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  int flag = 0, index = 0, some = 0, value = 0;

  CHECK_CLASS(MPI_Start(&request), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Request_free(&request), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Cancel(&request), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Startall(1, &request), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Grequest_complete(request), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Waitall(-1, &request, &status), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Testsome(-1, &request, &some, &index, &status), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Testall(-2, &request, &flag, &status), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Startall(-1, &request), MPI_ERR_COUNT);

  // An ordinary request cannot be started; it is unharmed.
  CHECK_OK(MPI_Irecv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request));
  CHECK_CLASS(MPI_Start(&request), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Grequest_complete(request), MPI_ERR_REQUEST);
  const int out = 9;
  CHECK_OK(MPI_Send(&out, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
  CHECK_OK(MPI_Wait(&request, &status));
  CHECK_EQ(value, 9);

  // A persistent one cannot be started twice, nor cancelled while inactive.
  CHECK_OK(MPI_Recv_init(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request));
  CHECK_OK(MPI_Start(&request));
  CHECK_CLASS(MPI_Start(&request), MPI_ERR_REQUEST);
  CHECK_OK(MPI_Send(&out, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
  CHECK_OK(MPI_Wait(&request, &status));
  CHECK_OK(MPI_Request_free(&request));

  MPI_Message message = MPI_MESSAGE_NULL;
  CHECK_CLASS(MPI_Mrecv(&value, 1, MPI_INT, &message, &status), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Imrecv(&value, 1, MPI_INT, &message, &request), MPI_ERR_REQUEST);

  if (library_is_heddle()) {  // MPICH 5.0.2 crashes on these
    CHECK_CLASS(MPI_Waitany(-1, &request, &index, &status), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Wait(nullptr, &status), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Waitall(2, nullptr, MPI_STATUSES_IGNORE), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Test(&request, nullptr, &status), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_size(MPI_COMM_WORLD, nullptr), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Isend(&out, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, nullptr), MPI_ERR_ARG);
    // A handle of the wrong kind, as a C program without prototypes would pass.
    CHECK_CLASS(MPI_Send(&out, 1, MPI_INT, 0, 1, reinterpret_cast<MPI_Comm>(MPI_INT)), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Send(&out, 1, reinterpret_cast<MPI_Datatype>(MPI_COMM_WORLD), 0, 1, MPI_COMM_WORLD), MPI_ERR_TYPE);
    MPI_Request wrong = reinterpret_cast<MPI_Request>(MPI_COMM_WORLD);
    CHECK_CLASS(MPI_Wait(&wrong, &status), MPI_ERR_REQUEST);
    wrong = nullptr;  // what an uninitialised static handle is
    CHECK_CLASS(MPI_Wait(&wrong, &status), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Comm_rank(nullptr, &value), MPI_ERR_COMM);
  }
  return finish();
}
