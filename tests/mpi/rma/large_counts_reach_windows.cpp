// ranks: 2
// timeout: 180
// processors: 1
// label: large
// The large forms with counts and displacements above 2^31, in windows above 4 GiB. The memory is one megabyte mapped again and
// again, so that it costs address space and not memory.
#include <sys/mman.h>

#include "windows.hpp"

using namespace test;

namespace {

constexpr MPI_Count mib = 1 << 20, large = (MPI_Count{1} << 31) + 5 * mib;

unsigned char* map_repeated(MPI_Count bytes) {
  const int fd = memfd_create("repeated", 0);
  CHECK(fd >= 0);
  CHECK_EQ(ftruncate(fd, mib), 0);
  const auto size = static_cast<std::size_t>(bytes);
  auto* data = static_cast<unsigned char*>(mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(data != MAP_FAILED);
  for (std::size_t at = 0; at < size; at += mib)
    CHECK(mmap(data + at, mib, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
  close(fd);
  return data;
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm comm = MPI_COMM_WORLD;
  const MPI_Aint bytes = 2 * large;
  unsigned char* const memory = map_repeated(bytes);
  unsigned char* const origin = map_repeated(large);
  MPI_Win win;
  CHECK_OK(MPI_Win_create_c(memory, bytes, 1, MPI_INFO_NULL, comm, &win));
  const int peer = 1 - w.rank;
  // The places of a megabyte stand for thousands, which all get the same bytes.
  fill(origin, mib, static_cast<std::uint64_t>(w.rank));
  CHECK_OK(MPI_Win_fence(0, win));
  CHECK_OK(MPI_Put_c(origin, large, MPI_BYTE, peer, large, large, MPI_BYTE, win));
  CHECK_OK(MPI_Win_fence(0, win));
  CHECK_FILLED(memory, mib, static_cast<std::uint64_t>(peer));
  CHECK_FILLED(memory + bytes - mib, mib, static_cast<std::uint64_t>(peer));
  std::memset(origin, 0, mib);
  CHECK_OK(MPI_Win_fence(0, win));
  CHECK_OK(MPI_Get_c(origin, large, MPI_BYTE, peer, large - mib, large, MPI_BYTE, win));
  CHECK_OK(MPI_Win_fence(0, win));
  CHECK_FILLED(origin, mib, static_cast<std::uint64_t>(w.rank));

  // One element beyond 2^31 elements, by operations that take few.
  if (w.rank == 0) {
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, peer, 0, win));
    const std::uint64_t value = 42;
    std::uint64_t before = 0, after = 0;
    CHECK_OK(MPI_Fetch_and_op(&value, &before, MPI_UINT64_T, peer, large + 64, MPI_SUM, win));
    CHECK_OK(MPI_Win_flush(peer, win));
    CHECK_OK(MPI_Get_accumulate_c(nullptr, 0, MPI_UINT64_T, &after, 1, MPI_UINT64_T, peer, large + 64, 1, MPI_UINT64_T, MPI_NO_OP, win));
    CHECK_OK(MPI_Win_unlock(peer, win));
    CHECK_EQ(after, before + value);
  }
  CHECK_OK(MPI_Win_free(&win));

  // A count above 2^31 of a type of no bytes.
  MPI_Datatype none;
  CHECK_OK(MPI_Type_contiguous(0, MPI_INT, &none));
  CHECK_OK(MPI_Type_commit(&none));
  int word = w.rank;
  CHECK_OK(MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, comm, &win));
  CHECK_OK(MPI_Win_fence(0, win));
  const int other = 5;
  CHECK_OK(MPI_Put_c(&other, large, none, peer, 0, large, none, win));
  CHECK_OK(MPI_Win_fence(0, win));
  CHECK_EQ(word, w.rank);
  CHECK_OK(MPI_Win_free(&win));
  CHECK_OK(MPI_Type_free(&none));
  munmap(memory, static_cast<std::size_t>(bytes));
  munmap(origin, static_cast<std::size_t>(large));
  return finish();
}
