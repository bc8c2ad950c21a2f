// MPI_Init_thread asked for one of the thread levels.
#pragma once

#include <thread>

#include "../support.hpp"

namespace test {

// The whole test of a level.
inline int check_thread_level(int level) {
  int provided = -1, queried = -2, is_main = -1;
  CHECK_OK(MPI_Init_thread(nullptr, nullptr, level, &provided));
  CHECK(provided >= level && provided <= MPI_THREAD_MULTIPLE);
  CHECK_OK(MPI_Query_thread(&queried));
  CHECK_EQ(queried, provided);
  CHECK_OK(MPI_Is_thread_main(&is_main));
  CHECK_EQ(is_main, 1);
  if (provided > MPI_THREAD_SINGLE) std::thread([] {
      int other = -1;
      CHECK_OK(MPI_Is_thread_main(&other));
      CHECK_EQ(other, 0);
    }).join();
  const World w = world();
  int got = -1;
  const int to = (w.rank + 1) % w.size, from = (w.rank + w.size - 1) % w.size;
  MPI_Sendrecv(&w.rank, 1, MPI_INT, to, 0, &got, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQ(got, from);
  return finish();
}

}  // namespace test
