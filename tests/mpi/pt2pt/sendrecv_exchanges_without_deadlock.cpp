// ranks: 1 2 3 4
// timeout: 60
// MPI_Sendrecv, MPI_Sendrecv_replace, MPI_Isendrecv, MPI_Isendrecv_replace and their _c twins round a ring (and with
// oneself on one rank), at sizes of every protocol, with different types and tags on the two sides, and PROC_NULL ends.
#include "../support.hpp"

using namespace test;

namespace {

constexpr std::size_t sizes[] = {0, 4, 400, 16'384, 262'144, 4 << 20};
enum Call { plain, plain_c, replace, replace_c, nonblocking, nonblocking_c, nb_replace, nb_replace_c, calls };

MPI_Status exchange(Call call, unsigned char* out, unsigned char* in, int n, int to, int stag, int from, int rtag) {
  MPI_Status status = dirty_status();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm comm = MPI_COMM_WORLD;
  switch (call) {
    case plain: MPI_Sendrecv(out, n, MPI_BYTE, to, stag, in, n, MPI_BYTE, from, rtag, comm, &status); break;
    case plain_c: MPI_Sendrecv_c(out, n, MPI_BYTE, to, stag, in, n, MPI_BYTE, from, rtag, comm, &status); break;
    case replace: MPI_Sendrecv_replace(out, n, MPI_BYTE, to, stag, from, rtag, comm, &status); break;
    case replace_c: MPI_Sendrecv_replace_c(out, n, MPI_BYTE, to, stag, from, rtag, comm, &status); break;
    case nonblocking:
      MPI_Isendrecv(out, n, MPI_BYTE, to, stag, in, n, MPI_BYTE, from, rtag, comm, &request);
      MPI_Wait(&request, &status);
      break;
    case nonblocking_c:
      MPI_Isendrecv_c(out, n, MPI_BYTE, to, stag, in, n, MPI_BYTE, from, rtag, comm, &request);
      MPI_Wait(&request, &status);
      break;
    case nb_replace:
      MPI_Isendrecv_replace(out, n, MPI_BYTE, to, stag, from, rtag, comm, &request);
      MPI_Wait(&request, &status);
      break;
    case nb_replace_c:
      MPI_Isendrecv_replace_c(out, n, MPI_BYTE, to, stag, from, rtag, comm, &request);
      MPI_Wait(&request, &status);
      break;
    case calls: break;
  }
  CHECK(request == MPI_REQUEST_NULL);
  return status;
}

bool replaces(Call call) { return call == replace || call == replace_c || call == nb_replace || call == nb_replace_c; }

// MPICH 5.0.2 leaves a stale count in the status of the nonblocking calls; the standard gives the receive's status.
bool mpich_leaves_status(Call call) { return call >= nonblocking && library_is_mpich(); }

void ring(const World& w) {
  const int right = (w.rank + 1) % w.size, left = (w.rank + w.size - 1) % w.size;
  for (int c = 0; c < calls; ++c)
    for (const std::size_t n : sizes) {
      const auto call = static_cast<Call>(c);
      std::vector<unsigned char> out(n + 1), in(n + 1);
      const auto seed = static_cast<std::uint64_t>(c) * 1000 + n;
      fill(out.data(), n, seed + static_cast<std::uint64_t>(w.rank));
      // A tag per sender: the tag sent and the tag received differ on two ranks and more.
      const MPI_Status status =
          exchange(call, out.data(), in.data(), static_cast<int>(n), right, 10 + w.rank, left, 10 + left);
      if (!mpich_leaves_status(call)) {
        CHECK_EQ(status.MPI_SOURCE, left);
        CHECK_EQ(status.MPI_TAG, 10 + left);
        CHECK_EQ(count_of(status), n);
      }
      CHECK_FILLED(replaces(call) ? out.data() : in.data(), n, seed + static_cast<std::uint64_t>(left));
      if (!replaces(call)) CHECK_FILLED(out.data(), n, seed + static_cast<std::uint64_t>(w.rank));
    }
}

// The wildcards are allowed on the receiving side; a ring keeps the answer unique.
void wildcards(const World& w) {
  const int right = (w.rank + 1) % w.size, left = (w.rank + w.size - 1) % w.size;
  MPI_Barrier(MPI_COMM_WORLD);
  int out = w.rank, in = -1;
  MPI_Status status;
  MPI_Sendrecv(&out, 1, MPI_INT, right, 77, &in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  CHECK_EQ(in, left);
  CHECK_EQ(status.MPI_SOURCE, left);
  CHECK_EQ(status.MPI_TAG, 77);
  MPI_Barrier(MPI_COMM_WORLD);
}

// An open chain: the ends talk to MPI_PROC_NULL, whose receive leaves the buffer alone.
void chain(const World& w) {
  const int right = w.rank + 1 < w.size ? w.rank + 1 : MPI_PROC_NULL;
  const int left = w.rank > 0 ? w.rank - 1 : MPI_PROC_NULL;
  for (int c = 0; c < calls; ++c) {
    const auto call = static_cast<Call>(c);
    int out[2] = {w.rank, -w.rank}, in[2] = {-5, -6};
    const MPI_Status status = exchange(call, reinterpret_cast<unsigned char*>(out),
                                       reinterpret_cast<unsigned char*>(in), sizeof out, right, 3, left, 3);
    const int* got = replaces(call) ? out : in;
    if (!mpich_leaves_status(call)) CHECK_EQ(status.MPI_SOURCE, left);
    if (left == MPI_PROC_NULL) {
      if (!mpich_leaves_status(call)) {
        CHECK_EQ(status.MPI_TAG, MPI_ANY_TAG);
        CHECK_EQ(count_of(status), 0);
      }
      CHECK_EQ(got[0], replaces(call) ? w.rank : -5);
    } else {
      CHECK_EQ(got[0], w.rank - 1);
      CHECK_EQ(got[1], 1 - w.rank);
    }
  }
}

// The two sides may use different types and counts, and the receive may be larger than the message.
void different_types(const World& w) {
  const int right = (w.rank + 1) % w.size, left = (w.rank + w.size - 1) % w.size;
  MPI_Datatype column;
  MPI_Type_vector(50, 1, 3, MPI_INT, &column);
  MPI_Type_commit(&column);
  int grid[150], line[60];
  for (int i = 0; i < 150; ++i) grid[i] = w.rank * 1000 + i;
  for (int& x : line) x = -1;
  MPI_Status status;
  MPI_Sendrecv(grid, 1, column, right, 1, line, 60, MPI_INT, left, 1, MPI_COMM_WORLD, &status);
  int count = 0;
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK_EQ(count, 50);
  for (int i = 0; i < 60; ++i) CHECK_EQ(line[i], i < 50 ? left * 1000 + 3 * i : -1);

  MPI_Sendrecv_replace(grid, 1, column, right, 2, left, 2, MPI_COMM_WORLD, &status);
  for (int i = 0; i < 150; ++i) CHECK_EQ(grid[i], (i % 3 == 0 ? left : w.rank) * 1000 + i);
  MPI_Type_free(&column);
}

// Many exchanges in flight on one ring complete in any order of waiting.
void many_in_flight(const World& w) {
  const int right = (w.rank + 1) % w.size, left = (w.rank + w.size - 1) % w.size;
  constexpr int n = 64;
  std::vector<MPI_Request> requests(n);
  std::vector<int> out(n), in(n, -1), both(n);
  std::vector<MPI_Request> replaced(n);
  for (int i = 0; i < n; ++i) {
    out[i] = both[i] = w.rank * n + i;
    MPI_Isendrecv(&out[i], 1, MPI_INT, right, i, &in[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Isendrecv_replace(&both[i], 1, MPI_INT, right, n + i, left, n + i, MPI_COMM_WORLD, &replaced[i]);
  }
  for (int i = n - 1; i >= 0; --i) {
    MPI_Wait(&replaced[i], MPI_STATUS_IGNORE);
    CHECK_EQ(both[i], left * n + i);
  }
  MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE);
  for (int i = 0; i < n; ++i) CHECK_EQ(in[i], left * n + i);
}

}  // namespace

int main() {
  const World w = init();
  ring(w);
  wildcards(w);
  chain(w);
  different_types(w);
  many_in_flight(w);
  return finish();
}
