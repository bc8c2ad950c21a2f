// ranks: 1 2 4
// timeout: 60
// MPI_Win_allocate_shared gives one range of addresses, rank after rank, which every rank reads and writes directly; with
// alloc_shared_noncontig each part may lie elsewhere and is aligned. MPI_Win_shared_query finds every part, that of MPI_PROC_NULL too,
// also in windows that were created or allocated. Where ranks share no memory it is MPI_ERR_RMA_SHARED.
#include "windows.hpp"

using namespace test;

namespace {

struct Part {
  MPI_Aint size = -1;
  int unit = -1;
  unsigned char* base = nullptr;
};

Part query(MPI_Win win, int rank) {
  Part part;
  CHECK_OK(MPI_Win_shared_query(win, rank, &part.size, &part.unit, &part.base));
  MPI_Aint size = -1, unit = -1;
  unsigned char* base = nullptr;
  CHECK_OK(MPI_Win_shared_query_c(win, rank, &size, &unit, &base));
  CHECK(size == part.size && unit == part.unit && (base == part.base || size == 0));
  return part;
}

// Each rank writes all of its part by address; then each reads all of everyone's by address, and the first word by MPI_Get.
void check_parts(MPI_Win win, MPI_Comm comm, unsigned char* own, std::size_t (*size_of)(int rank), bool contiguous) {
  const int rank = rank_in(comm), n = size_in(comm);
  unsigned char* end = nullptr;
  int first = -1;
  for (int r = 0; r < n; ++r) {
    const Part part = query(win, r);
    CHECK_EQ(part.size, size_of(r));
    if (part.size || !library_is_mpich()) CHECK_EQ(part.unit, r + 1);  // 5.0.2: 0 where there is no memory
    if (r == rank && part.size) CHECK(part.base == own);
    if (!part.size) continue;
    if (first < 0) first = r;
    if (contiguous && end) CHECK(part.base == end);
    end = part.base + part.size;
  }
  const Part null = query(win, MPI_PROC_NULL);
  if (first < 0) {
    CHECK_EQ(null.size, 0);
  } else {
    CHECK_EQ(null.size, size_of(first));
    CHECK_EQ(null.unit, first + 1);
    CHECK(null.base == query(win, first).base);
  }
  for (int round = 0; round < 3; ++round) {
    CHECK_OK(MPI_Win_lock_all(no_check(), win));
    fill(own, size_of(rank), static_cast<std::uint64_t>(rank + 100 * round));
    CHECK_OK(MPI_Win_sync(win));
    CHECK_OK(MPI_Barrier(comm));
    CHECK_OK(MPI_Win_sync(win));
    for (int r = 0; r < n; ++r) {
      CHECK_FILLED(query(win, r).base, size_of(r), static_cast<std::uint64_t>(r + 100 * round));
      if (size_of(r) < 8) continue;
      std::uint64_t got = 0, direct = 0;
      CHECK_OK(MPI_Get(&got, 1, MPI_UINT64_T, r, 0, 1, MPI_UINT64_T, win));
      CHECK_OK(MPI_Win_flush(r, win));
      std::memcpy(&direct, query(win, r).base, 8);
      CHECK_EQ(got, direct);
    }
    // A store to another rank's memory is seen by its owner and by operations.
    CHECK_OK(MPI_Barrier(comm));
    const int next = (rank + 1) % n;
    if (size_of(next) >= 16) query(win, next).base[9] = static_cast<unsigned char>(rank + 77);
    CHECK_OK(MPI_Win_sync(win));
    CHECK_OK(MPI_Barrier(comm));
    CHECK_OK(MPI_Win_sync(win));
    if (size_of(rank) >= 16) CHECK_EQ(own[9], (rank + n - 1) % n + 77);
    CHECK_OK(MPI_Win_unlock_all(win));
    CHECK_OK(MPI_Barrier(comm));
  }
}

std::size_t some(int rank) { return rank % 3 == 1 ? 0 : 1000 + 24u * static_cast<unsigned>(rank); }
std::size_t odd(int rank) { return 17u + static_cast<unsigned>(rank); }
std::size_t pages(int rank) { return 3u * 4096 + 8u * static_cast<unsigned>(rank); }
std::size_t nothing(int) { return 0; }
std::size_t only_last_ones(int rank) { return rank < 1 ? 0 : 64; }

}  // namespace

int main() {
  const World w = init();
  MPI_Comm comm = returning_world();
  if (!can_share(comm)) {
    MPI_Win win = MPI_WIN_NULL;
    void* base = nullptr;
    CHECK_CLASS(MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_RMA_SHARED);
    MPI_Comm self;  // a rank shares with itself in any case
    CHECK_OK(MPI_Comm_dup(MPI_COMM_SELF, &self));
    CHECK_OK(MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, self, &base, &win));
    CHECK_EQ(query(win, 0).base, base);
    CHECK_OK(MPI_Win_free(&win));
    MPI_Comm_free(&self);
  } else {
    for (auto size_of : {some, odd, pages, nothing, only_last_ones})
      for (const char* noncontig : {static_cast<const char*>(nullptr), "false", "true"}) {
        MPI_Info info = MPI_INFO_NULL;
        if (noncontig) {
          CHECK_OK(MPI_Info_create(&info));
          CHECK_OK(MPI_Info_set(info, "alloc_shared_noncontig", noncontig));
        }
        MPI_Win win = MPI_WIN_NULL;
        unsigned char* base = nullptr;
        CHECK_OK(MPI_Win_allocate_shared(static_cast<MPI_Aint>(size_of(w.rank)), w.rank + 1, info, comm, &base, &win));
        const bool apart = noncontig && !std::strcmp(noncontig, "true");
        if (apart && size_of(w.rank)) CHECK_EQ(reinterpret_cast<std::uintptr_t>(base) % alignof(std::max_align_t), 0);
        check_parts(win, comm, base, size_of, !apart);
        CHECK_OK(MPI_Win_free(&win));
        if (noncontig) CHECK_OK(MPI_Info_free(&info));
      }
  }

  // Other flavours: one's own part is what it is; another's may be out of reach, and is then of size 0.
  for (const Flavour flavour : {Flavour::create, Flavour::allocate}) {
    Memory memory(flavour, 128, comm, 2);
    MPI_Win_set_errhandler(memory.win, MPI_ERRORS_RETURN);
    memory.base[5] = static_cast<unsigned char>(w.rank + 1);
    settle(memory.win, comm);
    for (int r = 0; r < w.size; ++r) {
      Part part;
      const int code = MPI_Win_shared_query(memory.win, r, &part.size, &part.unit, &part.base);
      if (library_is_mpich() && code) continue;  // 5.0.2 refuses what MPI-4.1 has allowed
      CHECK_OK(code);
      if (r == w.rank) {
        CHECK_EQ(part.size, 128);
        CHECK(part.base == memory.base);
      }
      CHECK(part.size == 0 || part.size == 128);
      if (!part.size) continue;
      CHECK_EQ(part.unit, 2);
      CHECK_EQ(part.base[5], r + 1);
    }
    MPI_Barrier(comm);
    memory.free();
  }
  MPI_Win win = MPI_WIN_NULL;
  CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  Part part;
  CHECK_CLASS(MPI_Win_shared_query(win, 0, &part.size, &part.unit, &part.base), MPI_ERR_RMA_FLAVOR);
  CHECK_OK(MPI_Win_free(&win));
  MPI_Comm_free(&comm);
  return finish();
}
