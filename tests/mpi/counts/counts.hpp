// What the tests that count instructions share.
#pragma once

#include <cstdlib>

#include "../litmus/litmus.hpp"
#include "counting.hpp"

namespace test {

// MPI_THREAD_MULTIPLE; ends the test as skipped where instructions cannot be counted.
inline World init_to_count() {
  const World w = init_threads();
  if (can_count()) return w;
  std::printf("skipped: this machine or build cannot count instructions\n");
  MPI_Finalize();
  std::exit(77);
}

}  // namespace test
