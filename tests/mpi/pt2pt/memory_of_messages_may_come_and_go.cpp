// ranks: 2
// timeout: 60
// What registration of memory with a network adapter gets wrong: an address whose memory was unmapped and mapped anew between two
// messages (a remembered registration would read the old pages), memory that may only be read, memory that is a file's, a process that
// forks while its buffers are registered (the pages that the adapter knows might become the child's).
#include <sys/mman.h>
#include <sys/wait.h>

#include "../support.hpp"

using namespace test;

namespace {

constexpr std::size_t bytes = (3 << 20) + 4096;

void* map(int protection, int flags, int fd, void* at = nullptr) {
  void* memory = mmap(at, bytes, protection, flags | (at ? MAP_FIXED : 0), fd, 0);
  CHECK(memory != MAP_FAILED);
  return memory;
}

/// Rank 0's `out` arrives in rank 1's `in`, which shows `seed` afterwards.
void transfer(const World& w, const void* out, void* in, std::uint64_t seed) {
  if (w.rank == 0) {
    MPI_Send(out, static_cast<int>(bytes), MPI_BYTE, 1, 7, MPI_COMM_WORLD);
  } else {
    MPI_Recv(in, static_cast<int>(bytes), MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_FILLED(in, bytes, seed);
  }
}

/// The same address each time, other pages each time, at both ends.
void mapped_anew(const World& w) {
  void* at = nullptr;
  for (std::uint64_t round = 0; round < 4; ++round) {
    void* memory = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, at);
    if (w.rank == 0) fill(memory, bytes, round);
    transfer(w, memory, memory, round);
    munmap(memory, bytes);
    at = memory;
  }
}

/// From malloc, whose large blocks are mapped and unmapped behind the program's back.
void allocated_anew(const World& w) {
  for (std::uint64_t round = 10; round < 14; ++round) {
    void* memory = std::malloc(bytes);
    CHECK(memory != nullptr);
    if (w.rank == 0) fill(memory, bytes, round);
    transfer(w, memory, memory, round);
    std::free(memory);
  }
}

void read_only(const World& w) {
  void* out = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  fill(out, bytes, 20);
  CHECK_EQ(mprotect(out, bytes, PROT_READ), 0);
  std::vector<unsigned char> in(bytes);
  for (int round = 0; round < 2; ++round) transfer(w, out, in.data(), 20);
  munmap(out, bytes);
}

void of_a_file(const World& w) {
  std::FILE* file = std::tmpfile();
  CHECK(file != nullptr);
  std::vector<unsigned char> data(bytes);
  fill(data.data(), bytes, 30);
  CHECK_EQ(std::fwrite(data.data(), 1, bytes, file), bytes);
  CHECK_EQ(std::fflush(file), 0);
  void* out = map(PROT_READ, MAP_SHARED, fileno(file));
  std::fill(data.begin(), data.end(), 0);
  transfer(w, out, data.data(), 30);
  munmap(out, bytes);
  std::fclose(file);
}

/// A child lives while the parent goes on with buffers that were used before the fork; each writes its own.
void forked(const World& w) {
  std::vector<unsigned char> buffer(bytes);
  fill(buffer.data(), bytes, 40);
  transfer(w, buffer.data(), buffer.data(), 40);
  int gate[2];
  CHECK_EQ(pipe(gate), 0);
  const pid_t child = fork();
  CHECK_GE(child, 0);
  if (child == 0) {  // only what is allowed after fork in a process with threads
    std::memset(buffer.data(), 0xee, bytes);
    close(gate[1]);
    char byte;
    _exit(read(gate[0], &byte, 1) == 0 && buffer[bytes / 2] == 0xee ? 0 : 1);
  }
  close(gate[0]);
  for (std::uint64_t round = 41; round < 44; ++round) {
    if (w.rank == 0) fill(buffer.data(), bytes, round);
    transfer(w, buffer.data(), buffer.data(), round);
  }
  close(gate[1]);
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  transfer(w, buffer.data(), buffer.data(), 43);
}

}  // namespace

int main() {
  const World w = init();
  mapped_anew(w);
  allocated_anew(w);
  read_only(w);
  of_a_file(w);
  forked(w);
  return finish();
}
