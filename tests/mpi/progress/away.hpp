// Ranks that stay out of MPI while others need their library: what the tests of this folder share.
#pragma once

#include <dirent.h>

#include <cstdio>

#include "../litmus/litmus.hpp"

namespace test {

// Stays out of MPI until `number` is `value`. False after 30 seconds: so much does a test lose that fails.
inline bool away_until(const std::atomic<int>& number, int value) {
  for (int i = 0; i < 30'000 && number.load() < value; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return number.load() >= value;
}

// How many threads of the library's own that make progress this process has.
inline int servers() {
  int found = 0;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* task = readdir(tasks)) {
    const std::string path = std::string("/proc/self/task/") + task->d_name + "/comm";
    char name[32] = "";
    if (FILE* file = std::fopen(path.c_str(), "r")) {
      if (!std::fgets(name, sizeof name, file)) *name = 0;
      std::fclose(file);
    }
    found += std::strcmp(name, "heddle-server\n") == 0;
  }
  closedir(tasks);
  return found;
}

struct Away {
  std::atomic<int> posted, taken, sent, got;
};

// Messages between two ranks of which one is away, and can be told so only past MPI. Each has a VCI of its own to be met at for the first time.
inline void exchange_with_the_absent(const World& w, int rounds) {
  Away& shared = share_past_mpi<Away>(w);
  Communicators comms(4);
  for (int round = 0; round < rounds; ++round) {
    const MPI_Comm comm = comms[round % 4];
    const int bytes = round % 3 == 0 ? 60'000 : round % 3 == 1 ? 1 << 20 : 5'000'000;
    const auto seed = static_cast<std::uint64_t>(round);
    std::vector<unsigned char> data(static_cast<std::size_t>(bytes));
    int small = -1;
    MPI_Request requests[2];
    // The receiver has posted its receives and is away.
    if (w.rank == 1) {
      MPI_Irecv(data.data(), bytes, MPI_BYTE, 0, 1, comm, &requests[0]);
      MPI_Irecv(&small, 1, MPI_INT, 0, 2, comm, &requests[1]);
      shared.posted.store(round + 1);
      CHECK(away_until(shared.taken, round + 1));
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      CHECK_FILLED(data.data(), data.size(), seed);
      CHECK_EQ(small, round);
    } else if (w.rank == 0) {
      CHECK(away_until(shared.posted, round + 1));
      fill(data.data(), data.size(), seed);
      MPI_Send(data.data(), bytes, MPI_BYTE, 1, 1, comm);
      MPI_Ssend(&round, 1, MPI_INT, 1, 2, comm);
      shared.taken.store(round + 1);
    }
    // The sender is away, and then the receive is posted.
    if (w.rank == 0) {
      fill(data.data(), data.size(), seed + 1000);
      MPI_Isend(data.data(), bytes, MPI_BYTE, 1, 3, comm, &requests[0]);
      shared.sent.store(round + 1);
      CHECK(away_until(shared.got, round + 1));
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    } else if (w.rank == 1) {
      CHECK(away_until(shared.sent, round + 1));
      MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 3, comm, MPI_STATUS_IGNORE);
      CHECK_FILLED(data.data(), data.size(), seed + 1000);
      shared.got.store(round + 1);
    }
  }
  comms.free();
}

}  // namespace test
