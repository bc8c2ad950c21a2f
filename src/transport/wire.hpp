// What a network must be able to do for one VCI: messages to other processes in order, reads of their memory, completions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/uio.h>

namespace heddle::wire {

/// Names a peer within one context.
using Address = std::uint64_t;
inline constexpr Address no_address = ~Address{0};

/// What a context gives back when something that was posted is done. First member of everything posted.
struct Operation {
  enum class Kind : std::uint8_t { send, receive, read };
  void* room[8]{};  ///< the context's
  Kind kind;
};

/// A completion.
struct Event {
  Operation* operation;
  std::uint64_t flags;
  std::size_t bytes;    ///< of a received message
  std::byte* data;      ///< of a received message; valid until the context is polled again; aligned to eight bytes
  int error;            ///< 0, or a positive errno or libfabric code
};

/// What registered memory is for.
enum class Use : std::uint8_t { send, receive, read_into, read_by_peers };

/// Memory that the network may read or write.
struct Registration {
  void* memory = nullptr;      ///< the context's; null where it needs none
  void* descriptor = nullptr;  ///< what `send` and `read` want of local memory
  std::uint64_t key = 0;
  std::uint64_t base = 0;  ///< what the other end adds its offset to
};

/// One VCI's own piece of a network. Not thread-safe: whoever calls holds the VCI.
///
/// The calls are virtual: each leads to a system call, or to a provider of libfabric that is behind a pointer itself.
class Context {
 public:
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  virtual ~Context() = default;

  /// \param largest message that will be sent or received. \param wait whether `wait_fd` is wanted
  virtual bool open(std::size_t largest, bool wait, std::string& problem) = 0;
  virtual void close() noexcept = 0;

  /// Makes a peer's address, its context's `name`, known. `no_address` when it cannot be.
  virtual Address insert(std::string_view name) noexcept = 0;

  /// Posts a message. 0: `operation` comes back from `poll` when the buffer is free again. 1: it is free at once.
  /// -EAGAIN: nothing happened, try after `poll`. Other negative: failed.
  virtual int send(Address to, const void* data, std::size_t bytes, void* descriptor, Operation& operation) noexcept = 0;
  /// The same of a message in up to three parts, none of which needs registration.
  virtual int send_parts(Address to, const iovec* parts, std::size_t count, Operation& operation) noexcept = 0;
  /// Posts a read of the peer's registered memory. As `send`, but never 1. It may wait for others until `flush`.
  virtual int read(Address from, void* to, std::size_t bytes, void* descriptor, std::uint64_t address, std::uint64_t key,
                   Operation& operation) noexcept = 0;

  /// Whether the last `poll` has moved bytes, with which nothing need be complete yet. False where the network does not say.
  [[nodiscard]] bool has_moved() const noexcept { return moved_; }

  /// After one `read` or several, unless `poll` follows.
  virtual void flush() noexcept {}

  /// Completions, at most `n`; frees what earlier receive events pointed to. Negative: the queue itself failed.
  virtual int poll(Event* events, int n) noexcept = 0;

  /// False when the network refuses.
  virtual bool register_memory(const void* address, std::size_t bytes, Use use, Registration& registration) noexcept = 0;
  virtual void deregister(Registration& registration) noexcept = 0;

  /// Before sleeping on `wait_fd` this must have said true.
  virtual bool may_sleep() noexcept = 0;

  /// Whether the peer has closed its end. Where `tells_departures` is false this may take a tenth of a second to find out, and "no" may mean
  /// that it cannot be known.
  [[nodiscard]] virtual bool has_left(Address) const noexcept { return false; }
  /// For messages about a peer: from where to where messages go, or were tried to; empty where the network cannot say.
  [[nodiscard]] virtual std::string way(Address) const { return {}; }
  /// A peer whose host has not answered for so many seconds, though its kernel was asked more than once, which a call also has this host's kernel do.
  /// To be called every `seconds / 4`. `no_address`: there is none, or the network cannot say.
  virtual Address find_silent(int seconds, std::string& host) noexcept {
    (void)seconds, (void)host;
    return no_address;
  }
  /// From now on `send` never says 1: what it said that of may be lost when the process ends. Or, with false, as ever.
  virtual void report_all_sends(bool) noexcept {}

  /// This end's address, for `insert` at the other end.
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  /// Whether `send_parts` works here.
  [[nodiscard]] bool sends_parts() const noexcept { return sends_parts_; }
  /// Whether local memory must be registered too.
  [[nodiscard]] bool registers_local() const noexcept { return registers_local_; }
  [[nodiscard]] bool reads() const noexcept { return reads_; }
  [[nodiscard]] bool tells_departures() const noexcept { return tells_departures_; }
  /// Whether a message that was posted may wait here until somebody polls, with nothing on `wait_fd` unless `may_sleep` was asked after it.
  [[nodiscard]] bool keeps_messages() const noexcept { return keeps_messages_; }
  [[nodiscard]] std::size_t largest_read() const noexcept { return largest_read_; }
  /// A descriptor that is readable when `poll` has something, -1 when there is none.
  [[nodiscard]] int wait_fd() const noexcept { return wait_fd_; }
  /// Whether that is an epoll descriptor, whose events may be asked for without taking any away.
  [[nodiscard]] bool waits_with_epoll() const noexcept { return waits_with_epoll_; }

 protected:
  std::string name_;
  bool sends_parts_ = false, registers_local_ = false, reads_ = false, waits_with_epoll_ = false, tells_departures_ = false, keeps_messages_ = false;
  bool moved_ = false;
  std::size_t largest_read_ = 0;
  int wait_fd_ = -1;
};

}  // namespace heddle::wire
