// ranks: 2
// timeout: 60
// MPI_Request_free on active sends and receives: the handle is gone at once, the communication completes all the same.
#include <vector>

#include "../support.hpp"

using namespace test;

namespace {

// Looks into a buffer that the library may be filling, for nothing says when a freed receive is over: a race by design
// where another thread makes the progress, which ThreadSanitizer is kept from seeing.
__attribute__((no_sanitize("thread"), noinline)) bool is_in(const volatile unsigned char* buffer,
                                                            const std::vector<unsigned char>& expected) {
  const unsigned char* wanted = expected.data();
  for (std::size_t i = 0, n = expected.size(); i < n; ++i)
    if (buffer[i] != wanted[i]) return false;
  return true;
}

}  // namespace

int main() {
  const World w = init();
  const int peer = 1 - w.rank;
  for (const int n : {0, 1, 1'000, 50'000, 1'000'000})
    for (int mode = 0; mode < 3; ++mode) {
      const auto bytes = static_cast<std::size_t>(n);
      std::vector<unsigned char> out(bytes + 1), in(bytes + 1), token(1);
      const auto seed = bytes * 4 + static_cast<std::size_t>(mode);
      fill(out.data(), bytes, seed + static_cast<std::size_t>(w.rank));
      MPI_Request send, receive;
      if (mode == 0) MPI_Isend(out.data(), n, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &send);
      if (mode == 1) MPI_Issend(out.data(), n, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &send);
      if (mode == 2) {
        MPI_Send_init(out.data(), n, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &send);
        MPI_Start(&send);
      }
      MPI_Request_free(&send);
      CHECK(send == MPI_REQUEST_NULL);

      // The receive is freed too; that its data are in is known from a later message of the same sender that this one
      // cannot overtake in matching, and from the sender's knowledge that its own send is over.
      MPI_Irecv(in.data(), n, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &receive);
      MPI_Request_free(&receive);
      CHECK(receive == MPI_REQUEST_NULL);
      std::vector<unsigned char> expected(bytes);
      fill(expected.data(), bytes, seed + static_cast<std::size_t>(peer));
      CHECK(eventually([&] {
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);  // makes progress
        return is_in(in.data(), expected);
      }));
      // Twice: a rank that filled this one's buffer while it waited in the first has left that before the second ends.
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  // Many of them, never waited for: the messages all arrive.
  constexpr int many = 2'000;
  std::vector<int> values(many);
  for (int i = 0; i < many; ++i) {
    values[static_cast<std::size_t>(i)] = i;
    MPI_Request send;
    MPI_Isend(&values[static_cast<std::size_t>(i)], 1, MPI_INT, peer, 2, MPI_COMM_WORLD, &send);
    MPI_Request_free(&send);
  }
  for (int i = 0; i < many; ++i) {
    int got = -1;
    MPI_Recv(&got, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(got, i);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return finish();
}
