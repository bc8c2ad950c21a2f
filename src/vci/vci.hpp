// The VCI: an independent communication stream inside a process, with its own lock, matching, requests and progress.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/runtime.hpp"
#include "match/matcher.hpp"
#include "sync/cpu.hpp"
#include "sync/intrusive.hpp"
#include "sync/lock.hpp"
#include "sync/record_ring.hpp"
#include "transport/holder.hpp"
#include "transport/record.hpp"
#include "vci/module.hpp"
#include "vci/request.hpp"
#include "vci/request_cache.hpp"
#include "vci/submission.hpp"

namespace heddle {

namespace net {
class Engine;  // this VCI's part of the network
}

/// How threads take turns in a VCI.
enum class VciMode : std::uint8_t {
  exclusive,  ///< the program lets one thread at a time into the library: nothing is locked
  locked,     ///< threads of the program, or one of the library's own, may come at any time: who works in the VCI holds its lock.
              ///< One thread may own it (vci/owned.hpp): that one keeps the lock and lets others in
};

/// Whether somebody makes steps in a VCI.
enum class VciUse : std::uint8_t {
  unused,  ///< not since the server looked last
  in_use,  ///< somebody is in `progress`
  used,    ///< somebody was
};

/// One VCI. Everything is touched only by who holds the VCI (a VciGuard), but what says otherwise.
class Vci {
 public:
  explicit Vci(unsigned index) noexcept;
  ~Vci();
  void set_mode(VciMode to) noexcept {
    mode = to;
    requests.share(to == VciMode::locked);
  }

  // Lines that other threads touch come first, each with its own role.
  alignas(sync::cache_line) sync::Lock lock;
  /// No atomic: it changes only while one thread at most is inside the library (`lock_vcis`).
  VciMode mode;
  alignas(sync::cache_line) std::atomic<std::uint32_t> backlogged{0};  ///< records that full rings have refused
  std::atomic<std::uint32_t> moving{0};  ///< transfers and continuations that need progress
  std::atomic<net::Engine*> net{nullptr};  ///< set once, when the VCI first uses the network; null until then
  std::atomic<Request*> ended_elsewhere{nullptr};  ///< requests of this VCI that another one's holder saw end
  const VciIndex index;
  SubmissionQueue submissions;  ///< to the owner; closed without one
  Owner owner;

  alignas(sync::cache_line) sync::RingConsumer ring;
  match::Matcher matcher;
  RequestCache requests;
  VciState* modules[most_modules] = {};  ///< by number; null where none is registered
  Request* ready_head = nullptr;       ///< completed requests whose continuation waits for the end of the step
  Request* ready_tail = nullptr;
  bool holding = false;                ///< senders were asked to keep payloads
  std::uint32_t busy_steps = 0;        ///< steps of waiters that found work; see poll_fairly
  int network_bell = -1;               ///< the socket of the thread that sleeps for this VCI (transport/shm/doorbell.hpp)
  /// Written by whoever makes a step, and by the server. Relaxed: a hint. See leave_work, and vci/server.hpp
  std::atomic<VciUse> use{VciUse::unused};
  bool serving = false;                ///< the owner's submissions, in its progress
};

namespace detail {
// Where the lock is not free:
/// Waits for it, or for the owner to let this thread in. False: this thread is the owner, and has nothing to unlock.
[[gnu::cold]] bool enter_slowly(Vci& vci) noexcept;
inline bool enter(Vci& vci) noexcept { return vci.lock.try_lock() || enter_slowly(vci); }
/// True if this thread is the owner. Where another one is, wakes that if it sleeps though there is work.
[[gnu::cold]] bool enter_own(Vci& vci) noexcept;
/// Whether the calling thread owns the VCI.
inline bool is_owner(const Vci& vci) noexcept { return vci.owner.thread.load(std::memory_order_relaxed) == __builtin_thread_pointer(); }
}  // namespace detail

/// Proof that a VCI is held. Functions that need it held take a VciGuard&, so that the compiler checks. `submit` and `try_submit` make one.
class [[nodiscard]] VciGuard : public Held {
 public:
  VciGuard(const VciGuard&) = delete;
  VciGuard& operator=(const VciGuard&) = delete;

  /// What a module's handler is given, whom the transport calls.
  [[nodiscard]] static VciGuard& of(Held& held) noexcept { return static_cast<VciGuard&>(held); }

  [[nodiscard]] Vci& vci() const noexcept { return *vci_; }

 private:
  explicit VciGuard(Vci& vci) noexcept : vci_(&vci) {}
  template <typename Step>
  friend decltype(auto) submit(Vci& vci, Step&& step) noexcept;
  template <typename Step>
  friend bool try_submit(Vci& vci, Step&& step) noexcept;
  friend class HandOver;

  Vci* vci_;
};

/// Executes `step(VciGuard&)` with the VCI held and returns what it returns: the way of every entry point into a VCI. A step is short, never
/// blocks, and never submits to a VCI itself. It is compiled with and without the lock, so that neither pays for the other.
template <typename Step>
[[gnu::always_inline]] inline decltype(auto) submit(Vci& vci, Step&& step) noexcept {
  VciGuard guard(vci);
  if (vci.mode == VciMode::exclusive || !detail::enter(vci)) return step(guard);
  const std::lock_guard locked(vci.lock, std::adopt_lock);
  return step(guard);
}

/// The same where the VCI is free at once; false, and nothing done, where somebody else holds it or owns it.
template <typename Step>
[[gnu::always_inline]] inline bool try_submit(Vci& vci, Step&& step) noexcept {
  VciGuard guard(vci);
  if (vci.mode == VciMode::exclusive) return step(guard), true;
  if (!vci.lock.try_lock()) [[unlikely]]
    return detail::enter_own(vci) && (step(guard), true);
  const std::lock_guard locked(vci.lock, std::adopt_lock);
  return step(guard), true;
}

/// Holding a VCI from one function to another, which it calls last: what `submit` does at its end would come after that call, and its
/// common path would save registers for it. Only the shortest ways of a message gain by that (proto/send.cpp, proto/receive.cpp).
class HandOver {
 public:
  [[nodiscard]] static bool try_hold(Vci& vci) noexcept {
    return vci.mode == VciMode::exclusive || vci.lock.try_lock();  // an owner is refused like everybody
  }
  /// For whoever ends the step. \pre `try_hold(vci)` was true
  explicit HandOver(Vci& vci) noexcept : guard_(vci) {}
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;
  ~HandOver() { release(guard_.vci()); }
  static void release(Vci& vci) noexcept {
    if (vci.mode == VciMode::locked) vci.lock.unlock();
  }
  [[nodiscard]] VciGuard& guard() noexcept { return guard_; }

 private:
  VciGuard guard_;
};

/// Does a bounded amount of the VCI's outstanding work: arrived records, refused records, copies, continuations. True if there was any.
/// \param awaited stops taking in messages when this request is complete: the rest stays in the ring, in order, instead of being copied
///        into the store of unexpected messages
bool progress(VciGuard& guard, const Request* awaited = nullptr) noexcept;

/// The same for the server, which leaves continuations that may call the program's functions to the program's threads. True if there was any
/// other work. \param left how many it has left
bool progress_beside_program(VciGuard& guard, std::uint32_t& left) noexcept;

/// Makes progress on `vci` if a look without the lock says that there is something to do and nobody else does it.
bool poll(Vci& vci) noexcept;
/// One step on every VCI in use, with try-locks, beginning after the one where the last such round began. True if there was any work.
bool progress_all() noexcept;

/// The lane of an operation at this end, for replies: its communicator may be freed before the message moves.
inline Lane lane_of(const Request& request) noexcept { return lane_to(request.vci->index); }

/// Calls `visit` with each VCI in use.
template <typename Visit>
void for_each_vci(Visit&& visit) noexcept;

/// True when some VCI has records that a full ring refused, or a stream that waits for room.
bool has_backlog() noexcept;
/// True when some VCI's ring has a record. After a round on all VCIs that took none: a thread that holds the VCI kept it from that.
bool has_arrivals() noexcept;

/// Counts a waiter's step that found work. True after every 32: time for a step on every VCI. A VCI that is never out of work would
/// otherwise keep its waiter from ever looking at the others. \pre `vci` is held
inline bool look_around(Vci& vci) noexcept { return ++vci.busy_steps % 32 == 0; }

/// The VCI behind a lane of this process; made on first use.
inline Vci& vci_of_lane(Lane lane) noexcept;

namespace detail {
[[gnu::visibility("hidden")]] extern std::atomic<Vci*> lane_table[lanes];
[[gnu::visibility("hidden")]] extern std::atomic<Vci*> pool_table[lanes];  ///< by VCI index; null: not used yet
[[gnu::visibility("hidden")]] extern std::atomic<unsigned> pool_used;   ///< VCIs below this index may exist
/// Whether a thread of the program has made a step on every VCI since the server looked last. Relaxed: a hint.
[[gnu::visibility("hidden")]] extern std::atomic<bool> round_made;
Vci& open_lane(Lane lane) noexcept;
}  // namespace detail

inline Vci& vci_of_lane(Lane lane) noexcept {
  // Acquire pairs with open_lane's release: the VCI is whole.
  Vci* vci = detail::lane_table[number(lane)].load(std::memory_order_acquire);
  return vci ? *vci : detail::open_lane(lane);
}

template <typename Visit>
void for_each_vci(Visit&& visit) noexcept {
  const unsigned used = detail::pool_used.load(std::memory_order_acquire);
  for (unsigned i = 0; i < used; ++i)
    if (Vci* vci = detail::pool_table[i].load(std::memory_order_acquire)) visit(*vci);
}

/// Queues the continuation of a completed request for the end of the step.
void queue_continuation(VciGuard& guard, Request& request) noexcept;

/// Starts and stops the pool. \pre shm::start
bool start_vcis(unsigned count) noexcept;
void stop_vcis() noexcept;
/// From now on VCIs are locked: those that exist and those to come. \pre one thread at most is inside the library, and holds no VCI
void lock_vcis() noexcept;
/// How many VCIs this process will have: HEDDLE_VCIS, or as many as it has cores to run on, at most 64.
unsigned configured_vcis() noexcept;

}  // namespace heddle
