// ranks: 1 2 3
// threads: 4
// timeout: 120
// Four threads a rank exchange with all ranks at once: on one communicator by tag, and on a communicator each; blocking
// ping-pong, windows of nonblocking operations, persistent requests; every size; every byte and status checked.
#include "team.hpp"

using namespace test;

namespace {

constexpr int threads = 4;
constexpr std::size_t sizes[] = {0, 4, 64, 200, 5'000, 40'000, 300'000};

std::uint64_t seed_of(int from, int thread, int i) {
  return static_cast<std::uint64_t>(from) * 1'000'003 + static_cast<std::uint64_t>(thread) * 10'007 +
         static_cast<std::uint64_t>(i);
}

// Each thread exchanges with the thread of the same number on every rank, itself included.
void exchange(const World& w, MPI_Comm comm, int t, int tag) {
  for (int i = 0; i < 60; ++i) {
    const std::size_t n = sizes[static_cast<std::size_t>(i + t) % 7];
    const int to = (w.rank + i) % w.size, from = (w.rank + w.size * 60 - i) % w.size;
    std::vector<unsigned char> out(n + 1);
    Guarded in(n);
    fill(out.data(), n, seed_of(w.rank, t, i));
    MPI_Status status;
    MPI_Sendrecv(out.data(), static_cast<int>(n), MPI_BYTE, to, tag, in.data(), static_cast<int>(n), MPI_BYTE, from, tag,
                 comm, &status);
    CHECK_EQ(status.MPI_SOURCE, from);
    CHECK_EQ(status.MPI_TAG, tag);
    CHECK_EQ(count_of(status), n);
    CHECK_FILLED(in.data(), n, seed_of(from, t, i));
    CHECK(in.untouched_outside(n));
  }
}

void windows(const World& w, MPI_Comm comm, int t, int tag) {
  constexpr int depth = 32;
  for (int round = 0; round < 15; ++round) {
    const int to = (w.rank + round) % w.size, from = (w.rank + w.size * 15 - round) % w.size;
    std::vector<std::vector<unsigned char>> out(depth), in(depth);
    std::vector<MPI_Request> requests(2 * depth);
    std::vector<MPI_Status> statuses(2 * depth);
    for (std::size_t i = 0; i < depth; ++i) {
      const std::size_t n = sizes[(i + static_cast<std::size_t>(round)) % 6];
      in[i].resize(n + 1), out[i].resize(n + 1);
      MPI_Irecv(in[i].data(), static_cast<int>(n), MPI_BYTE, from, tag, comm, &requests[i]);
    }
    for (std::size_t i = 0; i < depth; ++i) {
      const std::size_t n = out[i].size() - 1;
      fill(out[i].data(), n, seed_of(w.rank, t, round * depth + static_cast<int>(i)));
      MPI_Isend(out[i].data(), static_cast<int>(n), MPI_BYTE, to, tag, comm, &requests[depth + i]);
    }
    MPI_Waitall(2 * depth, requests.data(), statuses.data());
    for (std::size_t i = 0; i < depth; ++i) {
      const std::size_t n = out[i].size() - 1;
      CHECK_EQ(count_of(statuses[i]), n);
      CHECK_EQ(statuses[i].MPI_SOURCE, from);
      CHECK_FILLED(in[i].data(), n, seed_of(from, t, round * depth + static_cast<int>(i)));
    }
  }
}

void persistent(const World& w, MPI_Comm comm, int t, int tag) {
  const int to = (w.rank + 1) % w.size, from = (w.rank + w.size - 1) % w.size;
  int out[50] = {}, in[50] = {};
  MPI_Request requests[2];
  MPI_Send_init(out, 50, MPI_INT, to, tag, comm, &requests[0]);
  MPI_Recv_init(in, 50, MPI_INT, from, tag, comm, &requests[1]);
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 50; ++i) out[i] = w.rank * 1'000'000 + t * 100'000 + round * 50 + i;
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 50; ++i) CHECK_EQ(in[i], from * 1'000'000 + t * 100'000 + round * 50 + i);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

}  // namespace

int main() {
  const World w = init_threads();
  Communicators comms(threads + 1);
  for (const bool own : {false, true})
    run_threads(threads, [&](int t) {
      const MPI_Comm comm = own ? comms[t] : comms[threads];
      const int tag = own ? 7 : 7 + t;
      exchange(w, comm, t, tag);
      windows(w, comm, t, tag);
      persistent(w, comm, t, tag);
    });
  comms.free();
  return finish();
}
