// ranks: 2
// timeout: 120
// env: HEDDLE_NET_PIECE=4K HEDDLE_NET_DEPTH=100000
// More large messages at once than there is room for: of the 64 that both ends may share the copying of, and over the network of
// reads that a provider keeps. All arrive, in order.
#include <algorithm>
#include <vector>

#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  const int peer = 1 - w.rank;
  constexpr int messages = 70;
  const auto bytes_of = [](int i) { return static_cast<std::size_t>(i == 0 ? 16'000'007 : 200'000 + i); };
  std::vector<std::vector<unsigned char>> out(messages), in(messages);
  std::vector<MPI_Request> requests(2 * messages);
  const auto seed = [](int rank, int i) { return static_cast<std::uint64_t>(2 * i + rank); };
  for (int i = 0; i < messages; ++i) {
    const auto k = static_cast<std::size_t>(i);
    in[k].resize(bytes_of(i));
    out[k].resize(bytes_of(i));
    fill(out[k].data(), out[k].size(), seed(w.rank, i));
  }
  for (int round = 0; round < 2; ++round) {  // posted before the messages come, and after
    const auto send_all = [&] {
      for (int i = 0; i < messages; ++i) {
        const auto k = static_cast<std::size_t>(i);
        MPI_Isend(out[k].data(), static_cast<int>(bytes_of(i)), MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[messages + k]);
      }
    };
    if (round == 1) send_all();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < messages; ++i) {
      const auto k = static_cast<std::size_t>(i);
      std::fill(in[k].begin(), in[k].end(), static_cast<unsigned char>(0));
      MPI_Irecv(in[k].data(), static_cast<int>(bytes_of(i)), MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[k]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (round == 0) send_all();
    MPI_Waitall(2 * messages, requests.data(), MPI_STATUSES_IGNORE);
    std::vector<unsigned char> expected;
    for (int i = 0; i < messages; ++i) {
      expected.resize(bytes_of(i));
      fill(expected.data(), expected.size(), seed(peer, i));
      CHECK(in[static_cast<std::size_t>(i)] == expected);
    }
  }
  return finish();
}
