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

// MPI_IN_PLACE where it means nothing, and null buffers of data: the mistakes that would write to address 0 or 1.
void bad_buffers(const World& w) {
  int a[16] = {}, b[16] = {};
  const auto size = static_cast<std::size_t>(w.size);
  const std::vector<int> ones(size, 1), none(size, 0);
  const int *n = ones.data(), *d = none.data();
  const std::vector<MPI_Datatype> ints(size, MPI_INT);
  const MPI_Datatype* t = ints.data();
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Request request;
  for (const bool in_place : {false, true}) {
    if (!library_is_heddle()) break;  // others have their own ways, some of which end the program
    void* const bad = in_place ? MPI_IN_PLACE : nullptr;
    std::vector<int> codes{MPI_Bcast(bad, 1, MPI_INT, 0, world),
                           MPI_Allgather(a, 1, MPI_INT, bad, 1, MPI_INT, world),
                           MPI_Allgatherv(a, 1, MPI_INT, bad, n, d, MPI_INT, world),
                           MPI_Alltoall(a, 1, MPI_INT, bad, 1, MPI_INT, world),
                           MPI_Alltoallv(a, n, d, MPI_INT, bad, n, d, MPI_INT, world),
                           MPI_Alltoallw(a, n, d, t, bad, n, d, t, world),
                           MPI_Allreduce(a, bad, 1, MPI_INT, MPI_SUM, world),
                           MPI_Iallreduce(a, bad, 1, MPI_INT, MPI_SUM, world, &request),
                           MPI_Allreduce_init(a, bad, 1, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, &request),
                           MPI_Reduce_scatter(a, bad, n, MPI_INT, MPI_SUM, world),
                           MPI_Reduce_scatter_block(a, bad, 1, MPI_INT, MPI_SUM, world),
                           MPI_Scan(a, bad, 1, MPI_INT, MPI_SUM, world),
                           MPI_Gather(bad, 1, MPI_INT, a, 1, MPI_INT, (w.rank + 1) % w.size, world),
                           MPI_Gatherv(bad, 1, MPI_INT, a, n, d, MPI_INT, (w.rank + 1) % w.size, world),
                           MPI_Scatter(a, 1, MPI_INT, bad, 1, MPI_INT, (w.rank + 1) % w.size, world),
                           MPI_Scatterv(a, n, d, MPI_INT, bad, 1, MPI_INT, (w.rank + 1) % w.size, world),
                           MPI_Reduce(bad, a, 1, MPI_INT, MPI_SUM, (w.rank + 1) % w.size, world),
                           MPI_Gather(a, 1, MPI_INT, bad, 1, MPI_INT, w.rank, world),
                           MPI_Gatherv(a, 1, MPI_INT, bad, n, d, MPI_INT, w.rank, world),
                           MPI_Scatter(bad, 1, MPI_INT, b, 1, MPI_INT, w.rank, world),
                           MPI_Scatterv(bad, n, d, MPI_INT, b, 1, MPI_INT, w.rank, world),
                           MPI_Reduce(a, bad, 1, MPI_INT, MPI_SUM, w.rank, world),
                           MPI_Reduce_local(bad, b, 1, MPI_INT, MPI_SUM),
                           MPI_Reduce_local(a, bad, 1, MPI_INT, MPI_SUM),
                           MPI_Send(bad, 1, MPI_INT, w.rank, 0, world),
                           MPI_Recv(bad, 1, MPI_INT, w.rank, 0, world, MPI_STATUS_IGNORE)};
    if (w.rank) codes.push_back(MPI_Exscan(a, bad, 1, MPI_INT, MPI_SUM, world));
    if (!in_place) {
      codes.insert(codes.end(), {MPI_Allgather(bad, 1, MPI_INT, b, 1, MPI_INT, world),
                                 MPI_Alltoallv(bad, n, d, MPI_INT, b, n, d, MPI_INT, world),
                                 MPI_Alltoallw(bad, n, d, t, b, n, d, t, world),
                                 MPI_Allreduce(bad, b, 1, MPI_INT, MPI_SUM, world),
                                 MPI_Reduce_scatter(bad, b, n, MPI_INT, MPI_SUM, world)});
    } else {
      // Whatever else a rank that is not the root believes to be the root's.
      codes.push_back(MPI_Gather(bad, 0, MPI_DATATYPE_NULL, a, 1, MPI_INT, (w.rank + 1) % w.size, world));
    }
    for (const int code : codes) {
      CHECK_EQ(error_class(code), MPI_ERR_BUFFER);
      CHECK_NAMES(error_text(code), in_place ? "MPI_IN_PLACE" : "null");
    }
    still_works(w);
  }
  // What is not significant may be anything, also the same buffer twice.
  CHECK_OK(MPI_Exscan(a, w.rank ? b : a, 1, MPI_INT, MPI_SUM, world));
  // Nothing is no mistake.
  CHECK_OK(MPI_Allreduce(nullptr, nullptr, 0, MPI_INT, MPI_SUM, world));
  CHECK_OK(MPI_Alltoallv(nullptr, d, d, MPI_INT, nullptr, d, d, MPI_INT, world));
  CHECK_OK(MPI_Reduce_scatter(nullptr, nullptr, d, MPI_INT, MPI_SUM, world));
  // Nor are displacements that are addresses.
  int from = w.rank + 1, to = -1;
  std::vector<MPI_Aint> places(size, 0), froms(size, 0);
  std::vector<MPI_Count> counts(size, 0);
  counts[static_cast<std::size_t>(w.rank)] = 1;
  MPI_Get_address(&to, &places[static_cast<std::size_t>(w.rank)]);
  MPI_Get_address(&from, &froms[static_cast<std::size_t>(w.rank)]);
  CHECK_OK(MPI_Alltoallw_c(MPI_BOTTOM, counts.data(), froms.data(), t, MPI_BOTTOM, counts.data(), places.data(), t, world));
  CHECK_EQ(to, w.rank + 1);
  still_works(w);
}

// Working in one buffer without MPI_IN_PLACE: every rank passes its own block, and every rank is told, not rank 0 alone, whose block
// is where the buffer begins.
void own_blocks(const World& w) {
  if (!library_is_heddle()) return;
  const auto size = static_cast<std::size_t>(w.size);
  std::vector<int> buffer(2 * size, w.rank), ones(size, 1), displs(size), shares(size, 2);
  shares[0] = 1;
  for (int r = 0; r < w.size; ++r) displs[static_cast<std::size_t>(r)] = 2 * (w.size - 1 - r);  // every second, from behind
  int* const all = buffer.data();
  int *const own = all + w.rank, *const displaced = all + displs[static_cast<std::size_t>(w.rank)];
  int* const share = w.rank ? all + 2 * w.rank - 1 : all;
  const int *n = ones.data(), *d = displs.data();
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Request request;
  for (const int code : {MPI_Allgather(own, 1, MPI_INT, all, 1, MPI_INT, world),
                         MPI_Iallgather(own, 1, MPI_INT, all, 1, MPI_INT, world, &request),
                         MPI_Allgather(all, 1, MPI_INT, all, 1, MPI_INT, world),
                         MPI_Allgatherv(displaced, 1, MPI_INT, all, n, d, MPI_INT, world),
                         MPI_Reduce_scatter_block(all, own, 1, MPI_INT, MPI_SUM, world),
                         MPI_Reduce_scatter(all, own, n, MPI_INT, MPI_SUM, world),
                         MPI_Reduce_scatter(all, share, shares.data(), MPI_INT, MPI_SUM, world),
                         MPI_Ireduce_scatter(all, all, n, MPI_INT, MPI_SUM, world, &request),
                         // roots only can tell: everybody is its own
                         MPI_Gather(own, 1, MPI_INT, all, 1, MPI_INT, w.rank, world),
                         MPI_Gatherv(displaced, 1, MPI_INT, all, n, d, MPI_INT, w.rank, world),
                         MPI_Scatter(all, 1, MPI_INT, own, 1, MPI_INT, w.rank, world),
                         MPI_Scatterv(all, n, d, MPI_INT, displaced, 1, MPI_INT, w.rank, world)}) {
    CHECK_EQ(error_class(code), MPI_ERR_BUFFER);
    CHECK_NAMES(error_text(code), "MPI_IN_PLACE");
  }
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
  bad_buffers(w);
  own_blocks(w);
  bad_operations(w);
  bad_messages(w);
  return finish();
}
