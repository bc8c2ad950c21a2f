// Memory of a process, of its peers, and that it all works with many ranks: start, allreduce, messages to more and more
// peers, alltoall, stop; with --start-only, start and stop. Rank 0 prints one line a step, `step NAME peers=N
// key=mean/max …` in bytes a rank; the program that starts this one (scale_test.py) checks them.
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "check.h"

namespace {

int rank, size;

constexpr const char* names[] = {"rss", "pss", "private", "shared", "tables", "mapped", "descriptors"};
constexpr int kinds = 7;

/// `key: 123 kB` of a file in /proc/self, in bytes.
double field(const char* file, const char* key) {
  FILE* in = std::fopen(file, "re");
  if (in == nullptr) return 0;
  char line[256];
  double bytes = 0;
  while (std::fgets(line, sizeof line, in) != nullptr)
    if (std::strncmp(line, key, std::strlen(key)) == 0) bytes = std::atof(line + std::strlen(key)) * 1024;
  std::fclose(in);
  return bytes;
}

/// Bytes of this process' part of the shared memory that exist. Under our mpiexec all ranks are in one file.
double shared_memory() {
  for (int fd = 3; size > 0 && fd < 1024; ++fd) {
    char path[32], target[64] = {};
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct stat info;
    if (readlink(path, target, sizeof target - 1) > 0 && std::strstr(target, "memfd:heddle") != nullptr &&
        fstat(fd, &info) == 0)
      return static_cast<double>(info.st_blocks) * 512 / (std::getenv("HEDDLE_JOB") != nullptr ? std::max(size, 1) : 1);
  }
  return 0;
}

void measure(double value[kinds]) {
  value[0] = field("/proc/self/status", "VmRSS:");
  value[1] = field("/proc/self/smaps_rollup", "Pss:");
  value[2] = field("/proc/self/smaps_rollup", "Private_Clean:") + field("/proc/self/smaps_rollup", "Private_Dirty:");
  value[3] = shared_memory();
  value[4] = field("/proc/self/status", "VmPTE:");
  value[5] = 0;
  if (FILE* maps = std::fopen("/proc/self/maps", "re")) {
    char line[4400];
    while (std::fgets(line, sizeof line, maps) != nullptr) ++value[5];
    std::fclose(maps);
  }
  int next = dup(0);
  value[6] = next;  // the lowest one that is free: all below are taken
  close(next);
}

/// One line of mean and maximum over all ranks. Values are taken before the messages that gather them.
void report(const char* step, int peers) {
  MPI_Barrier(MPI_COMM_WORLD);
  double mine[kinds], sum[kinds], most[kinds];
  measure(mine);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Reduce(mine, sum, kinds, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(mine, most, kinds, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  std::printf("step %s peers=%d", step, peers);
  for (int k = 0; k < kinds; ++k) std::printf(" %s=%.0f/%.0f", names[k], sum[k] / size, most[k]);
  std::printf("\n");
  std::fflush(stdout);
}

/// A message to and from the rank at each distance in [from, to).
void talk(int from, int to) {
  for (int distance = from; distance < to; ++distance) {
    const int right = (rank + distance) % size, left = (rank - distance + size) % size;
    int got = -1;
    CHECK_OK(MPI_Sendrecv(&rank, 1, MPI_INT, right, distance, &got, 1, MPI_INT, left, distance, MPI_COMM_WORLD,
                          MPI_STATUS_IGNORE));
    CHECK_EQ(got, left);
  }
}

}  // namespace

int main(int argc, char** argv) {
  double before[kinds], after[kinds];
  const bool start_only = argc > 1 && std::strcmp(argv[1], "--start-only") == 0;  // for a look at the system calls
  if (!start_only) measure(before);
  CHECK_OK(MPI_Init(&argc, &argv));
  if (start_only) return MPI_Finalize();
  measure(after);  // of this rank, before the first message
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) {
    std::printf("ranks %d\n", size);
    for (const auto& [step, value] : {std::pair<const char*, double*>{"start", before}, {"init", after}}) {
      std::printf("step %s peers=0", step);
      for (int k = 0; k < kinds; ++k) std::printf(" %s=%.0f/%.0f", names[k], value[k], value[k]);
      std::printf("\n");
    }
    std::fflush(stdout);
  }
  long total = 0, mine = rank;
  CHECK_OK(MPI_Allreduce(&mine, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQ(total, static_cast<long>(size) * (size - 1) / 2);
  report("allreduce", 0);
  int done = 1;
  for (int peers = 8; done < size; peers *= 4) {
    const int end = std::min(peers + 1, size);
    talk(done, end);
    done = end;
    report("messages", done - 1);  // those sent to: a receiver needs nothing of the sender's
  }
  std::vector<int> out(static_cast<std::size_t>(size) * 4), in(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = rank * 1000000 + static_cast<int>(i);
  CHECK_OK(MPI_Alltoall(out.data(), 4, MPI_INT, in.data(), 4, MPI_INT, MPI_COMM_WORLD));
  for (std::size_t i = 0; i < in.size(); ++i)
    CHECK_EQ(in[i], static_cast<int>(i / 4) * 1000000 + rank * 4 + static_cast<int>(i % 4));
  report("alltoall", size - 1);
  CHECK_OK(MPI_Finalize());
}
