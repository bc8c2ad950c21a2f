// ranks: 8 16
// timeout: 300
// Many more ranks than cores, in random pairs: every rank follows the same schedule of exchanges, of all sizes, with the
// wildcards and modes that fit; then a storm of barriers, and one rank that hears from all. A library whose waiting
// ranks keep the cores from the ones with work to do takes minutes here.
//
//   many_ranks [--rounds N] [--seed X]
#include <algorithm>
#include <numeric>

#include "../mpi/support.hpp"
#include "options.hpp"

using namespace test;

namespace {

std::size_t pick_size(Random& random) {
  switch (random.below(12)) {
    case 0: return random.below(400'000);
    case 1: return random.below(20'000);
    default: return random.below(500);
  }
}

// A random perfect matching of the ranks, the same on all: with an odd number one is left out.
std::vector<int> pairs(int size, Random& random) {
  std::vector<int> order(static_cast<std::size_t>(size)), partner(order.size(), MPI_PROC_NULL);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  for (std::size_t i = 0; i + 1 < order.size(); i += 2) {
    partner[static_cast<std::size_t>(order[i])] = order[i + 1];
    partner[static_cast<std::size_t>(order[i + 1])] = order[i];
  }
  return partner;
}

void pairwise(const World& w, int rounds, std::uint64_t seed) {
  Random random(seed);
  std::vector<unsigned char> out, in;
  for (int round = 0; round < rounds; ++round) {
    const int partner = pairs(w.size, random)[static_cast<std::size_t>(w.rank)];
    const std::size_t n = pick_size(random);
    const auto mode = random.below(4);
    if (partner == MPI_PROC_NULL) continue;
    const auto base = seed * 1'000'003 + static_cast<std::uint64_t>(round) * 131;
    out.resize(n + 1), in.resize(n + 1);
    fill(out.data(), n, base + static_cast<std::uint64_t>(w.rank));
    const int count = static_cast<int>(n);
    MPI_Request requests[2];
    MPI_Status status;
    switch (mode) {
      case 0:
        MPI_Sendrecv(out.data(), count, MPI_BYTE, partner, round, in.data(), count, MPI_BYTE, partner, round,
                     MPI_COMM_WORLD, &status);
        break;
      case 1:
        MPI_Irecv(in.data(), count, MPI_BYTE, MPI_ANY_SOURCE, round, MPI_COMM_WORLD, &requests[0]);
        MPI_Send(out.data(), count, MPI_BYTE, partner, round, MPI_COMM_WORLD);
        MPI_Wait(&requests[0], &status);
        break;
      case 2:
        MPI_Issend(out.data(), count, MPI_BYTE, partner, round, MPI_COMM_WORLD, &requests[0]);
        MPI_Probe(MPI_ANY_SOURCE, round, MPI_COMM_WORLD, &status);
        MPI_Recv(in.data(), count, MPI_BYTE, status.MPI_SOURCE, round, MPI_COMM_WORLD, &status);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        break;
      default:
        if (w.rank < partner) {
          MPI_Ssend(out.data(), count, MPI_BYTE, partner, round, MPI_COMM_WORLD);
          MPI_Recv(in.data(), count, MPI_BYTE, partner, round, MPI_COMM_WORLD, &status);
        } else {
          MPI_Recv(in.data(), count, MPI_BYTE, partner, round, MPI_COMM_WORLD, &status);
          MPI_Ssend(out.data(), count, MPI_BYTE, partner, round, MPI_COMM_WORLD);
        }
        break;
    }
    CHECK_EQ(status.MPI_SOURCE, partner);
    CHECK_EQ(count_of(status), n);
    CHECK_FILLED(in.data(), n, base + static_cast<std::uint64_t>(partner));
  }
}

// Everyone sends to everyone at once; receives by any source.
void all_to_all(const World& w, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    std::vector<int> out(static_cast<std::size_t>(w.size), w.rank * 1000 + round), seen(out.size(), 0);
    std::vector<MPI_Request> requests(out.size());
    for (int i = 0; i < w.size; ++i) {
      const auto to = static_cast<std::size_t>((w.rank + i) % w.size);
      MPI_Isend(&out[to], 1, MPI_INT, static_cast<int>(to), round, MPI_COMM_WORLD, &requests[to]);
    }
    for (int i = 0; i < w.size; ++i) {
      int value = -1;
      MPI_Status status;
      MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, round, MPI_COMM_WORLD, &status);
      CHECK_EQ(value, status.MPI_SOURCE * 1000 + round);
      CHECK_EQ(seen[static_cast<std::size_t>(status.MPI_SOURCE)]++, 0);
    }
    MPI_Waitall(w.size, requests.data(), MPI_STATUSES_IGNORE);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 600;
  std::uint64_t seed = 1;
  read_options(argc, argv, {{"--rounds", &rounds}, {"--seed", &seed}});
  const World w = init();
  pairwise(w, rounds, seed);
  all_to_all(w, rounds / 10);
  for (int i = 0; i < rounds; ++i) MPI_Barrier(MPI_COMM_WORLD);
  return finish();
}
