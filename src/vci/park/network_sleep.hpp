// Sleeping where both the network and the doorbell wake up: in a system call on descriptors. docs/design/core.md, Parking
//
// No system call waits for a futex word and for descriptors. So a thread that is to be woken by the network sleeps on what the
// network of its VCI offers and on a datagram socket, its bell, to which those send a byte who would have woken the word.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>

#include "transport/shm/doorbell.hpp"
#include "vci/park/sleepers.hpp"

namespace heddle::park {

/// What the networks of a process offer a thread that wants to sleep: filled by whoever knows the VCIs, immediately before the sleep.
///
/// On the stack: freeing memory would delay the thread after its wake-up, and thread-local objects are gone when destructors of global objects
/// sleep here.
class NetworkSources {
 public:
  /// A descriptor that is readable when a network has something. \param epoll it is an epoll descriptor
  void add(int fd, bool epoll) noexcept {
    fds_[count_++] = {fd, POLLIN, 0};
    epoll_ = epoll;
  }
  /// Some network cannot tell when it has something.
  void add_silent() noexcept { silent_ = true; }
  /// Some network has something now, or another thread is at work there.
  void add_awake() noexcept { awake_ = true; }
  /// The bell of the VCI that the thread sleeps for.
  void set_bell(int fd) noexcept { bell_ = fd; }

 private:
  friend class NetworkSleep;

  pollfd fds_[64 + 1];  ///< of each VCI, and the bell
  nfds_t count_ = 0;
  int bell_ = -1;
  bool epoll_ = false;  ///< the last of `fds_`
  bool silent_ = false, awake_ = false;
};

/// The sleep of a waiter between looks at a network that wakes nobody: an eighth longer each time. What comes then is late by an eighth of
/// the time that was waited, or 8 ms at most, and a thread that waits for seconds looks a hundred times in each instead of two thousand.
class Nap {
 public:
  static constexpr long first = 500'000, longest = 8'000'000;  ///< nanoseconds
  [[nodiscard]] long length() const noexcept { return length_; }
  void lengthen() noexcept {
    if (length_ < longest) length_ += length_ / 8;
  }

 private:
  long length_ = first;
};

/// The networks of a process as a place to sleep at. Thread-safe once it is open. There is no destructor: threads
/// may sleep here while the process exits, and handlers that finalize may come after the library's own.
class NetworkSleep {
 public:
  enum class Ended : std::uint8_t {
    not_here,  ///< it was no sleep: the thread is to sleep on the bell's word
    in_vain,   ///< by the time limit, or by what concerns others
    woken,
  };

  NetworkSleep() noexcept = default;
  NetworkSleep(const NetworkSleep&) = delete;
  NetworkSleep& operator=(const NetworkSleep&) = delete;

  /// Makes the bells of the sentinel and of the server. False: `problem` is for the user. \param doorbell of this process, valid until `close`. \pre nobody sleeps
  [[nodiscard]] bool open(shm::Doorbell& doorbell, std::string& problem);
  void close() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return sentinel_bell_ >= 0; }

  /// Nanoseconds that a thread may sleep at most, on the word or here, given what the networks offer. 0: it is to look again at once.
  [[nodiscard]] long limit(const NetworkSources& sources, Nap& nap, long nanoseconds) const noexcept;

  /// Sleeps until the network or the doorbell has something for the thread, at most `nanoseconds`; not at all if the bell was rung since the
  /// announcement. \pre is_open
  /// \param alone nobody rings this process's doorbell but the library's own thread
  [[nodiscard]] Ended sleep(const Sleepers::Announcement& announcement, NetworkSources& sources, bool alone,
                            long nanoseconds) noexcept;
  /// The same for the server (vci/server.hpp). False: it is to sleep on its word.
  [[nodiscard]] bool sleep_server(const Sleepers::ServerView& view, NetworkSources& sources, long nanoseconds) noexcept;

 private:
  [[nodiscard]] bool unreachable() const noexcept {
    return doorbell_->unreachable.load(std::memory_order_relaxed);
  }

  /// Whether the network and a bell end a sleep.
  [[nodiscard]] bool wakes(const NetworkSources& sources) const noexcept {
    return !sources.awake_ && !sources.silent_ && sources.count_ && !unreachable();
  }

  shm::Doorbell* doorbell_ = nullptr;
  int sentinel_bell_ = -1, server_bell_ = -1;
};

/// This process's.
[[gnu::visibility("hidden")]] extern NetworkSleep network_sleep;

}  // namespace heddle::park
