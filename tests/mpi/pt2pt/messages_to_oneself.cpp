// ranks: 1 2
// timeout: 60
// Sends to one's own rank on MPI_COMM_WORLD and MPI_COMM_SELF: receive first, send first, buffered and synchronous,
// wildcards, all sizes, truncated by nobody, ordered, thousands at once.
#include "../support.hpp"

using namespace test;

namespace {

void sizes(int me, MPI_Comm comm) {
  for (const std::size_t n : {0u, 1u, 8u, 63u, 64u, 65u, 1'000u, 4'096u, 65'537u, 1'000'000u, 8u << 20})
    for (int order = 0; order < 3; ++order) {
      std::vector<unsigned char> out(n + 1);
      Guarded in(n);
      fill(out.data(), n, n + static_cast<std::size_t>(order));
      const int count = static_cast<int>(n);
      MPI_Request requests[2];
      MPI_Status status;
      if (order == 0) {
        MPI_Irecv(in.data(), count, MPI_BYTE, me, 1, comm, &requests[0]);
        MPI_Isend(out.data(), count, MPI_BYTE, me, 1, comm, &requests[1]);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], &status);
      } else if (order == 1) {
        MPI_Isend(out.data(), count, MPI_BYTE, me, 1, comm, &requests[1]);
        MPI_Recv(in.data(), count, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
      } else {
        MPI_Irecv(in.data(), count, MPI_BYTE, MPI_ANY_SOURCE, 1, comm, &requests[0]);
        MPI_Ssend(out.data(), count, MPI_BYTE, me, 1, comm);  // its receive is there: it may block until matched
        MPI_Wait(&requests[0], &status);
      }
      CHECK_EQ(status.MPI_SOURCE, me);
      CHECK_EQ(status.MPI_TAG, 1);
      CHECK_EQ(count_of(status), n);
      CHECK_FILLED(in.data(), n, n + static_cast<std::size_t>(order));
      CHECK(in.untouched_outside(n));
    }
}

void sendrecv_with_oneself(int me, MPI_Comm comm) {
  std::vector<int> out(200'000), in(200'000);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int>(i);
  MPI_Sendrecv(out.data(), 200'000, MPI_INT, me, 4, in.data(), 200'000, MPI_INT, me, 4, comm, MPI_STATUS_IGNORE);
  CHECK(out == in);
  MPI_Sendrecv_replace(out.data(), 200'000, MPI_INT, me, 4, me, 4, comm, MPI_STATUS_IGNORE);
  CHECK(out == in);
}

void thousands(int me, MPI_Comm comm) {
  constexpr int n = 5'000;
  std::vector<int> out(n), in(n);
  std::vector<MPI_Request> requests(2 * n);
  for (int round = 0; round < 2; ++round) {
    const auto receives = [&] {
      for (int i = 0; i < n; ++i)
        MPI_Irecv(&in[static_cast<std::size_t>(i)], 1, MPI_INT, i % 2 ? me : MPI_ANY_SOURCE, 7, comm,
                  &requests[static_cast<std::size_t>(i)]);
    };
    if (round == 0) receives();
    for (int i = 0; i < n; ++i) {
      out[static_cast<std::size_t>(i)] = i + round * n;
      MPI_Isend(&out[static_cast<std::size_t>(i)], 1, MPI_INT, me, 7, comm, &requests[static_cast<std::size_t>(n + i)]);
    }
    if (round == 1) receives();
    MPI_Waitall(2 * n, requests.data(), MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; ++i) CHECK_EQ(in[static_cast<std::size_t>(i)], i + round * n);
  }
}

void buffered(int me, MPI_Comm comm) {
  std::vector<unsigned char> pool(2'000'000);
  std::vector<int> out(100'000, 3), in(100'000);
  MPI_Buffer_attach(pool.data(), static_cast<int>(pool.size()));
  for (int i = 0; i < 4; ++i) {
    out[0] = i;
    MPI_Bsend(out.data(), 100'000, MPI_INT, me, i, comm);
  }
  for (int i = 3; i >= 0; --i) {
    MPI_Recv(in.data(), 100'000, MPI_INT, me, i, comm, MPI_STATUS_IGNORE);
    CHECK_EQ(in[0], i);
    CHECK_EQ(in[99'999], 3);
  }
  void* address;
  int bytes;
  MPI_Buffer_detach(&address, &bytes);
  CHECK_EQ(bytes, pool.size());
}

// A message to oneself and one from elsewhere, an any-source receive: each is found, in order per source.
void with_a_peer(const World& w) {
  if (w.size < 2 || w.rank > 1) return;
  int from_self = 0, from_peer = 0;
  std::vector<MPI_Request> requests;
  std::vector<int> out(200);
  for (int i = 0; i < 100; ++i)
    for (const int to : {w.rank, 1 - w.rank}) {
      out[static_cast<std::size_t>(2 * i + (to == w.rank))] = i;
      requests.emplace_back();
      MPI_Isend(&out[static_cast<std::size_t>(2 * i + (to == w.rank))], 1, MPI_INT, to, 5, MPI_COMM_WORLD,
                &requests.back());
    }
  for (int i = 0; i < 200; ++i) {
    int value = -1;
    MPI_Status status;
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &status);
    CHECK_EQ(value, status.MPI_SOURCE == w.rank ? from_self++ : from_peer++);
  }
  CHECK_EQ(from_self, 100);
  CHECK_EQ(from_peer, 100);
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

}  // namespace

int main() {
  const World w = init();
  for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
    const int me = comm == MPI_COMM_SELF ? 0 : w.rank;
    sizes(me, comm);
    sendrecv_with_oneself(me, comm);
    thousands(me, comm);
    buffered(me, comm);
  }
  with_a_peer(w);
  return finish();
}
