// ranks: 1
// timeout: 120
// A datatype freed after MPI_Mrecv and MPI_Imrecv used it is really gone: hundreds of large ones leave no memory behind.
#include <cstdio>
#include <vector>

#include "../support.hpp"

using namespace test;

namespace {

long resident_mib() {
  long pages = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  CHECK(file && std::fscanf(file, "%ld %ld", &pages, &resident) == 2);
  std::fclose(file);
  return resident >> 8;  // pages of 4 KiB
}

}  // namespace

int main() {
  const World w = init();
  constexpr int blocks = 1 << 16, times = 600;
  std::vector<int> lengths(blocks), displacements(blocks);
  for (int i = 0; i < blocks; ++i) {
    lengths[static_cast<std::size_t>(i)] = 1 + i % 2;
    displacements[static_cast<std::size_t>(i)] = 3 * i;
  }
  std::vector<unsigned char> in(3 * blocks), out(2 * blocks);
  long before = 0;
  for (int i = 0; i < times; ++i) {
    if (i == times / 10) before = resident_mib();
    MPI_Datatype type;
    MPI_Type_indexed(blocks, lengths.data(), displacements.data(), MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Request send, receive;
    MPI_Isend(out.data(), 100, MPI_BYTE, w.rank, 0, MPI_COMM_WORLD, &send);
    MPI_Message message;
    MPI_Mprobe(w.rank, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    if (i % 2) {
      MPI_Mrecv(in.data(), 1, type, &message, MPI_STATUS_IGNORE);
    } else {
      MPI_Imrecv(in.data(), 1, type, &message, &receive);
      MPI_Wait(&receive, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
  }
  // Each has a megabyte or more. The bound leaves room for what sanitizers keep of freed memory.
  CHECK_LT(resident_mib() - before, 400);
  return finish();
}
