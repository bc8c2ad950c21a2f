// traffic [--alloc BYTES] [--message BYTES] [--pause]: every rank exchanges messages of up to --message bytes with every other, in
// and out of memory of MPI_Alloc_mem, then reduces. Each byte is checked. --pause: rank 0 says "ready" and waits for its standard
// input to end, while the others wait for it.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "../mpi/support.hpp"

using namespace test;

namespace {

void exchange(World w, unsigned char* out, unsigned char* in, std::size_t bytes) {
  for (int distance = 1; distance < w.size; ++distance) {
    const int to = (w.rank + distance) % w.size, from = (w.rank + w.size - distance) % w.size;
    fill(out, bytes, mix(static_cast<std::uint64_t>(w.rank * w.size + to)));
    std::memset(in, 0xee, bytes);
    MPI_Sendrecv(out, static_cast<int>(bytes), MPI_BYTE, to, 1, in, static_cast<int>(bytes), MPI_BYTE, from, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK_EQ(first_wrong(in, bytes, mix(static_cast<std::uint64_t>(from * w.size + w.rank))), bytes);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t alloc = 1 << 20, message = 1 << 20;
  bool pause = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view key = argv[i];
    if (key == "--pause") pause = true;
    else if (key == "--alloc" && i + 1 < argc) alloc = std::strtoull(argv[++i], nullptr, 10);
    else if (key == "--message" && i + 1 < argc) message = std::strtoull(argv[++i], nullptr, 10);
    else check_fail(__FILE__, __LINE__, "unknown option %s", argv[i]);
  }
  const World w = init();
  MPI_Barrier(MPI_COMM_WORLD);
  if (pause) {
    if (w.rank == 0) {
      std::puts("ready");
      std::fflush(stdout);
      while (std::getchar() != EOF) {}
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  // More than there is: what does not fit into shared memory has to come from elsewhere.
  unsigned char* shared = nullptr;
  CHECK_OK(MPI_Alloc_mem(static_cast<MPI_Aint>(alloc), MPI_INFO_NULL, &shared));
  std::memset(shared, 1, alloc);
  std::vector<unsigned char> own(message), in(message);
  MPI_Comm comms[4];  // several, so that several VCIs are used
  for (MPI_Comm& comm : comms) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int one = 1, sum = 0;
    for (int i = 0; i < 8; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK_EQ(sum, w.size);
  }
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{3000}, std::size_t{8192}, std::size_t{20'000}, message}) {
    exchange(w, own.data(), in.data(), std::min(bytes, message));
    exchange(w, shared, in.data(), std::min({bytes, message, alloc}));
    exchange(w, own.data(), shared, std::min({bytes, message, alloc}));
  }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  CHECK_OK(MPI_Free_mem(shared));
  if (w.rank == 0) std::puts("all bytes as sent");
  return finish();
}
