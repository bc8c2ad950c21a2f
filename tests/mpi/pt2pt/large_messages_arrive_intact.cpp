// ranks: 2
// timeout: 120
// 1 MiB to 64 MiB and a byte around, from malloc and from MPI_Alloc_mem, one way and both ways at once, posted early
// and late, several in flight; buffers rewritten between messages so that a stale copy shows.
#include "../support.hpp"

using namespace test;

namespace {

struct Buffer {
  Buffer(std::size_t bytes, bool from_mpi) : from_mpi_(from_mpi) {
    if (from_mpi)
      MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &data);
    else
      data = std::malloc(bytes);
    CHECK(data != nullptr);
  }
  ~Buffer() {
    if (from_mpi_)
      MPI_Free_mem(data);
    else
      std::free(data);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* data = nullptr;

 private:
  bool from_mpi_;
};

void both_ways(const World& w, std::size_t bytes, bool from_mpi) {
  const int peer = 1 - w.rank, n = static_cast<int>(bytes);
  Buffer out(bytes, from_mpi), in(bytes, from_mpi);
  for (int round = 0; round < 3; ++round) {
    const auto seed = static_cast<std::uint64_t>(round * 2);
    fill(out.data, bytes, seed + static_cast<std::uint64_t>(w.rank));
    MPI_Request requests[2];
    MPI_Status statuses[2];
    if (round == 1) MPI_Barrier(MPI_COMM_WORLD);  // posted early, late, or as it comes
    MPI_Irecv(in.data, n, MPI_BYTE, peer, 5, MPI_COMM_WORLD, &requests[0]);
    if (round == 2) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(out.data, n, MPI_BYTE, peer, 5, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    CHECK_EQ(count_of(statuses[0]), bytes);
    CHECK_FILLED(in.data, bytes, seed + static_cast<std::uint64_t>(peer));
  }
}

// Eight 4 MiB messages at once, received in the reverse of their order by tag.
void several_in_flight(const World& w) {
  constexpr int messages = 8, n = 4 << 20;
  std::vector<std::vector<unsigned char>> data(messages, std::vector<unsigned char>(n));
  std::vector<MPI_Request> requests(messages);
  for (int i = 0; i < messages; ++i) {
    if (w.rank == 0) {
      fill(data[i].data(), n, static_cast<std::uint64_t>(i));
      MPI_Isend(data[i].data(), n, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
    } else {
      MPI_Irecv(data[i].data(), n, MPI_BYTE, 0, messages - 1 - i, MPI_COMM_WORLD, &requests[i]);
    }
  }
  MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
  if (w.rank == 1)
    for (int i = 0; i < messages; ++i) CHECK_FILLED(data[i].data(), n, static_cast<std::uint64_t>(messages - 1 - i));
}

}  // namespace

int main() {
  const World w = init();
  for (const bool from_mpi : {false, true})
    for (const std::size_t bytes : {(1u << 20) - 1, 1u << 20, (1u << 20) + 1, (3u << 20) + 17, 64u << 20})
      both_ways(w, bytes, from_mpi);
  several_in_flight(w);
  return finish();
}
