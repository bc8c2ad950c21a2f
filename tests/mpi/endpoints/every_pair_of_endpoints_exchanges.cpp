// ranks: 1 2 3
// threads: 4
// timeout: 120
// Each process makes its own number of endpoints, some none; each endpoint, driven by a thread of its own, exchanges messages
// of many sizes with every other (also those of its process, and itself), with wildcards, probes and synchronous sends;
// then collectives, duplicates and splits of the endpoints communicator give what as many processes would get.
#include "../threads/team.hpp"

#include <mpix.h>

using namespace test;

namespace {

std::uint64_t seed_of(int from, int to, int round) { return mix(static_cast<std::uint64_t>(from * 1000 + to) * 7919 + round); }

void exchange(MPI_Comm comm, int rounds) {
  int rank = -1, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const std::size_t sizes[] = {0, 8, 100, 1000, 5000, 9000, 40'000, 300'000};
  for (int round = 0; round < rounds; ++round)
    for (const std::size_t n : sizes) {
      std::vector<std::vector<unsigned char>> out(size), in(size);
      std::vector<MPI_Request> requests;
      for (int peer = 0; peer < size; ++peer) {
        in[peer].resize(n + 1);
        out[peer].resize(n + 1);
        fill(out[peer].data(), n, seed_of(rank, peer, round));
        requests.emplace_back();
        MPI_Irecv(in[peer].data(), static_cast<int>(n), MPI_BYTE, peer, round, comm, &requests.back());
      }
      for (int peer = 0; peer < size; ++peer) {
        requests.emplace_back();
        if (round % 2) MPI_Issend(out[peer].data(), static_cast<int>(n), MPI_BYTE, peer, round, comm, &requests.back());
        else MPI_Isend(out[peer].data(), static_cast<int>(n), MPI_BYTE, peer, round, comm, &requests.back());
      }
      MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
      for (int peer = 0; peer < size; ++peer) CHECK_FILLED(in[peer].data(), n, seed_of(peer, rank, round));
    }
  // In order from each source, though received by probe and wildcard.
  std::vector<int> last(size, -1);
  std::vector<MPI_Request> sends(static_cast<std::size_t>(size) * 20);
  std::vector<int> numbers(20);
  for (int i = 0; i < 20; ++i) numbers[static_cast<std::size_t>(i)] = i;
  for (int i = 0; i < 20; ++i)
    for (int peer = 0; peer < size; ++peer)
      MPI_Isend(&numbers[static_cast<std::size_t>(i)], 1, MPI_INT, peer, 7, comm, &sends[static_cast<std::size_t>(i * size + peer)]);
  for (int i = 0; i < 20 * size; ++i) {
    MPI_Status status;
    int value = -1;
    if (i % 2) MPI_Probe(MPI_ANY_SOURCE, 7, comm, &status);
    MPI_Recv(&value, 1, MPI_INT, i % 2 ? status.MPI_SOURCE : MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
    CHECK_EQ(value, last[static_cast<std::size_t>(status.MPI_SOURCE)] + 1);
    last[static_cast<std::size_t>(status.MPI_SOURCE)] = value;
  }
  MPI_Waitall(static_cast<int>(sends.size()), sends.data(), MPI_STATUSES_IGNORE);
}

void collectives(MPI_Comm comm) {
  int rank = -1, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (const int n : {1, 100, 5000, 100'000}) {
    std::vector<long> in(static_cast<std::size_t>(n)), out(in);
    for (int i = 0; i < n; ++i) in[static_cast<std::size_t>(i)] = i + rank;
    MPI_Allreduce(in.data(), out.data(), n, MPI_LONG, MPI_SUM, comm);
    for (int i = 0; i < n; ++i) CHECK_EQ(out[static_cast<std::size_t>(i)], static_cast<long>(i) * size + size * (size - 1) / 2);
    MPI_Request request;
    std::vector<long> all(static_cast<std::size_t>(n) * static_cast<std::size_t>(size));
    MPI_Iallgather(in.data(), n, MPI_LONG, all.data(), n, MPI_LONG, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int r = 0; r < size; ++r) CHECK_EQ(all[static_cast<std::size_t>(r) * static_cast<std::size_t>(n)], r);
    MPI_Bcast(out.data(), n, MPI_LONG, size - 1, comm);
    MPI_Barrier(comm);
  }
}

void drive(MPI_Comm comm) {
  exchange(comm, 2);
  for (int i = 0; i < 5; ++i) collectives(comm);
  MPI_Comm twin, half;
  MPI_Comm_dup(comm, &twin);
  int rank = -1, result = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_split(twin, rank % 2, -rank, &half);
  MPI_Comm_compare(comm, twin, &result);
  CHECK_EQ(result, MPI_CONGRUENT);
  exchange(half, 1);
  collectives(half);
  MPI_Comm_free(&comm);
  exchange(twin, 1);
  MPI_Comm_free(&half);
  MPI_Comm_free(&twin);
}

}  // namespace

int main() {
  const World w = init_threads();
  const int shapes[][3] = {{2, 2, 2}, {1, 3, 0}, {4, 1, 2}};
  for (const auto& shape : shapes) {
    const int count = shape[w.rank];
    std::vector<MPI_Comm> comms(static_cast<std::size_t>(count) + 1, MPI_COMM_NULL);
    CHECK_OK(MPIX_Comm_create_endpoints(MPI_COMM_WORLD, count, MPI_INFO_NULL, count ? comms.data() : nullptr));
    int before = 0, total = 0;
    for (int r = 0; r < w.size; ++r) {
      if (r < w.rank) before += shape[r];
      total += shape[r];
    }
    for (int t = 0; t < count; ++t) {
      int rank = -1, size = 0;
      MPI_Comm_rank(comms[static_cast<std::size_t>(t)], &rank);
      MPI_Comm_size(comms[static_cast<std::size_t>(t)], &size);
      CHECK_EQ(rank, before + t);
      CHECK_EQ(size, total);
    }
    run_threads(count, [&](int t) { drive(comms[static_cast<std::size_t>(t)]); });
  }
  return finish();
}
