// ranks: 1 2
// env: HEDDLE_SHARED_HEAP=1
// launcher: own (it loads the heap)
// timeout: 120
// binary: own (run with the heap preloaded, and by the tests of launching)
// With HEDDLE_SHARED_HEAP=1: messages from malloc'd, new'd, calloc'd and realloc'd buffers, made before MPI_Init and after, arrive
// intact; the buffers really are shared; realloc keeps contents in both directions over the size from which blocks are shared.
#include <dlfcn.h>
#include <malloc.h>

#include <utility>

#include "../support.hpp"

using namespace test;

namespace {

struct Heap {  // what libheddle_heap.so tells
  int fd;
  std::byte* base;
  std::size_t bytes;
};

const Heap* heap() {
  auto* function = reinterpret_cast<const Heap* (*)()>(dlsym(RTLD_DEFAULT, "heddle_program_heap_1"));
  return function ? function() : nullptr;
}

bool is_shared(const void* p) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(p) - heap()->base) < heap()->bytes;
}

void exchange(const World& w, unsigned char* out, unsigned char* in, std::size_t bytes, std::uint64_t seed) {
  const int peer = w.size - 1 - w.rank, n = static_cast<int>(bytes);
  fill(out, bytes, seed + static_cast<std::uint64_t>(w.rank));
  MPI_Request requests[2];
  MPI_Irecv(in, n, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, n, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK_FILLED(in, bytes, seed + static_cast<std::uint64_t>(peer));
}

unsigned char* bytes_of(void* p) { return static_cast<unsigned char*>(p); }

}  // namespace

int main() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 77;  // sanitizers replace malloc themselves
#endif
  constexpr std::size_t early_bytes = 1 << 20;
  unsigned char* early = bytes_of(malloc(early_bytes));
  unsigned char* early_too = bytes_of(malloc(early_bytes));
  const World w = init();
  CHECK(heap() != nullptr);
  CHECK(is_shared(early));
  exchange(w, early, early_too, early_bytes, 1);
  free(early);

  std::uint64_t seed = 10;
  for (const std::size_t bytes : {1000u, 65535u, 65536u, 100'001u, 1u << 20, (5u << 20) + 3}) {
    auto* out = new unsigned char[bytes];
    void* aligned = nullptr;
    CHECK_EQ(posix_memalign(&aligned, 1 << 16, bytes), 0);
    CHECK_EQ(reinterpret_cast<std::uintptr_t>(aligned) % (1 << 16), 0u);
    CHECK_EQ(is_shared(out), bytes >= 65536);
    CHECK_EQ(is_shared(aligned), bytes >= 65536);
    CHECK_GE(malloc_usable_size(out), bytes);
    exchange(w, out, bytes_of(aligned), bytes, ++seed);
    exchange(w, bytes_of(aligned), out, bytes, ++seed);
    delete[] out;
    free(aligned);
    auto* zero = bytes_of(calloc(bytes, 1));  // memory that was in use a moment ago
    for (std::size_t i = 0; i < bytes; ++i) CHECK_EQ(zero[i], 0);
    exchange(w, zero, early_too, std::min(bytes, early_bytes), ++seed);
    free(zero);
  }
  free(early_too);

  std::size_t bytes = 10'000;
  auto* moving = bytes_of(malloc(bytes));
  fill(moving, bytes, 5);
  for (const std::size_t next : {70'000u, 200'000u, 3'000'000u, 100'000u, 60'000u, 65'536u, 65'535u, 30'000'000u, 500u}) {
    moving = bytes_of(realloc(moving, next));
    CHECK(moving != nullptr);
    CHECK_FILLED(moving, std::min(bytes, next), 5);
    CHECK(next < 65536 || is_shared(moving));
    bytes = next;
    fill(moving, bytes, 5);
  }
  free(moving);
  errno = 0;
  volatile std::size_t too_much = static_cast<std::size_t>(-1) / 4;
  CHECK(malloc(too_much) == nullptr);
  CHECK_EQ(errno, ENOMEM);
  volatile std::size_t too_many = static_cast<std::size_t>(-1) / 2;  // volatile: the compiler would warn
  CHECK(reallocarray(nullptr, too_many, 3) == nullptr);
  return finish();
}
