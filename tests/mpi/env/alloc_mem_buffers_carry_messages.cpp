// ranks: 1 2
// MPI_Alloc_mem memory as message buffers: on the sending end, the receiving end and both, of all sizes, at odd offsets,
// rewritten between messages, next to blocks that come and go.
#include "../support.hpp"

using namespace test;

namespace {

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  CHECK_OK(MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &memory));
  CHECK(memory != nullptr);
  CHECK_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0u);
  return memory;
}

void exchange(const World& w, std::size_t bytes, std::size_t shift, bool out_shared, bool in_shared) {
  const int peer = w.size == 1 ? 0 : 1 - w.rank;
  const std::size_t room = bytes + shift + 1;
  std::vector<unsigned char> plain_out(room), plain_in(room);
  auto* out = out_shared ? static_cast<unsigned char*>(allocate(room)) : plain_out.data();
  auto* in = in_shared ? static_cast<unsigned char*>(allocate(room)) : plain_in.data();
  for (std::uint64_t round = 0; round < 3; ++round) {
    const std::uint64_t seed = bytes * 31 + round;
    fill(out + shift, bytes, seed + static_cast<std::uint64_t>(w.rank));
    std::memset(in, 0x77, room);
    MPI_Request requests[2];
    CHECK_OK(MPI_Irecv(in + shift, static_cast<int>(bytes), MPI_BYTE, peer, 3, MPI_COMM_WORLD, &requests[0]));
    CHECK_OK(MPI_Isend(out + shift, static_cast<int>(bytes), MPI_BYTE, peer, 3, MPI_COMM_WORLD, &requests[1]));
    CHECK_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK_FILLED(in + shift, bytes, seed + static_cast<std::uint64_t>(peer));
    for (std::size_t i = 0; i < shift; ++i) CHECK_EQ(in[i], 0x77);
    CHECK_EQ(in[room - 1], 0x77);
  }
  if (out_shared) CHECK_OK(MPI_Free_mem(out));
  if (in_shared) CHECK_OK(MPI_Free_mem(in));
}

}  // namespace

int main() {
  const World w = init();
  Random random(static_cast<std::uint64_t>(w.rank));
  std::vector<void*> others;  // so that the blocks of the messages come from everywhere
  for (const std::size_t bytes : {0u, 1u, 63u, 64u, 1000u, 4096u, 8192u, 16384u, 16385u, 65536u, 100'000u, 1u << 20, (3u << 20) + 5})
    for (const std::size_t shift : {0u, 1u, 40u})
      for (const int ends : {1, 2, 3}) {
        exchange(w, bytes, shift, ends & 1, ends & 2);
        others.push_back(allocate(random.below(300'000)));
        if (others.size() > 20) {
          const std::size_t which = random.below(others.size());
          CHECK_OK(MPI_Free_mem(others[which]));
          others.erase(others.begin() + static_cast<std::ptrdiff_t>(which));
        }
      }
  for (void* block : others) CHECK_OK(MPI_Free_mem(block));
  return finish();
}
