// ranks: 2
// timeout: 120
// Every size around which a protocol could change: 0..300, then each power of two up to 128 KiB and its multiples by
// 3/2, with 1, 2 and 3 bytes around; aligned and odd buffers; posted before and after arrival; nothing written outside.
#include <algorithm>

#include "../support.hpp"

using namespace test;

namespace {

std::vector<std::size_t> boundary_sizes() {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i <= 300; ++i) sizes.push_back(i);
  for (std::size_t p = 256; p <= (128u << 10); p *= 2)
    for (const std::size_t base : {p, p + p / 2})
      for (int d = -3; d <= 3; ++d) sizes.push_back(base + static_cast<std::size_t>(d));
  for (std::size_t cell = 64; cell <= 1 << 16; cell += cell)  // a header of 8..64 bytes inside a power of two
    for (std::size_t header = 8; header <= 64; header += 8)
      if (cell > header) sizes.push_back(cell - header), sizes.push_back(cell - header + 1);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace

int main() {
  const World w = init();
  const int peer = 1 - w.rank;
  const auto sizes = boundary_sizes();
  const std::size_t largest = sizes.back();
  for (const std::size_t shift : {0u, 1u, 7u}) {
    Guarded out(largest, shift), in(largest, shift == 0 ? 0 : 8 - shift);
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const std::size_t n = sizes[k];
      const auto seed = k * 16 + shift;
      const int tag = static_cast<int>(k);
      MPI_Status status;
      // One direction posts its receive first, the other finds the message there; both swap on the next size.
      const bool first = (k % 2 == 0) == (w.rank == 0);
      fill(out.data(), n, seed + static_cast<std::uint64_t>(w.rank) * 1000003);
      in.wipe();
      if (first) {
        MPI_Request request;
        MPI_Irecv(in.data(), static_cast<int>(n), MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request);
        MPI_Send(out.data(), static_cast<int>(n), MPI_BYTE, peer, tag, MPI_COMM_WORLD);
        MPI_Wait(&request, &status);
      } else {
        MPI_Request request;
        MPI_Isend(out.data(), static_cast<int>(n), MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request);
        MPI_Recv(in.data(), static_cast<int>(largest), MPI_BYTE, peer, tag, MPI_COMM_WORLD, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
      CHECK_EQ(count_of(status), n);
      CHECK_EQ(status.MPI_SOURCE, peer);
      CHECK_EQ(status.MPI_TAG, tag);
      CHECK_FILLED(in.data(), n, seed + static_cast<std::uint64_t>(peer) * 1000003);
      CHECK(in.untouched_outside(n));
    }
  }
  return finish();
}
