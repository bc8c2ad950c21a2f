// ranks: 1
// timeout: 30
// A copy of a handle that was freed is refused by the class of its kind, also when many objects have been made since;
// freeing twice is refused; predefined handles cannot be freed. MPICH does not detect these: nothing is checked there.
#include "../support.hpp"

using namespace test;

namespace {
void on_error(MPI_Comm*, int*, ...) {}
}  // namespace

int main() {
  init();
  if (!library_is_heddle()) {
    std::printf("skipped: this library does not promise to detect freed handles\n");
    return finish();
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int value = 0, rank = 0, flag = 0, out = 3;
  MPI_Status status;

  MPI_Comm comm, stale_comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  stale_comm = comm;
  CHECK_OK(MPI_Comm_free(&comm));
  CHECK(comm == MPI_COMM_NULL);
  CHECK_CLASS(MPI_Comm_rank(stale_comm, &rank), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Send(&out, 1, MPI_INT, 0, 1, stale_comm), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Irecv(&value, 1, MPI_INT, 0, 1, stale_comm, nullptr), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Barrier(stale_comm), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_free(&stale_comm), MPI_ERR_COMM);

  MPI_Datatype type, stale_type;
  MPI_Type_contiguous(2, MPI_INT, &type);
  MPI_Type_commit(&type);
  stale_type = type;
  CHECK_OK(MPI_Type_free(&type));
  CHECK(type == MPI_DATATYPE_NULL);
  int two[2] = {};
  CHECK_CLASS(MPI_Send(two, 1, stale_type, 0, 1, MPI_COMM_WORLD), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_free(&stale_type), MPI_ERR_TYPE);

  MPI_Request request, stale;
  MPI_Irecv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
  stale = request;
  MPI_Send(&out, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  CHECK_OK(MPI_Wait(&request, &status));
  CHECK_CLASS(MPI_Wait(&stale, &status), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Test(&stale, &flag, &status), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Request_free(&stale), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Cancel(&stale), MPI_ERR_REQUEST);

  MPI_Recv_init(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
  stale = request;
  MPI_Request_free(&request);
  CHECK_CLASS(MPI_Start(&stale), MPI_ERR_REQUEST);

  MPI_Group group, stale_group;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  stale_group = group;
  MPI_Group_free(&group);
  CHECK_CLASS(MPI_Group_size(stale_group, &value), MPI_ERR_GROUP);

  MPI_Info info, stale_info;
  MPI_Info_create(&info);
  stale_info = info;
  MPI_Info_free(&info);
  CHECK_CLASS(MPI_Info_set(stale_info, "key", "value"), MPI_ERR_INFO);

  MPI_Op op, stale_op;
  MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &op);
  stale_op = op;
  MPI_Op_free(&op);
  CHECK_CLASS(MPI_Allreduce(&out, &value, 1, MPI_INT, stale_op, MPI_COMM_WORLD), MPI_ERR_OP);

  MPI_Errhandler handler, stale_handler;
  MPI_Comm_create_errhandler(on_error, &handler);
  stale_handler = handler;
  MPI_Errhandler_free(&handler);
  CHECK_CLASS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, stale_handler), MPI_ERR_ERRHANDLER);

  // Predefined objects are not the user's to free.
  MPI_Comm world = MPI_COMM_WORLD;
  CHECK_CLASS(MPI_Comm_free(&world), MPI_ERR_COMM);
  MPI_Datatype integer = MPI_INT;
  CHECK_CLASS(MPI_Type_free(&integer), MPI_ERR_TYPE);
  MPI_Op sum = MPI_SUM;
  CHECK_CLASS(MPI_Op_free(&sum), MPI_ERR_OP);

  // The library is none the worse.
  for (int i = 0; i < 1'000; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    CHECK_OK(MPI_Sendrecv(&i, 1, MPI_INT, 0, 1, &value, 1, MPI_INT, 0, 1, comm, &status));
    CHECK_EQ(value, i);
    CHECK_OK(MPI_Comm_free(&comm));
  }
  return finish();
}
