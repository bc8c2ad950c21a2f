// ranks: 2
// timeout: 60
// endpoints: none (a process, not an endpoint, must stay until its receives are over)
// A receive whose request was freed while active, then MPI_Finalize, and only then the send: the receiver is still there, the sender
// ends, the data is in the buffer.
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "../support.hpp"

using namespace test;

namespace {

constexpr int sizes[] = {8, 3'000'000};  // in one record, and in steps that need both ends

}  // namespace

int main() {
  const World w = init();
  std::vector<std::vector<unsigned char>> buffers;
  for (const int n : sizes)
    for (int persistent = 0; persistent < 2; ++persistent) {
      auto& buffer = buffers.emplace_back(static_cast<std::size_t>(n));
      const int tag = static_cast<int>(buffers.size());
      if (w.rank == 0) continue;
      MPI_Request request;
      if (persistent) {
        MPI_Recv_init(buffer.data(), n, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
      } else {
        MPI_Irecv(buffer.data(), n, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request);
      }
      MPI_Request_free(&request);
    }
  MPI_Barrier(MPI_COMM_WORLD);
  if (w.rank == 0) usleep(300'000);  // time for the receiver to be gone, if it were not kept; nothing depends on it
  for (std::size_t i = 0; w.rank == 0 && i < buffers.size(); ++i) {
    auto& buffer = buffers[i];
    fill(buffer.data(), buffer.size(), i);
    CHECK_OK(MPI_Ssend(buffer.data(), static_cast<int>(buffer.size()), MPI_BYTE, 1, static_cast<int>(i) + 1, MPI_COMM_WORLD));
  }
  MPI_Finalize();
  if (w.rank == 0) return 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    std::vector<unsigned char> expected(buffers[i].size());
    fill(expected.data(), expected.size(), i);
    if (buffers[i] == expected) continue;
    std::fprintf(stderr, "message %zu is not in its buffer after MPI_Finalize\n", i);
    return 1;
  }
  return 0;
}
