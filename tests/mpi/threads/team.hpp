// Threads for MPI tests: run a function on several and join them, with a barrier of their own.
#pragma once

#include <barrier>
#include <thread>
#include <vector>

#include "../support.hpp"

namespace test {

// Calls body(0..threads-1), each on a thread of its own (none of them the main thread), and returns when all are done.
template <typename Body>
void run_threads(int threads, Body body) {
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t) team.emplace_back([t, &body] { body(t); });
  for (auto& thread : team) thread.join();
}

// One duplicate of MPI_COMM_WORLD for each thread; free() before MPI_Finalize.
class Communicators {
 public:
  explicit Communicators(int count) : comms_(static_cast<std::size_t>(count)) {
    for (auto& comm : comms_) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  }
  void free() {
    for (auto& comm : comms_) MPI_Comm_free(&comm);
  }
  MPI_Comm operator[](int t) const { return comms_[static_cast<std::size_t>(t)]; }

 private:
  std::vector<MPI_Comm> comms_;
};

}  // namespace test
