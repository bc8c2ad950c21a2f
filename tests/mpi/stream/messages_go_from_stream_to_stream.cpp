// ranks: 1 2 3
// threads: 3
// timeout: 120
// env: HEDDLE_VCIS=4
// MPIX_Stream_comm_create_multiplex: every stream of every rank sends to every stream of every rank, each driven by a thread of its own,
// ranks with different numbers of streams; a message arrives at the stream it names and nowhere else; functions that name
// no stream use the first; a duplicate has the same streams.
#include "../threads/team.hpp"

#include <mpix.h>

#include <array>

using namespace test;

namespace {

int streams_of(int rank) { return 1 + rank % 3; }

std::uint64_t seed(int from, int source, int to, int destination, int round) {
  return mix(static_cast<std::uint64_t>((((from * 10 + source) * 10 + to) * 10 + destination) * 100 + round));
}

void exchange(const World& w, MPI_Comm comm, int own, int round) {
  for (const std::size_t n : {std::size_t{8}, std::size_t{3000}, std::size_t{60'000}}) {
    std::vector<std::vector<unsigned char>> out, in;
    std::vector<std::array<int, 2>> whom;
    for (int r = 0; r < w.size; ++r)
      for (int s = 0; s < streams_of(r); ++s) whom.push_back({r, s});
    out.resize(whom.size());
    in.resize(whom.size());
    std::vector<MPI_Request> requests(2 * whom.size());
    for (std::size_t i = 0; i < whom.size(); ++i) {
      const auto [rank, stream] = whom[i];
      in[i].resize(n);
      // The tag tells the streams of one sender apart.
      CHECK_OK(MPIX_Stream_irecv(in[i].data(), static_cast<int>(n), MPI_BYTE, rank, stream, comm, stream, own, &requests[2 * i]));
    }
    for (std::size_t i = 0; i < whom.size(); ++i) {
      const auto [rank, stream] = whom[i];
      out[i].resize(n);
      fill(out[i].data(), n, seed(w.rank, own, rank, stream, round));
      CHECK_OK(MPIX_Stream_isend(out[i].data(), static_cast<int>(n), MPI_BYTE, rank, own, comm, own, stream, &requests[2 * i + 1]));
    }
    CHECK_OK(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
    for (std::size_t i = 0; i < whom.size(); ++i) CHECK_FILLED(in[i].data(), n, seed(whom[i][0], whom[i][1], w.rank, own, round));
  }
}

}  // namespace

int main() {
  const World w = init_threads();
  const int count = streams_of(w.rank);
  MPIX_Stream streams[3];
  for (int i = 0; i < count; ++i) CHECK_OK(MPIX_Stream_create(MPI_INFO_NULL, &streams[i]));
  if (count == 3) {
    CHECK_OK(MPIX_Stream_free(&streams[1]));  // a null stream among others is the default one
    CHECK(streams[1] == MPIX_STREAM_NULL);
  }
  MPI_Comm comm, twin;
  CHECK_OK(MPIX_Stream_comm_create_multiplex(MPI_COMM_WORLD, count, streams, &comm));
  CHECK_OK(MPI_Comm_dup(comm, &twin));
  for (int i = 0; i < count; ++i) {
    MPIX_Stream found;
    CHECK_OK(MPIX_Comm_get_stream(twin, i, &found));
    CHECK(found == streams[i]);
  }
  for (const MPI_Comm one : {comm, twin})
    run_threads(count, [&](int own) {
      for (int round = 0; round < 10; ++round) exchange(w, one, own, round);
    });

  // Blocking forms, from any source and any of its streams; only what was sent to the stream is seen.
  const int to = (w.rank + 1) % w.size, from = (w.rank + w.size - 1) % w.size;
  const int last = streams_of(to) - 1, own = count - 1;
  int value = w.rank, got = -1;
  MPI_Request request;
  MPI_Status status;
  if (last > 0) {
    const int decoy = -5;
    CHECK_OK(MPIX_Stream_send(&decoy, 1, MPI_INT, to, 3, comm, 0, 0));
  }
  CHECK_OK(MPIX_Stream_isend(&value, 1, MPI_INT, to, 3, comm, 0, last, &request));
  CHECK_OK(MPIX_Stream_recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPIX_ANY_INDEX, own, &status));
  CHECK_EQ(got, from);
  CHECK_EQ(status.MPI_SOURCE, from);
  CHECK_EQ(status.MPI_TAG, 3);
  CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  if (own > 0) {  // what names no stream uses the first
    CHECK_OK(MPI_Recv(&got, 1, MPI_INT, from, 3, comm, &status));
    CHECK_EQ(got, -5);
  }
  CHECK_OK(MPIX_Stream_send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, comm, 0, 0));
  CHECK_OK(MPIX_Stream_recv(&got, 1, MPI_INT, MPI_PROC_NULL, 0, comm, 0, 0, &status));
  CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
  int sum = 0;
  CHECK_OK(MPI_Allreduce(&w.rank, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK_EQ(sum, w.size * (w.size - 1) / 2);

  CHECK_OK(MPI_Comm_free(&comm));
  CHECK_OK(MPI_Comm_free(&twin));
  for (int i = 0; i < count; ++i)
    if (streams[i] != MPIX_STREAM_NULL) CHECK_OK(MPIX_Stream_free(&streams[i]));
  // No stream at all is one null stream.
  CHECK_OK(MPIX_Stream_comm_create_multiplex(MPI_COMM_WORLD, 0, nullptr, &comm));
  CHECK_OK(MPI_Barrier(comm));
  CHECK_OK(MPI_Comm_free(&comm));
  return finish();
}
