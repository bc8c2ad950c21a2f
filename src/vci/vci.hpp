// The VCI: an independent communication stream inside a process, with its own lock, matching, requests and progress.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/runtime.hpp"
#include "match/matcher.hpp"
#include "sync/cpu.hpp"
#include "sync/intrusive.hpp"
#include "sync/lock.hpp"
#include "sync/record_ring.hpp"
#include "transport/holder.hpp"
#include "transport/record.hpp"
#include "vci/ablation.hpp"
#include "vci/request.hpp"

namespace heddle {

namespace net {
class Engine;  // this VCI's part of the network
}

namespace proto {
struct Backlog;  // records that found a full ring, and what keeps them in order (proto/backlog.cpp)
struct Unexpected;
}

/// Requests of one VCI: taken under the VCI's lock, given back by anyone without it.
///
/// Cost: allocate 0 read-modify-writes (1 when the local list is empty), free 1 under MPI_THREAD_MULTIPLE, 0 below.
class RequestCache {
 public:
  /// A request in its default state, kind and `vci` set. \pre `vci`, whose cache this is, is held. Ends the job when memory is out.
  Request* allocate(Vci* vci) noexcept {
    if constexpr (ablation::built)
      if (ablation::off.requests) return ablation::allocate_request(vci);
    if (!free_) [[unlikely]] refill(vci);
    Request* request = free_;
    free_ = request->next;
    request->kind.store(Kind::request, std::memory_order_relaxed);
    return request;
  }

  /// True when the next `allocate` need not ask for memory.
  [[nodiscard]] bool stocked() const noexcept { return free_; }

  /// From any thread. The request's memory stays a Request for ever, so a stale handle is detected.
  void release(Request* request) noexcept {
    if constexpr (ablation::built)
      if (ablation::off.requests) return ablation::release_request(request);
    request->kind.store(Kind::freed, std::memory_order_relaxed);
    if (runtime.locks) return release_chain(request, request);
    request->next = free_;
    free_ = request;
  }
  /// The same for a thread that holds the VCI.
  void release_held(Request* request) noexcept {
    if constexpr (ablation::built)
      if (ablation::off.requests) return ablation::release_request(request);
    request->kind.store(Kind::freed, std::memory_order_relaxed);
    request->next = free_;
    free_ = request;
  }
  /// Requests linked by `next` from `first` to `last`, their kinds cleared: one read-modify-write for all. \pre runtime.locks
  void release_chain(Request* first, Request* last) noexcept {
    Request* head = returned_.load(std::memory_order_relaxed);
    do last->next = head;  // Release pairs with the acquire in refill: the fields are ours again.
    while (!returned_.compare_exchange_weak(head, first, std::memory_order_release, std::memory_order_relaxed));
  }
  /// Calls `use(Request&)` for all requests, free ones too. \pre the VCI is held
  template <typename Use>
  void for_each(Use&& use) noexcept {
    for (Request* request = all_; request; request = request->sibling) use(*request);
  }

 private:
  void refill(Vci* vci) noexcept;

  Request* free_ = nullptr;
  Request* all_ = nullptr;
  alignas(sync::cache_line) std::atomic<Request*> returned_{nullptr};  ///< pushed by any thread, taken as a whole
};

/// Gives requests back together: neighbours of one VCI with one read-modify-write, at the latest when it goes out of scope.
class GivenBack {
 public:
  GivenBack() noexcept = default;
  GivenBack(const GivenBack&) = delete;
  GivenBack& operator=(const GivenBack&) = delete;
  ~GivenBack() {
    if (first_) flush();
  }
  void add(Request& request, RequestCache& cache) noexcept {
    bool alone = !runtime.locks;
    if constexpr (ablation::built) alone = alone || ablation::off.requests;
    if (alone) return cache.release(&request);
    if (&cache != cache_) {
      if (first_) flush();
      cache_ = &cache;
      last_ = &request;
    }
    request.kind.store(Kind::freed, std::memory_order_relaxed);
    request.next = first_;
    first_ = &request;
  }

 private:
  void flush() noexcept {
    cache_->release_chain(first_, last_);
    first_ = nullptr;
  }
  RequestCache* cache_ = nullptr;
  Request *first_ = nullptr, *last_ = nullptr;
};

/// One VCI. Everything is guarded by `lock` (through a VciGuard) but what says otherwise.
class Vci {
 public:
  explicit Vci(unsigned index) noexcept;

  // Lines that other threads touch come first, each with its own role.
  alignas(sync::cache_line) ablation::Hot<sync::Lock> lock;
  alignas(sync::cache_line) ablation::Hot<std::atomic<std::uint32_t>> backlogged;  ///< records in `backlog`; senders look before they push
  ablation::Hot<std::atomic<std::uint32_t>> moving;  ///< transfers and continuations that need progress
  std::atomic<net::Engine*> net{nullptr};  ///< set once, when the VCI first uses the network; null until then
  std::atomic<Request*> ended_elsewhere{nullptr};  ///< requests of this VCI that another one's holder saw end
  const unsigned index;

  alignas(sync::cache_line) sync::RingConsumer ring;
  match::Matcher matcher;
  RequestCache requests;
  proto::Backlog* backlog = nullptr;
  Transfer* transfers = nullptr;       ///< large messages to advance, a piece at a time (a ring, so that each gets its turn)
  std::uint64_t free_copies = ~std::uint64_t{0};  ///< which of the 64 SharedCopy of this VCI are free
  Request* ready_head = nullptr;       ///< completed requests whose continuation waits for the end of the step
  Request* ready_tail = nullptr;
  std::uint64_t unexpected_bytes = 0;  ///< payload kept for messages that nobody asked for yet
  bool holding = false;                ///< senders were asked to keep payloads
  proto::Unexpected* spare = nullptr;  ///< nodes of small unexpected messages, to be used again
  unsigned spares = 0;
  std::uint32_t busy_steps = 0;        ///< steps of waiters that found work; see poll_fairly
  int network_bell = -1;               ///< the socket of the thread that sleeps for this VCI (transport/shm/doorbell.hpp)
  bool stepping = false;               ///< inside `progress`; see leave_work

  /// A hint, without the lock: there is something for `progress` to do.
  [[nodiscard]] bool has_work() const noexcept {
    if constexpr (ablation::built)
      if (ablation::off.looks) return true;
    return ring.pending() || backlogged.load(std::memory_order_relaxed) || moving.load(std::memory_order_relaxed) ||
           net.load(std::memory_order_relaxed);
  }
};

/// Holding a VCI. Functions that need it held take a VciGuard&, so that the compiler checks.
class [[nodiscard]] VciGuard : public Held {
 public:
  explicit VciGuard(Vci& vci) noexcept : vci_(&vci) {
    if (runtime.locks) vci_->lock.lock();
  }
  struct Adopt {};
  /// \pre `try_hold(vci)` was true
  VciGuard(Vci& vci, Adopt) noexcept : vci_(&vci) {}
  ~VciGuard() {
    if (runtime.locks) vci_->lock.unlock();
  }
  [[nodiscard]] static bool try_hold(Vci& vci) noexcept { return !runtime.locks || vci.lock.try_lock(); }
  VciGuard(const VciGuard&) = delete;
  VciGuard& operator=(const VciGuard&) = delete;

  /// What a module's handler is given, whom the transport calls.
  [[nodiscard]] static VciGuard& of(Held& held) noexcept { return static_cast<VciGuard&>(held); }

  [[nodiscard]] Vci& vci() const noexcept { return *vci_; }

 private:
  Vci* vci_;
};

/// Does a bounded amount of the VCI's outstanding work: arrived records, refused records, copies, continuations. True if there was any.
/// \param awaited stops taking in messages when this request is complete: the rest stays in the ring, in order, instead of being copied
///        into the store of unexpected messages
bool progress(VciGuard& guard, const Request* awaited = nullptr) noexcept;

/// One step on every VCI in use, with try-locks, beginning after the one where the last such round began. True if there was any work.
bool progress_all() noexcept;

/// The lane of an operation at this end, for replies: its communicator may be freed before the message moves.
inline std::uint16_t lane_of(const Request& request) noexcept { return static_cast<std::uint16_t>(request.vci->index); }

/// Calls `visit` with each VCI in use.
template <typename Visit>
void for_each_vci(Visit&& visit) noexcept;

/// True when some VCI has records that a full ring refused, or a stream that waits for room.
bool has_backlog() noexcept;
/// True when some VCI's ring has a record. After a round on all VCIs that took none: a thread that holds the VCI kept it from that.
bool has_arrivals() noexcept;

/// Makes progress on `vci` if a look without the lock says that there is something to do and nobody else does it.
inline bool poll(Vci& vci) noexcept {
  if (!vci.has_work() || !VciGuard::try_hold(vci)) return false;
  VciGuard guard(vci, VciGuard::Adopt{});
  return progress(guard);
}

/// Counts a waiter's step that found work. True after every 32: time for a step on every VCI. A VCI that is never out of work would
/// otherwise keep its waiter from ever looking at the others. \pre `vci` is held
inline bool look_around(Vci& vci) noexcept { return ++vci.busy_steps % 32 == 0; }

/// `poll` for a thread that waits on `vci`, and now and then for the others.
/// \param reap called with the guard when there was work: what a thread that waits does best while it holds the VCI
template <typename Reap>
inline bool poll_fairly(Vci& vci, const Request* awaited, Reap&& reap) noexcept {
  if constexpr (ablation::built)
    if (ablation::off.progress) return progress_all();
  if (!vci.has_work() || !VciGuard::try_hold(vci)) return false;
  bool around;
  {
    VciGuard guard(vci, VciGuard::Adopt{});
    if (!progress(guard, awaited)) return false;
    reap(guard);
    around = look_around(vci);
  }
  if (around) [[unlikely]] progress_all();
  return true;
}

/// The VCI behind a lane of this process; made on first use.
inline Vci& vci_of_lane(unsigned lane) noexcept;

namespace detail {
[[gnu::visibility("hidden")]] extern std::atomic<Vci*> lane_table[64];
[[gnu::visibility("hidden")]] extern std::atomic<Vci*> pool_table[64];  ///< by VCI index; null: not used yet
[[gnu::visibility("hidden")]] extern std::atomic<unsigned> pool_used;   ///< VCIs below this index may exist
Vci& open_lane(unsigned lane) noexcept;
}  // namespace detail

inline Vci& vci_of_lane(unsigned lane) noexcept {
  // Acquire pairs with open_lane's release: the VCI is whole.
  Vci* vci = detail::lane_table[lane].load(std::memory_order_acquire);
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
/// How many VCIs this process will have: HEDDLE_VCIS, or as many as it has cores to run on, at most 64.
unsigned configured_vcis() noexcept;

}  // namespace heddle
