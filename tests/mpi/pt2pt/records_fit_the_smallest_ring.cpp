// ranks: 2
// timeout: 60
// env: HEDDLE_RING=16K HEDDLE_EAGER=0 HEDDLE_DATA=1M HEDDLE_CMA=0
// Parameters that ask for larger records than a ring can carry: large messages come through all the same, in both directions.
#include <vector>

#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  const int peer = 1 - w.rank;
  for (const int n : {1, 5'000, 100'000, 3'000'000}) {
    const auto bytes = static_cast<std::size_t>(n);
    std::vector<unsigned char> out(bytes), in(bytes), expected(bytes);
    fill(out.data(), bytes, bytes + static_cast<std::size_t>(w.rank));
    fill(expected.data(), bytes, bytes + static_cast<std::size_t>(peer));
    MPI_Sendrecv(out.data(), n, MPI_BYTE, peer, 0, in.data(), n, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in == expected);
  }
  return finish();
}
