// ranks: 2
// timeout: 120
// A thousand windows alive at once, each with its own memory, locks and order; ten thousand made and freed, without a file descriptor, a
// mapping or a page that stays behind (from the hundredth on the process does not grow).
#include <dirent.h>

#include <cstdio>

#include "windows.hpp"

using namespace test;

namespace {

int entries_of(const char* directory) {
  DIR* all = opendir(directory);
  CHECK(all);
  int count = 0;
  while (readdir(all)) ++count;
  closedir(all);
  return count;
}

int mappings() {
  std::FILE* file = std::fopen("/proc/self/maps", "r");
  CHECK(file);
  int lines = 0;
  for (int c; (c = std::fgetc(file)) != EOF;) lines += c == '\n';
  std::fclose(file);
  return lines;
}

}  // namespace

int main(int argc, char** argv) {
  const World w = init();
  MPI_Comm comm = MPI_COMM_WORLD;
  const int cycles = argc > 1 ? std::atoi(argv[1]) : 2000;
  const auto flavours = flavours_on(comm);
  const int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size;
  {
    std::vector<Memory> alive;
    constexpr int windows = 1000;
    for (int i = 0; i < windows; ++i) alive.emplace_back(flavours[static_cast<std::size_t>(i) % flavours.size()], 64, comm, 8);
    std::vector<long> values(windows);
    for (int i = 0; i < windows; ++i) {
      const auto k = static_cast<std::size_t>(i);
      values[k] = w.rank * 10000 + i;
      CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, alive[k].win));
      CHECK_OK(MPI_Put(&values[k], 1, MPI_LONG, next, alive[k].at(next, 8), 1, MPI_LONG, alive[k].win));
    }
    for (int i = windows; i-- > 0;) CHECK_OK(MPI_Win_unlock(next, alive[static_cast<std::size_t>(i)].win));
    for (Memory& memory : alive) CHECK_OK(MPI_Win_fence(0, memory.win));
    for (int i = 0; i < windows; ++i) CHECK_EQ(alive[static_cast<std::size_t>(i)].as<long>()[1], before * 10000 + i);
    for (int i = 0; i < windows; ++i) alive[static_cast<std::size_t>((i * 7) % windows)].free();
  }
  int files = 0, mapped = 0;
  for (int i = 0; i < cycles; ++i) {
    if (i == 100) files = entries_of("/proc/self/fd"), mapped = mappings();
    Memory memory(flavours[static_cast<std::size_t>(i) % flavours.size()], 64u << i % 8, comm, 8);
    const long value = i;
    CHECK_OK(MPI_Win_fence(0, memory.win));
    CHECK_OK(MPI_Put(&value, 1, MPI_LONG, next, memory.at(next, 8), 1, MPI_LONG, memory.win));
    CHECK_OK(MPI_Win_fence(0, memory.win));
    CHECK_EQ(memory.as<long>()[1], i);
    MPI_Barrier(comm);
    memory.free();
  }
  if (!library_is_mpich() && cycles > 100) {
    CHECK_LE(entries_of("/proc/self/fd"), files + 4);
    CHECK_LE(mappings(), mapped + 32);  // what malloc maps meanwhile
  }
  return finish();
}
