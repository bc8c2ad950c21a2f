// ranks: 2
// timeout: 60
// endpoints: none (a process, not an endpoint, must stay until its sends are out)
// Sends that nobody can wait for, because their requests were freed while active, reach a receiver that asks for them long
// after the sender called MPI_Finalize: ordinary ones, persistent ones, and those that
// are half of an MPI_Isendrecv, of bytes that do not lie together.
#include <unistd.h>

#include <vector>

#include "../support.hpp"

using namespace test;

namespace {

constexpr int sizes[] = {8, 3'000'000};  // in one record, and waiting for its receive

}  // namespace

int main() {
  const World w = init();
  std::vector<std::vector<unsigned char>> buffers;
  for (int persistent = 0; persistent < 2; ++persistent)
    for (const int n : sizes) {
      const auto bytes = static_cast<std::size_t>(n);
      const int tag = 2 * (n == sizes[0]) + persistent;
      auto& buffer = buffers.emplace_back(bytes);
      if (w.rank == 0) {
        fill(buffer.data(), bytes, static_cast<std::uint64_t>(tag));
        MPI_Request request;
        if (persistent) {
          MPI_Ssend_init(buffer.data(), n, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request);
          MPI_Start(&request);
        } else {
          MPI_Issend(buffer.data(), n, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request);
        }
        MPI_Request_free(&request);
      }
    }
  constexpr int apart = 1'000'000, pair_tag = 10;
  auto& buffer = buffers.emplace_back(std::size_t{2} * apart);
  MPI_Datatype every_second;
  MPI_Type_vector(apart, 1, 2, MPI_BYTE, &every_second);
  MPI_Type_commit(&every_second);
  static char answer;
  if (w.rank == 0) {
    for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<unsigned char>(i / 2 % 251);
    MPI_Request request;
    MPI_Isendrecv(buffer.data(), 1, every_second, 1, pair_tag, &answer, 1, MPI_CHAR, 1, pair_tag, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  }
  MPI_Type_free(&every_second);
  MPI_Barrier(MPI_COMM_WORLD);
  if (w.rank == 1) {
    usleep(300'000);  // time for the sender to be gone, if it were not kept; nothing depends on it
    std::size_t next = 0;
    for (int persistent = 0; persistent < 2; ++persistent)
      for (const int n : sizes) {
        auto& buffer = buffers[next++];
        const int tag = 2 * (n == sizes[0]) + persistent;
        MPI_Recv(buffer.data(), n, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        std::vector<unsigned char> expected(buffer.size());
        fill(expected.data(), expected.size(), static_cast<std::uint64_t>(tag));
        CHECK(buffer == expected);
      }
    MPI_Send(&answer, 1, MPI_CHAR, 0, pair_tag, MPI_COMM_WORLD);
    buffer.assign(apart, 255);
    MPI_Recv(buffer.data(), apart, MPI_BYTE, 0, pair_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (std::size_t i = 0; i < apart; ++i) CHECK_EQ(buffer[i], i % 251);
  }
  return finish();
}
