// ranks: 1 2 3
// threads: 2
// timeout: 120
// env: HEDDLE_VCIS=4
// MPIX_Stream_*: a communicator with streams does all that its parent does (messages in both forms, wildcards, probes, collectives,
// duplicates, splits), with a stream on some ranks and MPIX_STREAM_NULL on others; two threads drive two of them at once;
// the stream is found again by MPIX_Comm_get_stream, also in duplicates, and can be freed after its communicators.
#include "../threads/team.hpp"

#include <mpix.h>

using namespace test;

namespace {

// What a communicator of `w.size` ranks must do.
void use(const World& w, MPI_Comm comm, int rounds) {
  int rank = -1, size = 0;
  CHECK_OK(MPI_Comm_rank(comm, &rank));
  CHECK_OK(MPI_Comm_size(comm, &size));
  CHECK_EQ(rank, w.rank);
  CHECK_EQ(size, w.size);
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  for (int round = 0; round < rounds; ++round) {
    for (const std::size_t n : {std::size_t{0}, std::size_t{8}, std::size_t{5000}, std::size_t{100'000}}) {
      std::vector<unsigned char> out(n + 1), in(n + 1);
      fill(out.data(), n, static_cast<std::uint64_t>(rank * 100 + round));
      MPI_Request request;
      MPI_Status status;
      CHECK_OK(MPI_Isend(out.data(), static_cast<int>(n), MPI_BYTE, to, round, comm, &request));
      if (round % 2) CHECK_OK(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
      CHECK_OK(MPI_Recv(in.data(), static_cast<int>(n), MPI_BYTE, round % 2 ? MPI_ANY_SOURCE : from, round, comm, &status));
      CHECK_EQ(status.MPI_SOURCE, from);
      CHECK_FILLED(in.data(), n, static_cast<std::uint64_t>(from * 100 + round));
      CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    long sum = -1, one = rank + round;
    CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, comm));
    CHECK_EQ(sum, static_cast<long>(size) * round + size * (size - 1) / 2);
    MPI_Request request;
    CHECK_OK(MPI_Ibarrier(comm, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Barrier(comm));
  }
}

}  // namespace

int main() {
  const World w = init_threads();
  MPIX_Stream streams[2];
  MPI_Comm comms[2];
  for (int t = 0; t < 2; ++t) {
    CHECK_OK(MPIX_Stream_create(MPI_INFO_NULL, &streams[t]));
    CHECK(streams[t] != MPIX_STREAM_NULL);
    const bool has = t == 0 || w.rank != 1;
    CHECK_OK(MPIX_Stream_comm_create(MPI_COMM_WORLD, has ? streams[t] : MPIX_STREAM_NULL, &comms[t]));
    MPIX_Stream found;
    CHECK_OK(MPIX_Comm_get_stream(comms[t], 0, &found));
    CHECK(found == (has ? streams[t] : MPIX_STREAM_NULL));
  }
  MPIX_Stream none = streams[0];
  CHECK_OK(MPIX_Comm_get_stream(MPI_COMM_WORLD, 0, &none));
  CHECK(none == MPIX_STREAM_NULL);

  run_threads(2, [&](int t) { use(w, comms[t], 10); });
  // In turns the streams may change threads.
  run_threads(2, [&](int t) { use(w, comms[1 - t], 10); });

  MPI_Comm twin, later, half;
  MPI_Request request;
  CHECK_OK(MPI_Comm_dup(comms[0], &twin));
  CHECK_OK(MPI_Comm_idup(comms[0], &later, &request));
  CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (const MPI_Comm comm : {twin, later}) {
    MPIX_Stream found;
    CHECK_OK(MPIX_Comm_get_stream(comm, 0, &found));
    CHECK(found == streams[0]);
    use(w, comm, 3);
  }
  int result = -1;
  CHECK_OK(MPI_Comm_compare(twin, comms[0], &result));
  CHECK_EQ(result, MPI_CONGRUENT);
  MPI_Group group, world;
  CHECK_OK(MPI_Comm_group(comms[0], &group));
  CHECK_OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  CHECK_OK(MPI_Group_compare(group, world, &result));
  CHECK_EQ(result, MPI_IDENT);
  CHECK_OK(MPI_Comm_create(comms[0], group, &half));
  use(w, half, 2);
  CHECK_OK(MPI_Comm_free(&half));
  CHECK_OK(MPI_Comm_split(comms[0], w.rank % 2, 0, &half));
  CHECK_OK(MPI_Barrier(half));
  CHECK_OK(MPI_Comm_free(&half));
  CHECK_OK(MPI_Group_free(&group));
  CHECK_OK(MPI_Group_free(&world));
  CHECK(MPI_Comm_fromint(MPI_Comm_toint(twin)) == twin);

  // Two of them joined: the other side knows nothing of the streams.
  if (w.size > 1)
    for (int i = 0; i < 8; ++i) {
      MPI_Comm side, inter;
      CHECK_OK(MPI_Comm_split(MPI_COMM_WORLD, w.rank > 0, 0, &half));
      CHECK_OK(MPIX_Stream_comm_create(half, streams[i % 2], &side));
      CHECK_OK(MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, w.rank > 0 ? 0 : 1, i, &inter));
      int out = w.rank, in = -1;
      if (w.rank < 2) CHECK_OK(MPI_Sendrecv(&out, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE));
      if (w.rank < 2) CHECK_EQ(in, 1 - w.rank);
      for (MPI_Comm* comm : {&half, &side, &inter}) CHECK_OK(MPI_Comm_free(comm));
    }

  // MPIX_Stream_progress is enough to complete what was started.
  std::vector<unsigned char> out(300'000, 7), in(300'000);
  MPI_Request requests[2];
  const int to = (w.rank + 1) % w.size, from = (w.rank + w.size - 1) % w.size;
  CHECK_OK(MPI_Irecv(in.data(), 300'000, MPI_BYTE, from, 0, comms[0], &requests[0]));
  CHECK_OK(MPI_Isend(out.data(), 300'000, MPI_BYTE, to, 0, comms[0], &requests[1]));
  CHECK(eventually([&] {
    CHECK_OK(MPIX_Stream_progress(streams[0]));
    int done = 0;
    for (const MPI_Request r : requests) {
      int one = 0;
      MPI_Request_get_status(r, &one, MPI_STATUS_IGNORE);
      done += one;
    }
    return done == 2;
  }));
  CHECK_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  CHECK(in == out);
  CHECK_OK(MPIX_Stream_progress(MPIX_STREAM_NULL));

  for (MPI_Comm* comm : {&twin, &later, &comms[0], &comms[1]}) CHECK_OK(MPI_Comm_free(comm));
  for (MPIX_Stream& stream : streams) {
    CHECK_OK(MPIX_Stream_free(&stream));
    CHECK(stream == MPIX_STREAM_NULL);
  }
  return finish();
}
