// Who sleeps in this process, for what, and how they are woken.
#pragma once

#include <atomic>
#include <cstdint>

#include "sync/cpu.hpp"
#include "sync/lock.hpp"
#include "transport/shm/doorbell.hpp"

namespace heddle::park {

/// What a thread sleeps for: something of one VCI, named by its index, or of any.
using Awaited = int;
inline constexpr Awaited anything = -1;

/// The threads of a process that sleep, or are about to.
///
/// A thread that goes to sleep calls `announce`, looks once more whether it has anything to do, sleeps on the bell or at the network, and calls
/// `retract`. Whoever publishes something looks at a mask afterwards and rings the bell if the bit of the VCI is set. There are two masks:
/// - the doorbell's `asleep`, for those who bring work (other processes, and threads here that leave work behind): one thread must come and
///   serve the VCI;
/// - `awaited_`, for threads of this process that have served something: all who wait for something of the VCI must look.
///
/// No wake-up is lost: the sleeper sets its bits, then runs the kernel's process-wide barrier, then looks; the other side publishes,
/// then looks at the mask, with no fence of its own. Either it sees the bit and rings, or the sleeper's look sees what it published. Where the
/// kernel has no such barrier (`reliable` is false), sleeps must be short.
///
/// Invariants, whenever the lock is free:
/// 1. Bit v of `asleep` is set if a thread that announced itself listens to VCI v; all bits are, while a sentinel is on watch.
/// 2. Bit v of `awaited_` is set if a thread that announced itself waits for something of VCI v, and the process has several threads.
/// 3. At most one of them is the sentinel: the one that is woken by work for any VCI, so that the process makes progress while none of its threads
///    is awake in the library. The first to announce itself while there is none becomes it.
/// 4. When a thread that slept leaves the library (`leave`) while others sleep without a sentinel, one of them wakes up and becomes it.
/// 5. While the server (vci/server.hpp) is announced, nobody becomes the sentinel, and a ring for a VCI that no thread of the program is woken by
///    wakes the server. It waits for nothing itself.
///
/// Thread-safe. Cost: two system calls to sleep, one to wake; whoever finds nobody asleep pays one load of a line that is
/// written only by sleepers, and in a process that has never had several threads in the library by nobody.
class Sleepers {
 public:
  /// A thread's announcement, from `announce` to `retract`.
  struct Announcement {
    Awaited awaited;
    std::uint32_t ticket;  ///< the bell's count before it: a ring since then ends the sleep at once
    bool sentinel;
    bool resting;  ///< a sentinel that for once listens only to what it awaits itself

    [[nodiscard]] bool on_watch() const noexcept { return sentinel && !resting; }
    /// What may wake the thread.
    [[nodiscard]] Awaited listens_to() const noexcept { return on_watch() ? anything : awaited; }
  };

  Sleepers() noexcept = default;
  Sleepers(const Sleepers&) = delete;
  Sleepers& operator=(const Sleepers&) = delete;

  /// \param doorbell of this process, valid until the next `start` \param barrier sync::register_barrier() was true. \pre nobody sleeps
  void start(shm::Doorbell& doorbell, bool barrier) noexcept;
  /// From now on several threads may be inside the library at a time, and wake each other. There is no way back. \pre nobody sleeps
  void expect_threads() noexcept;

  /// \param resting if this thread is the sentinel, it is not on watch
  [[nodiscard]] Announcement announce(Awaited awaited, bool resting) noexcept;
  void retract(const Announcement& announcement) noexcept;
  /// Sleeps on the bell until it is rung for what the thread listens to, at most `nanoseconds`. May return for no reason.
  void sleep(const Announcement& announcement, long nanoseconds) noexcept;
  [[nodiscard]] bool rung_since(std::uint32_t ticket) const noexcept {
    return doorbell_->bell.load(std::memory_order_relaxed) != ticket;
  }
  /// False: an announcement may be missed by those who publish at the same time.
  [[nodiscard]] bool reliable() const noexcept { return barrier_; }

  /// What the server knew when it announced itself, or looked around since then: a ring after that ends its sleep at once.
  struct ServerView {
    std::uint32_t bell, word;
  };
  /// Has the server woken from now on. True if threads of the program sleep, or are about to.
  bool announce_server() noexcept;
  void retract_server() noexcept;
  /// Before it looks around. It need not announce itself again as long as it has not retracted.
  [[nodiscard]] ServerView server_view() const noexcept;
  /// Sleeps until it is rung, at most `nanoseconds`. May return for no reason.
  void sleep_server(const ServerView& view, long nanoseconds) noexcept;
  /// Sleeps for so long unless `call_server` ends it. It need not be announced, and others do not ring for it.
  void pause_server(const ServerView& view, long nanoseconds) noexcept;
  /// Ends the server's sleep or pause, or the next one that begins with an older view.
  void call_server() noexcept { shm::call_server(*doorbell_); }
  /// Wakes a thread of the program, for what none but they may do for this VCI: those that wait for something of it, or any.
  [[gnu::cold]] void call_program(unsigned vci) noexcept;
  /// Whether threads of the program sleep.
  [[nodiscard]] bool program_sleeps() noexcept;

  /// For a thread that has slept and leaves the library: it has looked after all VCIs whenever it was awake.
  /// \param work_is_left asked whether it leaves behind any that nobody is woken for
  template <typename WorkIsLeft>
  void leave(WorkIsLeft&& work_is_left) noexcept {
    const Watch watch = look();
    if (watch == Watch::missing) {
      shm::ring_any(*doorbell_);
    } else if (watch == Watch::kept && work_is_left()) {
      // At the network one thread comes for a ring, the one that sleeps for the VCI: now that it leaves, the sentinel has to know.
      shm::ring_sentinel(*doorbell_);
    }
  }

  /// Whether any thread sleeps that others of this process may have to wake: asked before calling one of the next, which are out of line.
  /// Relaxed, like all looks at the masks: the barrier is the sleeper's.
  [[nodiscard]] bool any() const noexcept { return awaited_.load(std::memory_order_relaxed); }
  /// The same for those whom `call` would wake.
  [[nodiscard]] bool any_to_call() const noexcept { return on_call_.load(std::memory_order_relaxed); }
  /// Wakes all who wait for something of this VCI: after serving it.
  [[gnu::cold]] void wake(unsigned vci) noexcept;
  void wake_all() noexcept;
  /// Wakes one who serves this VCI, if nobody is awake for it: after leaving work there.
  [[gnu::cold]] void call(unsigned vci) noexcept;

 private:
  enum class Watch : std::uint8_t { needless, missing, kept };

  [[nodiscard]] Watch look() noexcept;
  void count(Awaited awaited, int n) noexcept;
  void publish() noexcept;

  alignas(sync::cache_line) std::atomic<std::uint64_t> awaited_{0};
  std::atomic<std::uint64_t> on_call_{0};  ///< the doorbell's `asleep`, if the process has several threads
  // Changed only by those who go to sleep or wake up.
  alignas(sync::cache_line) sync::Lock lock_;
  bool has_sentinel_ = false;
  bool on_watch_ = false;    ///< and it is to be woken for all VCIs
  bool server_ = false;      ///< the server is announced
  bool threads_ = false;     ///< expect_threads was called
  bool barrier_ = false;
  unsigned total_ = 0;       ///< threads of the program that announced themselves
  unsigned everywhere_ = 0;  ///< of them, those that wait for anything
  unsigned on_[64] = {};     ///< and those that wait for something of one VCI
  std::uint64_t bits_ = 0;   ///< which of `on_` are not zero
  shm::Doorbell* doorbell_ = nullptr;
};

/// This process's.
[[gnu::visibility("hidden")]] extern Sleepers sleepers;

}  // namespace heddle::park
