// ranks: 2 3
// timeout: 60
// Wrong roots, operations, counts, buffers and messages that do not fit: an error class and a text, nobody hangs, the
// next collective works.
#include "forms.hpp"

using namespace test;

namespace {

void still_works(const World& w) {
  int one = 1, sum = 0;
  CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQ(sum, w.size);
}

void bad_arguments(const World& w) {
  int a[16] = {}, b[16] = {};
  std::vector<int> counts(static_cast<std::size_t>(w.size), 1), displs(static_cast<std::size_t>(w.size), 0);
  MPI_Request request = MPI_REQUEST_NULL;
  for (const int root : {-1, w.size, -100, 1 << 30}) {
    CHECK_CLASS(MPI_Bcast(a, 1, MPI_INT, root, MPI_COMM_WORLD), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Ibcast(a, 1, MPI_INT, root, MPI_COMM_WORLD, &request), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Bcast_init(a, 1, MPI_INT, root, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Reduce(a, b, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Gather(a, 1, MPI_INT, b, 1, MPI_INT, root, MPI_COMM_WORLD), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Scatter(a, 1, MPI_INT, b, 1, MPI_INT, root, MPI_COMM_WORLD), MPI_ERR_ROOT);
  }
  CHECK_CLASS(MPI_Bcast(a, -1, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Bcast(nullptr, 1, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Bcast(a, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Allreduce(a, b, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD), MPI_ERR_OP);
  CHECK_CLASS(MPI_Allreduce(a, a, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  counts[1] = -3;
  CHECK_CLASS(MPI_Allgatherv(a, 1, MPI_INT, b, counts.data(), displs.data(), MPI_INT, MPI_COMM_WORLD), MPI_ERR_COUNT);
  still_works(w);
}

void bad_operations(const World& w) {
  double a[4] = {}, b[4] = {};
  // (the operation, a datatype that it is not defined for)
  const std::pair<MPI_Op, MPI_Datatype> wrong[] = {
      {MPI_BAND, MPI_DOUBLE},          {MPI_LXOR, MPI_FLOAT}, {MPI_SUM, MPI_BYTE},
      {MPI_MAX, MPI_C_DOUBLE_COMPLEX}, {MPI_MINLOC, MPI_INT}, {MPI_SUM, MPI_DOUBLE_INT},
  };
  for (const auto& [op, type] : wrong) {
    if (library_is_mpich() && type == MPI_FLOAT) continue;  // allows logical operations on reals
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK_CLASS(MPI_Allreduce(a, b, 1, type, op, MPI_COMM_WORLD), MPI_ERR_OP);
    CHECK_CLASS(MPI_Iallreduce(a, b, 1, type, op, MPI_COMM_WORLD, &request), MPI_ERR_OP);
    CHECK_CLASS(MPI_Allreduce_init(a, b, 1, type, op, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_OP);
    CHECK_CLASS(MPI_Reduce_local(a, b, 1, type, op), MPI_ERR_OP);
  }
  if (library_is_heddle()) {
    const std::string text = error_text(MPI_Allreduce(a, b, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD));
    CHECK_NAMES(text, "MPI_BAND");
    CHECK_NAMES(text, "MPI_DOUBLE");
  }
  MPI_Op op = MPI_SUM;
  CHECK_CLASS(MPI_Op_free(&op), MPI_ERR_OP);
  op = MPI_OP_NULL;
  CHECK_CLASS(MPI_Op_free(&op), MPI_ERR_OP);
  still_works(w);
}

void bad_messages(const World& w) {
  if (!library_is_heddle()) return;  // others hang or write behind buffers here
  // Rank 0 sends more than the others have room for, then less.
  for (const int count : {8, 2}) {
    Guarded buffer(64);
    const int mine = w.rank == 0 ? count : 4;
    const int code = MPI_Bcast(buffer.data(), mine, MPI_INT, 0, MPI_COMM_WORLD);
    if (w.rank == 0) CHECK_EQ(code, MPI_SUCCESS);
    if (w.rank == 1) CHECK_EQ(error_class(code), count == 8 ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT);
    if (w.rank == 1) CHECK(buffer.untouched_outside(16));
    CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Request request;
    CHECK_OK(MPI_Ibcast(buffer.data(), mine, MPI_INT, 0, MPI_COMM_WORLD, &request));
    const int waited = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(request == MPI_REQUEST_NULL);
    if (w.rank == 1) CHECK_EQ(error_class(waited), count == 8 ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT);
    CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
    // A persistent collective reports it at each start.
    CHECK_OK(MPI_Bcast_init(buffer.data(), mine, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    for (int i = 0; i < 2; ++i) {
      CHECK_OK(MPI_Start(&request));
      const int again = MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (w.rank == 1) CHECK_EQ(error_class(again), count == 8 ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT);
    }
    CHECK_OK(MPI_Request_free(&request));
    CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  // A rank whose own two sides do not match finds it out without the others.
  int send[4] = {1, 2, 3, 4};
  std::vector<int> recv(static_cast<std::size_t>(4 * w.size), -1);
  CHECK_CLASS(MPI_Gather(send, 1, MPI_INT, send, 1, MPI_INT, 0, MPI_COMM_SELF), MPI_ERR_BUFFER);
  // The same buffer twice is no mistake where nothing is read or written.
  const int zero = 0;
  CHECK_OK(MPI_Gather(send, 0, MPI_INT, send, 0, MPI_INT, 0, MPI_COMM_SELF));
  CHECK_OK(MPI_Scatter(send, 0, MPI_INT, send, 0, MPI_INT, 0, MPI_COMM_SELF));
  CHECK_OK(MPI_Gatherv(send, 0, MPI_INT, send, &zero, &zero, MPI_INT, 0, MPI_COMM_SELF));
  CHECK_OK(MPI_Scatterv(send, &zero, &zero, MPI_INT, send, 0, MPI_INT, 0, MPI_COMM_SELF));
  const int code = MPI_Allgather(send, 3, MPI_INT, recv.data(), 4, MPI_INT, MPI_COMM_WORLD);
  CHECK_EQ(error_class(code), MPI_ERR_COUNT);
  const std::string text = error_text(code);
  CHECK_NAMES(text, "12");
  CHECK_NAMES(text, "16");
  CHECK_NAMES(text, "MPI_COMM_WORLD");
  CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
  still_works(w);
}

}  // namespace

int main() {
  const World w = init();
  CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  bad_arguments(w);
  bad_operations(w);
  bad_messages(w);
  return finish();
}
