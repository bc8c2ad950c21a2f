// ranks: 1 2
// timeout: 30
// User error handlers are called once per error with the communicator and code of the failing call, whose return value
// is that code; they are inherited by dup and split, outlive MPI_Errhandler_free, and MPI_Comm_call_errhandler calls
// them; errors found at completion go to the handler of the request's communicator.
#include "../support.hpp"

using namespace test;

namespace {

thread_local struct Seen {
  int calls = 0, code = 0;
  MPI_Comm comm = MPI_COMM_NULL;
} first, second;

void on_first(MPI_Comm* comm, int* code, ...) { first = {first.calls + 1, *code, *comm}; }
void on_second(MPI_Comm* comm, int* code, ...) { second = {second.calls + 1, *code, *comm}; }

void reset() { first = second = Seen{}; }

}  // namespace

int main() {
  const World w = init();
  MPI_Errhandler one, two, got;
  MPI_Comm_create_errhandler(on_first, &one);
  MPI_Comm_create_errhandler(on_second, &two);
  MPI_Comm a, b, child, part;
  MPI_Comm_dup(MPI_COMM_WORLD, &a);
  MPI_Comm_dup(MPI_COMM_WORLD, &b);
  CHECK_OK(MPI_Comm_set_errhandler(a, one));
  CHECK_OK(MPI_Comm_set_errhandler(b, two));
  MPI_Comm_get_errhandler(a, &got);
  CHECK(got == one);
  MPI_Errhandler_free(&got);
  CHECK(got == MPI_ERRHANDLER_NULL);
  MPI_Errhandler_free(&one);  // a still has it

  const int value = 1;
  int code = MPI_Send(&value, 1, MPI_INT, w.size, 0, a);
  CHECK_EQ(first.calls, 1);
  CHECK_EQ(second.calls, 0);
  CHECK(first.comm == a);
  CHECK_EQ(error_class(first.code), MPI_ERR_RANK);
  // MPICH 5.0.2 returns success once a user's handler has returned; "the error code to be returned" is the argument.
  if (!library_is_mpich()) CHECK_EQ(error_class(code), MPI_ERR_RANK);

  reset();
  code = MPI_Send(&value, -1, MPI_INT, 0, 0, b);
  CHECK_EQ(first.calls, 0);
  CHECK_EQ(second.calls, 1);
  CHECK(second.comm == b);
  CHECK_EQ(error_class(second.code), MPI_ERR_COUNT);

  // Inherited, and then independent of the parent.
  reset();
  MPI_Comm_dup(a, &child);
  MPI_Comm_split(a, 0, w.rank, &part);
  for (const MPI_Comm heir : {child, part}) {
    reset();
    MPI_Send(&value, 1, MPI_INT, 0, -9, heir);
    CHECK_EQ(first.calls, 1);
    CHECK(first.comm == heir);
    CHECK_EQ(error_class(first.code), MPI_ERR_TAG);
  }
  MPI_Comm_set_errhandler(child, two);
  reset();
  MPI_Send(&value, 1, MPI_INT, 0, -9, a);
  CHECK_EQ(first.calls, 1);
  CHECK_EQ(second.calls, 0);

  // Called by hand, with any code: the call itself succeeds.
  reset();
  CHECK_OK(MPI_Comm_call_errhandler(b, MPI_ERR_TOPOLOGY));
  CHECK_EQ(second.calls, 1);
  CHECK_EQ(second.code, MPI_ERR_TOPOLOGY);
  CHECK(second.comm == b);

  // A truncation found by MPI_Wait belongs to the communicator of the receive.
  reset();
  const int four[4] = {1, 2, 3, 4};
  int in = 0;
  MPI_Request request;
  MPI_Status status;
  MPI_Irecv(&in, 1, MPI_INT, w.rank, 2, b, &request);
  MPI_Send(four, 4, MPI_INT, w.rank, 2, b);
  code = MPI_Wait(&request, &status);
  if (!library_is_mpich()) CHECK_EQ(error_class(code), MPI_ERR_TRUNCATE);
  CHECK_EQ(second.calls, 1);
  CHECK(second.comm == b);
  CHECK_EQ(error_class(second.code), MPI_ERR_TRUNCATE);

  // No error, no call.
  reset();
  CHECK_OK(MPI_Sendrecv(&value, 1, MPI_INT, w.rank, 1, &in, 1, MPI_INT, w.rank, 1, a, &status));
  CHECK_EQ(first.calls + second.calls, 0);

  // Back to a predefined handler.
  CHECK_OK(MPI_Comm_set_errhandler(b, MPI_ERRORS_RETURN));
  MPI_Comm_get_errhandler(b, &got);
  CHECK(got == MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Send(&value, -1, MPI_INT, 0, 0, b), MPI_ERR_COUNT);
  CHECK_EQ(second.calls, 0);
  CHECK_OK(MPI_Comm_call_errhandler(b, MPI_ERR_OTHER));  // returning is what this handler does

  MPI_Errhandler_free(&two);
  for (MPI_Comm* c : {&a, &b, &child, &part}) MPI_Comm_free(c);
  return finish();
}
