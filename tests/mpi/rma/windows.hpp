// Windows for tests: memory of any flavour under one name, and the ways of opening an epoch.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "../support.hpp"

namespace test {

inline int rank_in(MPI_Comm comm) {
  int rank = -1;
  MPI_Comm_rank(comm, &rank);
  return rank;
}
inline int size_in(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

enum class Flavour { create, allocate, shared, dynamic };
inline constexpr Flavour all_flavours[] = {Flavour::create, Flavour::allocate, Flavour::shared, Flavour::dynamic};

inline const char* name_of(Flavour flavour) {
  constexpr const char* names[] = {"create", "allocate", "allocate_shared", "create_dynamic"};
  return names[static_cast<int>(flavour)];
}

inline MPI_Comm self_node_of(MPI_Comm comm) {
  MPI_Comm node;
  CHECK_OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  return node;
}

// True where MPI_Win_allocate_shared must succeed on `comm`: all its ranks are on one node, and shared memory has not been switched off.
// Collective.
inline bool can_share(MPI_Comm comm) {
  MPI_Comm node = self_node_of(comm);
  int here = size_in(node) == size_in(comm), all = 0;
  if (const char* off = std::getenv("HEDDLE_SHM"); off && !std::strcmp(off, "0")) {
    // Endpoints of one process share its memory in any case: the library itself says so.
    MPI_Win win = MPI_WIN_NULL;
    void* base = nullptr;
    MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN);
    const int code = MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, node, &base, &win);
    if (code) CHECK_EQ(error_class(code), MPI_ERR_RMA_SHARED);
    here = here && !code;
    if (!code) MPI_Win_free(&win);
  }
  MPI_Comm_free(&node);
  MPI_Allreduce(&here, &all, 1, MPI_INT, MPI_MIN, comm);
  return all;
}

// The flavours that can be had on `comm`. Collective.
inline std::vector<Flavour> flavours_on(MPI_Comm comm) {
  std::vector<Flavour> flavours;
  const bool shares = can_share(comm);
  for (const Flavour flavour : all_flavours)
    if (flavour != Flavour::shared || shares) flavours.push_back(flavour);
  return flavours;
}

// A window of `bytes` bytes at this rank; ranks may give different sizes and displacement units. Collective: making it and free().
class Memory {
 public:
  MPI_Win win = MPI_WIN_NULL;
  unsigned char* base = nullptr;  // this rank's memory, zero at first

  Memory(Flavour flavour, std::size_t bytes, MPI_Comm comm, int unit = 1, MPI_Info info = MPI_INFO_NULL) : flavour_(flavour), comm_(comm) {
    const auto size = static_cast<MPI_Aint>(bytes);
    if (flavour == Flavour::create || flavour == Flavour::dynamic) {
      own_.resize(bytes / sizeof(long double) + 1);
      base = reinterpret_cast<unsigned char*>(own_.data());
      std::memset(base, 0, bytes);  // the padding of long doubles too
    }
    if (flavour == Flavour::create) CHECK_OK(MPI_Win_create(base, size, unit, info, comm, &win));
    if (flavour == Flavour::allocate) CHECK_OK(MPI_Win_allocate(size, unit, info, comm, &base, &win));
    if (flavour == Flavour::shared) CHECK_OK(MPI_Win_allocate_shared(size, unit, info, comm, &base, &win));
    if (flavour == Flavour::dynamic) {
      CHECK_OK(MPI_Win_create_dynamic(info, comm, &win));
      attached_ = size > 0;
      if (attached_) CHECK_OK(MPI_Win_attach(win, base, size));
    }
    MPI_Aint own = 0;
    if (flavour == Flavour::dynamic) {
      unit = 1;
      MPI_Get_address(base, &own);
    } else if (bytes) {
      std::memset(base, 0, bytes);
    }
    const auto ranks = static_cast<std::size_t>(size_in(comm));
    starts_.resize(ranks);
    units_.resize(ranks);
    MPI_Allgather(&own, 1, MPI_AINT, starts_.data(), 1, MPI_AINT, comm);
    MPI_Allgather(&unit, 1, MPI_INT, units_.data(), 1, MPI_INT, comm);
  }
  Memory(const Memory&) = delete;
  Memory(Memory&& other) noexcept
      : win(std::exchange(other.win, MPI_WIN_NULL)), base(other.base), flavour_(other.flavour_), comm_(other.comm_), attached_(other.attached_),
        own_(std::move(other.own_)), starts_(std::move(other.starts_)), units_(std::move(other.units_)) {}
  ~Memory() { CHECK(win == MPI_WIN_NULL); }

  void free() {
    if (flavour_ == Flavour::dynamic) {
      CHECK_OK(MPI_Barrier(comm_));  // nobody may use what is detached
      if (attached_) CHECK_OK(MPI_Win_detach(win, base));
    }
    CHECK_OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL);
  }

  // The displacement of a byte of `rank`'s memory; `byte` must be a multiple of its displacement unit.
  MPI_Aint at(int rank, std::size_t byte) const {
    const auto r = static_cast<std::size_t>(rank);
    return starts_[r] + static_cast<MPI_Aint>(byte) / units_[r];
  }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(base);
  }
  Flavour flavour() const { return flavour_; }

 private:
  Flavour flavour_;
  MPI_Comm comm_;
  bool attached_ = false;
  std::vector<long double> own_;  // aligned for every basic type
  std::vector<MPI_Aint> starts_;
  std::vector<int> units_;
};

// Makes what a rank stored into its memory visible to operations of others, and the other way round. Collective.
inline void settle(MPI_Win win, MPI_Comm comm) {
  CHECK_OK(MPI_Win_lock_all(0, win));
  CHECK_OK(MPI_Win_sync(win));
  CHECK_OK(MPI_Win_unlock_all(win));
  CHECK_OK(MPI_Barrier(comm));
  CHECK_OK(MPI_Win_lock_all(0, win));
  CHECK_OK(MPI_Win_sync(win));
  CHECK_OK(MPI_Win_unlock_all(win));
}

enum class Epoch { fence, start, lock, lock_all };
inline constexpr Epoch all_epochs[] = {Epoch::fence, Epoch::start, Epoch::lock, Epoch::lock_all};

inline const char* name_of(Epoch epoch) {
  constexpr const char* names[] = {"fence", "start", "lock", "lock_all"};
  return names[static_cast<int>(epoch)];
}

// Calls body() in an epoch in which every rank may reach every rank. When it returns, all operations of all ranks are complete
// everywhere, and ranks may read their own memory. Collective.
template <typename Body>
void in_epoch(Epoch epoch, MPI_Win win, MPI_Comm comm, Body body) {
  const int ranks = size_in(comm);
  if (epoch == Epoch::fence) {
    CHECK_OK(MPI_Win_fence(0, win));
    body();
    CHECK_OK(MPI_Win_fence(0, win));
    return;
  }
  if (epoch == Epoch::start) {
    MPI_Group all;
    CHECK_OK(MPI_Win_get_group(win, &all));
    CHECK_OK(MPI_Win_post(all, 0, win));
    CHECK_OK(MPI_Win_start(all, 0, win));
    body();
    CHECK_OK(MPI_Win_complete(win));
    CHECK_OK(MPI_Win_wait(win));
    CHECK_OK(MPI_Group_free(&all));
    CHECK_OK(MPI_Barrier(comm));
    return;
  }
  settle(win, comm);
  if (epoch == Epoch::lock)
    for (int target = 0; target < ranks; ++target) CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
  else
    CHECK_OK(MPI_Win_lock_all(0, win));
  body();
  if (epoch == Epoch::lock)
    for (int target = 0; target < ranks; ++target) CHECK_OK(MPI_Win_unlock(target, win));
  else
    CHECK_OK(MPI_Win_unlock_all(win));
  settle(win, comm);
}

// MPI_MODE_NOCHECK for locks, after which those of MPICH 5.0.2 are never released.
inline int no_check() { return library_is_mpich() ? 0 : MPI_MODE_NOCHECK; }

// A duplicate of MPI_COMM_WORLD whose errors, and those of windows made on it, are returned once returning(win) was called too.
inline MPI_Comm returning_world() {
  MPI_Comm comm;
  CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  CHECK_OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  return comm;
}

}  // namespace test
