// ranks: 2
// timeout: 60
// MPI_Comm_free only marks: messages and collectives that were started before it complete after it. A second free of the same
// handle is an error and harms nothing.
#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  const int peer = 1 - w.rank;
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 20}) {
    std::vector<char> out(bytes), in(bytes);
    fill(out.data(), bytes, static_cast<std::uint64_t>(w.rank) + 1);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Request requests[3];
    int one = 1, sum = 0;
    MPI_Irecv(in.data(), static_cast<int>(bytes), MPI_BYTE, peer, 1, comm, &requests[0]);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(out.data(), static_cast<int>(bytes), MPI_BYTE, peer, 1, comm, &requests[2]);
    MPI_Comm stale = comm;
    CHECK_OK(MPI_Comm_free(&comm));
    CHECK(comm == MPI_COMM_NULL);
    if (!library_is_mpich()) CHECK_CLASS(MPI_Comm_free(&stale), MPI_ERR_COMM);
    MPI_Comm other;  // made while the freed one still works
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    CHECK(other != stale);
    CHECK_OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    CHECK_EQ(sum, 2);
    CHECK_FILLED(in.data(), bytes, static_cast<std::uint64_t>(peer) + 1);
    MPI_Comm_free(&other);
  }
  return finish();
}
