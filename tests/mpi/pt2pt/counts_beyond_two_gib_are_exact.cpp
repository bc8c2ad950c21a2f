// ranks: 2
// timeout: 300
// label: large
// A 2.2 GiB message: as MPI_Count bytes, and as an int count of a large type; the status gives the exact count through
// the _c inquiry and MPI_UNDEFINED through the int one. Needs 5 GiB of free memory and says so when it skips.
#include <cstdio>

#include "../support.hpp"

using namespace test;

namespace {

constexpr MPI_Count mib = 1 << 20, blocks = 2253, total = blocks * mib + 3;  // 2.2 GiB and an odd tail

long long available_mib() {
  FILE* file = std::fopen("/proc/meminfo", "r");
  char line[256];
  long long kib = 0;
  while (file && std::fgets(line, sizeof line, file))
    if (std::sscanf(line, "MemAvailable: %lld kB", &kib) == 1) break;
  if (file) std::fclose(file);
  return kib / 1024;
}

// A word at each MiB and at the very end: enough to see a truncated, wrapped or shifted transfer of this size.
void mark(unsigned char* data, std::uint64_t seed) {
  for (MPI_Count b = 0; b <= blocks; ++b) {
    const std::uint64_t word = mix(seed + static_cast<std::uint64_t>(b));
    const MPI_Count at = b < blocks ? b * mib + (b * 8) % (mib - 8) : total - 8;
    std::memcpy(data + at, &word, 8);
  }
}

void check_marks(const unsigned char* data, std::uint64_t seed) {
  for (MPI_Count b = 0; b <= blocks; ++b) {
    const MPI_Count at = b < blocks ? b * mib + (b * 8) % (mib - 8) : total - 8;
    std::uint64_t word = 0;
    std::memcpy(&word, data + at, 8);
    CHECK_EQ(word, mix(seed + static_cast<std::uint64_t>(b)));
  }
}

}  // namespace

int main() {
  const World w = init();
  // Rank 0 decides for both, so that no rank waits for one that skips.
  int enough = available_mib() > 6144;
  MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (!enough) {
    if (w.rank == 0) std::printf("skipped: less than 6 GiB of memory are free\n");
    return finish();
  }
  auto* data = static_cast<unsigned char*>(std::calloc(static_cast<std::size_t>(total), 1));
  CHECK(data != nullptr);

  MPI_Datatype mib_type;
  MPI_Type_contiguous(1 << 20, MPI_BYTE, &mib_type);
  MPI_Type_commit(&mib_type);

  if (w.rank == 0) {
    mark(data, 1);
    MPI_Send_c(data, total, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    mark(data, 2);
    MPI_Send(data, static_cast<int>(blocks), mib_type, 1, 2, MPI_COMM_WORLD);
  } else {
    MPI_Status status;
    MPI_Recv_c(data, total, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status);
    check_marks(data, 1);
    MPI_Count count = -1;
    MPI_Get_count_c(&status, MPI_BYTE, &count);
    CHECK_EQ(count, total);
    int small = 0;
    MPI_Get_count(&status, MPI_BYTE, &small);
    CHECK_EQ(small, MPI_UNDEFINED);
    MPI_Get_elements_c(&status, MPI_BYTE, &count);
    CHECK_EQ(count, total);

    std::memset(data + total - 8, 0, 8);
    MPI_Recv(data, static_cast<int>(blocks), mib_type, 0, 2, MPI_COMM_WORLD, &status);
    std::uint64_t word = 0;
    std::memcpy(&word, data + mib * 100 + 800, 8);
    CHECK_EQ(word, mix(2 + 100));
    std::memcpy(&word, data + mib * (blocks - 1) + ((blocks - 1) * 8) % (mib - 8), 8);
    CHECK_EQ(word, mix(2 + static_cast<std::uint64_t>(blocks) - 1));
    MPI_Get_count(&status, mib_type, &small);
    CHECK_EQ(small, blocks);
    MPI_Get_count_c(&status, MPI_BYTE, &count);
    CHECK_EQ(count, blocks * mib);
  }
  MPI_Type_free(&mib_type);
  std::free(data);
  return finish();
}
