// ranks: 2
// threads: 1
// timeout: 60
// env: HEDDLE_VCIS=4
// Duplicates of a stream communicator, made in every way and with every hint about interfaces, with a stream and without one: what
// a function that names no stream sends is received by one that names the first, and the other way round. It is the streams that
// choose the interfaces, whatever the hints say.
#include "../support.hpp"

#include <mpix.h>

#include <array>
#include <initializer_list>

using namespace test;

namespace {

MPI_Comm duplicate(MPI_Comm comm, std::initializer_list<std::array<const char*, 2>> hints, bool later) {
  MPI_Comm twin;
  MPI_Info info;
  MPI_Info_create(&info);
  for (const auto& [key, value] : hints) CHECK_OK(MPI_Info_set(info, key, value));
  if (later) {
    MPI_Request request;
    CHECK_OK(hints.size() ? MPI_Comm_idup_with_info(comm, info, &twin, &request) : MPI_Comm_idup(comm, &twin, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else {
    CHECK_OK(hints.size() ? MPI_Comm_dup_with_info(comm, info, &twin) : MPI_Comm_dup(comm, &twin));
  }
  MPI_Info_free(&info);
  return twin;
}

void exchange(const World& w, MPI_Comm comm) {
  for (int tag = 0; tag < 6; ++tag) {
    int value = 10 * tag, got = -1;
    if (w.rank == 0) {
      CHECK_OK(MPI_Send(&value, 1, MPI_INT, 1, tag, comm));
      CHECK_OK(MPIX_Stream_recv(&got, 1, MPI_INT, 1, tag, comm, MPIX_ANY_INDEX, 0, MPI_STATUS_IGNORE));
      CHECK_EQ(got, value + 1);
      CHECK_OK(MPIX_Stream_send(&value, 1, MPI_INT, 1, tag, comm, 0, 0));
    } else {
      CHECK_OK(MPIX_Stream_recv(&got, 1, MPI_INT, 0, tag, comm, MPIX_ANY_INDEX, 0, MPI_STATUS_IGNORE));
      CHECK_EQ(got, value);
      ++value;
      CHECK_OK(MPI_Send(&value, 1, MPI_INT, 0, tag, comm));
      CHECK_OK(MPI_Recv(&got, 1, MPI_INT, 0, tag, comm, MPI_STATUS_IGNORE));
      CHECK_EQ(got, value - 1);
    }
  }
  int sum = 0;
  CHECK_OK(MPI_Allreduce(&w.rank, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK_EQ(sum, 1);
}

}  // namespace

int main() {
  const World w = init_threads();
  MPIX_Stream stream;
  CHECK_OK(MPIX_Stream_create(MPI_INFO_NULL, &stream));
  const char* const lane = w.rank ? "1" : "2";
  for (const MPIX_Stream given : {stream, MPIX_STREAM_NULL})
    for (const bool later : {false, true}) {
      MPI_Comm comm;
      CHECK_OK(MPIX_Stream_comm_create(MPI_COMM_WORLD, given, &comm));
      MPI_Comm twins[] = {
          duplicate(comm, {}, later),
          duplicate(comm, {{"vci", "0"}}, later),
          duplicate(comm, {{"receiver_vci", lane}}, later),
          duplicate(comm, {{"sender_vci", lane}, {"mpi_assert_allow_overtaking", "true"}}, later),
          duplicate(comm, {{"inherit_vci", "true"}}, later),
          duplicate(comm, {{"mpi_assert_no_any_tag", "true"}, {"mpi_assert_no_any_source", "true"}}, later),
      };
      exchange(w, comm);
      for (MPI_Comm& twin : twins) {
        exchange(w, twin);
        MPI_Comm again = duplicate(twin, {}, later);
        exchange(w, again);
        CHECK_OK(MPI_Comm_free(&again));
        CHECK_OK(MPI_Comm_free(&twin));
      }
      CHECK_OK(MPI_Comm_free(&comm));
    }
  CHECK_OK(MPIX_Stream_free(&stream));
  return finish();
}
