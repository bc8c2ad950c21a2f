#include "rma/synchronize.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <new>

#include "coll/internal.hpp"
#include "coll/run.hpp"
#include "proto/p2p.hpp"
#include "rma/locks.hpp"
#include "rma/messages.hpp"
#include "sync/cpu.hpp"
#include "sys/clock.hpp"
#include "sys/error.hpp"
#include "sys/params.hpp"
#include "vci/wait.hpp"

namespace heddle::rma {
namespace {

HEDDLE_PARAM_CHOICE(lock_scheme, "HEDDLE_RMA_LOCKS",
                    "how MPI_Win_lock_all excludes MPI_LOCK_EXCLUSIVE. two_level: by one word at rank 0 of the window; on_demand: by the lock of each rank, taken at the first "
                    "operation on it. The same on all ranks",
                    "two_level", "on_demand");

constexpr unsigned by_lock_all = opened_by_lock_all | locked_on_demand;

bool on_demand() noexcept { return lock_scheme.value() == 1; }

enum Tag : int { tag_post = 1, tag_complete };

/// Operations on mapped memory are loads and stores: a full fence puts them before what follows, in the eyes of all.
void fence_memory() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }

int no_memory() noexcept { return error(MPI_ERR_NO_MEM, "no memory to synchronize a window"); }

const char* name_of_opened(unsigned bits) noexcept {
  if (bits & opened_by_lock) return "MPI_Win_lock";
  if (bits & by_lock_all) return "MPI_Win_lock_all";
  return bits & opened_by_start ? "MPI_Win_start" : "MPI_Win_fence";
}

/// Makes progress and leaves the core to others: ever longer, so that a long wait costs nothing, but never for more than an eighth of the time
/// waited. (Locks are let go by other processes, which do not know who waits: there is nothing to be woken by.)
class Pause {
 public:
  explicit Pause(const WaitSubject& subject) noexcept : subject_(subject) {}
  void operator()() noexcept {
    if (progress_all()) return;
    using Process = heddle::detail::WaitingProcess;
    const std::int64_t waited = sys::now_ns() - since_;
    if (const std::int64_t long_ns = Process::report_after_ns(); long_ns && waited > long_ns && !reported_) {
      reported_ = true;
      Process::report(park::anything, subject_);
    }
    if (waited < look_ns) return sync::relax();
    if (waited < yield_ns) return void(sched_yield());
    const timespec pause{0, std::min<long>(waited / 8, longest_ns)};
    nanosleep(&pause, nullptr);
  }

 private:
  static constexpr std::int64_t look_ns = 5'000, yield_ns = 100'000;
  static constexpr long longest_ns = 1'000'000;
  const WaitSubject& subject_;
  const std::int64_t since_ = sys::now_ns();
  bool reported_ = false;
};

/// Who waits on another node is not seen by those who let go: the owner's process has to look.
void hand_on(Target& target, const WindowLock& lock) noexcept {
  if (lock.asked_for.load(std::memory_order_seq_cst)) [[unlikely]] tell_owner(target);
}

void take(Window& window, Target& target, LockKind kind) noexcept {
  if (!target.exposure) return lock(window, target, kind);
  WindowLock& word = target.exposure->lock_of(kind);
  if (try_lock(word, kind)) return;
  const Ticket ticket = draw_ticket(word);
  const WaitSubject subject{.comm = window.comm, .rank = target.rank, .of_rank = awaited_lock};
  for (Pause pause(subject); !try_lock(word, kind, ticket);) pause();
  hand_on(target, word);
}
void give(Window& window, Target& target, LockKind kind) noexcept {
  if (!target.exposure) return unlock(window, target, kind);
  WindowLock& word = target.exposure->lock_of(kind);
  unlock(word, kind);
  hand_on(target, word);
}

/// Two levels: nobody may hold all ranks while somebody holds one alone.
int enter_alone(Window& window) noexcept {
  if (window.alone.fetch_add(1, std::memory_order_acq_rel)) return MPI_SUCCESS;  // this rank has said so already
  Target* first = target_of(window, 0);
  if (!first) return window.alone.fetch_sub(1, std::memory_order_relaxed), no_memory();
  take(window, *first, LockKind::some_alone);
  return MPI_SUCCESS;
}
void leave_alone(Window& window) noexcept {
  if (window.alone.fetch_sub(1, std::memory_order_acq_rel) == 1) give(window, *target_of(window, 0), LockKind::some_alone);
}

void flush_target(Window& window, Target& target, bool local) noexcept {
  fence_memory();
  flush(window, &target, local);
}
void flush_all(Window& window, bool local) noexcept {
  fence_memory();
  flush(window, nullptr, local);
}

/// A new epoch of passive target, or by groups, ends a fence epoch in which nothing was to follow.
void end_fence(Window& window) noexcept { window.opened.fetch_and(static_cast<std::uint8_t>(~opened_by_fence), std::memory_order_relaxed); }

int check_assertion(int assertion) noexcept {
  constexpr int known = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
  if (!(assertion & ~known)) return MPI_SUCCESS;
  return error(MPI_ERR_ASSERT, "argument assert is %#x, of which %#x is no assertion; combine MPI_MODE_NOCHECK, NOSTORE, NOPUT, NOPRECEDE and NOSUCCEED, or pass 0", static_cast<unsigned>(assertion),
               static_cast<unsigned>(assertion & ~known));
}

int out_of_order(const Window& window, const char* what, unsigned bits) noexcept {
  return error(MPI_ERR_RMA_SYNC, "%s while this rank (%d) has an access epoch of %s open on the window; close that first", what, window.rank, name_of_opened(bits));
}

/// The ranks in the window of a group's members.
int ranks_of(const Window& window, const Group& group, int rank_in_group) noexcept { return rank_of_member(*window.comm->group, group.member(rank_in_group)); }

int check_group(const Window& window, const Group& group) noexcept {
  for (int i = 0; i < group.size; ++i)
    if (ranks_of(window, group, i) == MPI_UNDEFINED) return error(MPI_ERR_GROUP, "member %d of the group is not in the window's group", i);
  return MPI_SUCCESS;
}

}  // namespace

int fence(Window& window, int assertion) noexcept {
  if (const int code = check_assertion(assertion)) return code;
  const unsigned opened = window.opened.load(std::memory_order_relaxed);
  if (opened & ~opened_by_fence || window.locked_targets.load(std::memory_order_relaxed) || window.started)
    return out_of_order(window, "MPI_Win_fence", window.started ? unsigned{opened_by_start} : window.locked_targets.load(std::memory_order_relaxed) ? unsigned{opened_by_lock} : opened);
  if (!(assertion & MPI_MODE_NOPRECEDE)) flush_all(window, false);
  sync::goes_to_another_process();
  if (const int code = coll::barrier(*window.comm)) return code;
  order_own_accesses();
  window.opened.store(assertion & MPI_MODE_NOSUCCEED ? 0 : opened_by_fence, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int start(Window& window, Group& group, int assertion) noexcept {
  if (const int code = check_assertion(assertion)) return code;
  if (const int code = check_group(window, group)) return code;
  const unsigned opened = window.opened.load(std::memory_order_relaxed);
  if (window.started || opened & ~opened_by_fence || window.locked_targets.load(std::memory_order_relaxed))
    return out_of_order(window, "MPI_Win_start", window.started ? unsigned{opened_by_start} : opened & ~opened_by_fence ? opened : unsigned{opened_by_lock});
  end_fence(window);
  std::lock_guard lock(window.epochs);
  for (int i = 0; i < group.size; ++i) {
    const int rank = ranks_of(window, group, i);
    Target* target = target_of(window, rank);
    if (!target) return no_memory();
    if (!(assertion & MPI_MODE_NOCHECK))
      if (const int code = recv({nullptr, 0, coll::byte_type()}, rank, tag_post, *window.comm, Space::user)) return code;
    target->opened.fetch_or(opened_by_start, std::memory_order_relaxed);
  }
  window.started = retain_group(&group);
  fence_memory();
  return MPI_SUCCESS;
}

int complete_access(Window& window) noexcept {
  std::lock_guard lock(window.epochs);
  if (!window.started) return error(MPI_ERR_RMA_SYNC, "no access epoch of MPI_Win_start is open on the window at this rank (%d)", window.rank);
  int first_error = MPI_SUCCESS;
  for (int i = 0; i < window.started->size; ++i) {
    const int rank = ranks_of(window, *window.started, i);
    Target& target = *target_of(window, rank);
    flush_target(window, target, false);
    target.opened.fetch_and(static_cast<std::uint8_t>(~opened_by_start), std::memory_order_relaxed);
    const int code = send({nullptr, 0, coll::byte_type()}, rank, tag_complete, *window.comm, Space::user);
    if (!first_error) first_error = code;
  }
  release_group(window.started);
  window.started = nullptr;
  return first_error;
}

int post(Window& window, Group& group, int assertion) noexcept {
  if (const int code = check_assertion(assertion)) return code;
  if (const int code = check_group(window, group)) return code;
  std::lock_guard lock(window.epochs);
  if (window.posted) return error(MPI_ERR_RMA_SYNC, "an exposure epoch of MPI_Win_post is open on the window at this rank (%d); call MPI_Win_wait first", window.rank);
  auto* completions = new (std::nothrow) Request*[static_cast<std::size_t>(group.size)];
  if (!completions) return no_memory();
  order_own_accesses();  // what this rank stored before is there for those who come
  for (int i = 0; i < group.size; ++i) {
    const int rank = ranks_of(window, group, i);
    completions[i] = irecv({nullptr, 0, coll::byte_type()}, rank, tag_complete, *window.comm, Space::user);
    if (!(assertion & MPI_MODE_NOCHECK))
      if (const int code = send({nullptr, 0, coll::byte_type()}, rank, tag_post, *window.comm, Space::user)) return code;
  }
  window.completions = completions;
  window.completions_left = group.size;
  window.posted = retain_group(&group);
  return MPI_SUCCESS;
}

namespace {

int end_exposure(Window& window) noexcept {
  delete[] window.completions;
  window.completions = nullptr;
  release_group(window.posted);
  window.posted = nullptr;
  order_own_accesses();
  return MPI_SUCCESS;
}

int not_posted(const Window& window) noexcept {
  return error(MPI_ERR_RMA_SYNC, "no exposure epoch of MPI_Win_post is open on the window at this rank (%d)", window.rank);
}

}  // namespace

int wait_exposure(Window& window) noexcept {
  std::lock_guard lock(window.epochs);
  if (!window.posted) return not_posted(window);
  int first_error = MPI_SUCCESS;
  for (int i = 0; i < window.posted->size; ++i) {
    if (!window.completions[i]) continue;
    const int code = wait(window.completions[i]);
    if (!first_error) first_error = code;
  }
  end_exposure(window);
  return first_error;
}

int test_exposure(Window& window, int* flag) noexcept {
  std::unique_lock lock(window.epochs, std::try_to_lock);
  *flag = 0;
  if (!lock) return MPI_SUCCESS;  // another thread waits
  if (!window.posted) return not_posted(window);
  progress_all();
  for (int i = 0; i < window.posted->size; ++i) {
    Request*& completion = window.completions[i];
    if (!completion) continue;
    if (!completion->is_done()) return MPI_SUCCESS;
    const int code = wait(completion);
    completion = nullptr;
    if (code) return code;
  }
  *flag = 1;
  return end_exposure(window);
}

int lock(Window& window, int type, int rank, int assertion) noexcept {
  if (const int code = check_assertion(assertion)) return code;
  if (type != MPI_LOCK_SHARED && type != MPI_LOCK_EXCLUSIVE) return error(MPI_ERR_LOCKTYPE, "argument lock_type is %d; it must be MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE", type);
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  const unsigned opened = window.opened.load(std::memory_order_relaxed);
  if (opened & by_lock_all || window.started) return out_of_order(window, "MPI_Win_lock", window.started ? unsigned{opened_by_start} : opened);
  Target* target = target_of(window, rank);
  if (!target) return no_memory();
  if (target->opened.load(std::memory_order_relaxed) & opened_by_lock)
    return error(MPI_ERR_RMA_SYNC, "this rank (%d) has locked rank %d of the window already; call MPI_Win_unlock first", window.rank, rank);
  end_fence(window);
  const bool alone = type == MPI_LOCK_EXCLUSIVE;
  const bool check = !(assertion & MPI_MODE_NOCHECK) && !window.no_locks;
  if (check && alone && !on_demand())
    if (const int code = enter_alone(window)) return code;
  if (check) take(window, *target, alone ? LockKind::alone : LockKind::shared);
  window.locked_targets.fetch_add(1, std::memory_order_relaxed);
  target->opened.store(static_cast<std::uint8_t>(opened_by_lock | (alone ? locked_alone : 0) | (check ? 0 : unchecked)), std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int unlock(Window& window, int rank) noexcept {
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  Target* target = window.known(rank);
  const unsigned opened = target ? target->opened.load(std::memory_order_relaxed) : 0;
  if (!(opened & opened_by_lock))
    return error(MPI_ERR_RMA_SYNC, "this rank (%d) has not locked rank %d of the window; MPI_Win_unlock goes with MPI_Win_lock", window.rank, rank);
  flush_target(window, *target, false);
  target->opened.store(0, std::memory_order_relaxed);
  window.locked_targets.fetch_sub(1, std::memory_order_relaxed);
  if (opened & unchecked) return MPI_SUCCESS;
  give(window, *target, opened & locked_alone ? LockKind::alone : LockKind::shared);
  if (opened & locked_alone && !on_demand()) leave_alone(window);
  return MPI_SUCCESS;
}

int lock_all(Window& window, int assertion) noexcept {
  if (const int code = check_assertion(assertion)) return code;
  const unsigned opened = window.opened.load(std::memory_order_relaxed);
  if (opened & by_lock_all || window.started || window.locked_targets.load(std::memory_order_relaxed))
    return out_of_order(window, "MPI_Win_lock_all", window.started ? unsigned{opened_by_start} : opened & by_lock_all ? opened : unsigned{opened_by_lock});
  const bool check = !(assertion & MPI_MODE_NOCHECK) && !window.no_locks;
  // On demand, the window itself stays closed: the first operation on each target comes to `open_access`.
  const unsigned bits = !check ? opened_by_lock_all | unchecked : on_demand() ? locked_on_demand : opened_by_lock_all;
  if (check && !on_demand()) {
    Target* first = target_of(window, 0);
    if (!first) return no_memory();
    take(window, *first, LockKind::all);
  }
  window.opened.store(static_cast<std::uint8_t>(bits), std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int unlock_all(Window& window) noexcept {
  const unsigned opened = window.opened.load(std::memory_order_relaxed);
  if (!(opened & by_lock_all)) return error(MPI_ERR_RMA_SYNC, "this rank (%d) has not called MPI_Win_lock_all on the window", window.rank);
  flush_all(window, false);
  if (opened & locked_on_demand)
    for_each_target(window, [&](Target& target) {
      if (target.opened.exchange(0, std::memory_order_relaxed) & locked_on_demand) give(window, target, LockKind::shared);
    });
  else if (!(opened & unchecked)) give(window, *target_of(window, 0), LockKind::all);
  window.opened.store(0, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int flush(Window& window, int rank, bool local) noexcept {
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  const unsigned opened = window.opened.load(std::memory_order_relaxed);
  Target* const target = rank == every_target ? nullptr : window.known(rank);
  const bool open = opened & by_lock_all || (rank == every_target ? window.locked_targets.load(std::memory_order_relaxed) > 0
                                                                          : target && target->opened.load(std::memory_order_relaxed) & opened_by_lock);
  if (!open) {
    if (rank == every_target) return error(MPI_ERR_RMA_SYNC, "this rank (%d) has locked no rank of the window; flushes belong between MPI_Win_lock or MPI_Win_lock_all and the unlock", window.rank);
    return error(MPI_ERR_RMA_SYNC, "this rank (%d) has not locked rank %d of the window; flushes belong between MPI_Win_lock or MPI_Win_lock_all and the unlock", window.rank, rank);
  }
  if (rank == every_target) flush_all(window, local);
  else if (target) flush_target(window, *target, local);
  return MPI_SUCCESS;
}

int check_closed(Window& window) noexcept {
  std::lock_guard lock(window.epochs);
  const unsigned opened = window.opened.load(std::memory_order_relaxed) & ~opened_by_fence;
  if (opened || window.started || window.locked_targets.load(std::memory_order_relaxed))
    return out_of_order(window, "MPI_Win_free", window.started ? unsigned{opened_by_start} : opened ? opened : unsigned{opened_by_lock});
  if (window.posted) return error(MPI_ERR_RMA_SYNC, "MPI_Win_free while this rank (%d) has an exposure epoch of MPI_Win_post open; call MPI_Win_wait first", window.rank);
  fence_memory();
  flush_before_free(window);
  return MPI_SUCCESS;
}

int open_access(Window& window, Target& target, const char* function) noexcept {
  if (window.opened.load(std::memory_order_relaxed) & locked_on_demand) {
    static std::mutex one_at_a_time;
    std::lock_guard lock(one_at_a_time);
    if (target.opened.load(std::memory_order_relaxed) & locked_on_demand) return MPI_SUCCESS;
    take(window, target, LockKind::shared);
    target.opened.store(opened_by_lock_all | locked_on_demand, std::memory_order_release);
    return MPI_SUCCESS;
  }
  return error(MPI_ERR_RMA_SYNC, "%s on rank %d, but this rank (%d) has no access epoch open towards it: call MPI_Win_fence, MPI_Win_start, MPI_Win_lock or MPI_Win_lock_all first", function,
               target.rank, window.rank);
}

}  // namespace heddle::rma
