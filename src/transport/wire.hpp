// What a network must be able to do for one VCI: messages to other processes in order, reads and writes of their memory, completions.
#pragma once

#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "transport/holder.hpp"

namespace heddle::wire {

/// Names a peer within one context.
using Address = std::uint64_t;
inline constexpr Address no_address = ~Address{0};

struct Event;

/// Something that was posted; its owner's, until its event.
struct Operation {
  void* room[8]{};  ///< the context's
  /// What the poller calls with the event. Contexts neither call nor change it; null in their own operations.
  void (*done)(Operation& operation, const Event& event, Held& held) noexcept = nullptr;
};

/// A message has arrived, a peer has written and says so, or something that was posted is done.
struct Event {
  Operation* operation;  ///< null: a message, or a write
  std::size_t bytes;    ///< of a received message
  std::byte* data;      ///< of a received message; valid until the context is polled again; aligned to eight bytes. Null: a write
  int error;            ///< 0, or a positive errno or libfabric code
  std::uint32_t immediate = 0;  ///< of a write: what `write_with_data` was given
};

/// What registered memory is for. Peers update (`atomic`) only what they may both read and write.
enum class Use : std::uint8_t {
  at_this_end,  ///< all of the next three
  receive,
  read_into,
  write_from,
  read_by_peers,
  written_by_peers,
  read_and_written_by_peers,
};

/// What a network can do; settled by `Context::open`.
struct Capabilities {
  bool sends_parts = false;        ///< `send_parts` works
  bool registers_local = false;    ///< local memory must be registered too
  bool reads = false, writes = false, writes_with_data = false, atomics = false;  ///< the call of that name works
  /// A write that is complete has merely left this process, and `confirm` tells when writes are in place. Otherwise it is in place.
  bool confirms = false;
  bool passive_target = false;     ///< reads, writes and atomics need nobody at the target
  bool coherent_atomics = false;   ///< with those of the target's processor
  bool tells_departures = false;   ///< `has_left` knows at once
  /// A message that was posted may wait here until somebody polls, with nothing on `wait_fd` unless `may_sleep` was asked after it.
  bool keeps_messages = false;
  bool waits_with_epoll = false;   ///< `wait_fd` is an epoll descriptor, whose events may be asked for without taking any away
  std::size_t largest_read = 0, largest_write = 0;  ///< bytes
  std::size_t copied_write = 0;    ///< bytes: a write of so many leaves its memory free at once
};

/// What the network may carry out on numbers in a peer's memory, each as one step.
enum class Atomic : std::uint8_t { add, min, max, bit_and, bit_or, bit_xor, replace, read, compare_swap };
inline constexpr std::size_t atomic_count = 9;
enum class AtomicType : std::uint8_t { int32, uint32, int64, uint64, float32, float64 };
inline constexpr std::size_t atomic_type_count = 6;
constexpr std::size_t size_of(AtomicType type) noexcept {
  return type == AtomicType::int32 || type == AtomicType::uint32 || type == AtomicType::float32 ? 4 : 8;
}

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
  /// From now on `Factory::find_silent` looks after the process whose context has this name.
  virtual void watch(std::string_view /*name*/, std::uint32_t /*process*/) noexcept {}

  /// Posts a message. 0: `operation` comes back from `poll` when the buffer is free again. 1: it is free at once.
  /// -EAGAIN: nothing happened, try after `poll`. Other negative: failed.
  virtual int send(Address to, const void* data, std::size_t bytes, void* descriptor, Operation& operation) noexcept = 0;
  /// The same of a message in up to three parts, none of which needs registration.
  virtual int send_parts(Address to, const iovec* parts, std::size_t count, Operation& operation) noexcept = 0;
  /// Posts a read of the peer's registered memory. As `send`, but never 1. It may wait for others until `flush`.
  virtual int read(Address from, void* to, std::size_t bytes, void* descriptor, std::uint64_t address, std::uint64_t key,
                   Operation& operation) noexcept = 0;

  /// Posts a write to the peer's registered memory. It may wait for others until `flush`. 1: nothing comes back. 0: `operation` does, when the
  /// memory at this end is free again, and, without Capabilities::confirms, the bytes are in place. -EAGAIN: nothing happened, try after `poll`.
  /// Other negative: failed; -ENOSYS: not on this network. What the peer has not exposed for writing is not written, and ends the connection.
  /// Writes and messages may overtake each other. \param operation null where `confirms`, and `bytes` are at most Capabilities::copied_write
  virtual int write(Address, const void*, std::size_t, void* /*descriptor*/, std::uint64_t /*address*/, std::uint64_t /*key*/, Operation*) noexcept {
    return -ENOSYS;
  }
  /// The same, and the peer's `poll` has an event with `immediate` when it is in place.
  virtual int write_with_data(Address, const void*, std::size_t, void* /*descriptor*/, std::uint64_t /*address*/, std::uint64_t /*key*/,
                              std::uint32_t /*immediate*/, Operation*) noexcept {
    return -ENOSYS;
  }
  /// `operation` comes back when all writes that were posted to the peer before are in place. As `read`. \pre Capabilities::confirms
  virtual int confirm(Address, Operation&) noexcept { return -ENOSYS; }
  /// Whether `atomic` works so; `fetches`: with `before`. Settled by `open`.
  [[nodiscard]] virtual bool has_atomic(Atomic, AtomicType, bool /*fetches*/) const noexcept { return false; }
  /// Carries out `what` on a number in the peer's registered memory; `*before` is what was there, unless null. The descriptor is that of the memory
  /// around operand, compare and before. `operation` comes back when all is done. As `read`.
  virtual int atomic(Address, Atomic, AtomicType, const void* /*operand*/, const void* /*compare*/, void* /*before*/, void* /*descriptor*/,
                     std::uint64_t /*address*/, std::uint64_t /*key*/, Operation&) noexcept {
    return -ENOSYS;
  }

  /// Whether the last `poll` has moved bytes, with which nothing need be complete yet. False where the network does not say.
  [[nodiscard]] bool has_moved() const noexcept { return moved_; }

  /// After one `read`, `write` or `confirm`, or several, unless `poll` follows.
  virtual void flush() noexcept {}

  /// Completions, at most `n`; frees what earlier receive events pointed to. Negative: the queue itself failed.
  virtual int poll(Event* events, int n) noexcept = 0;

  /// False when the network refuses.
  virtual bool register_memory(const void* address, std::size_t bytes, Use use, Registration& registration) noexcept = 0;
  virtual void deregister(Registration& registration) noexcept = 0;

  /// Before sleeping on `wait_fd` this must have said true.
  virtual bool may_sleep() noexcept = 0;

  /// Whether the peer has closed its end. Without `tells_departures` this may take a tenth of a second to find out, and "no" may mean
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
  [[nodiscard]] const Capabilities& capabilities() const noexcept { return capabilities_; }
  /// A descriptor that is readable when `poll` has something, -1 when there is none.
  [[nodiscard]] int wait_fd() const noexcept { return wait_fd_; }

 protected:
  std::string name_;
  Capabilities capabilities_;
  bool moved_ = false;
  int wait_fd_ = -1;
};

/// What is wanted of the network of a job.
struct Need {
  bool one_host = false;    ///< all ranks are on this host, so that the loopback interface will do
  std::size_t whole = 0;    ///< bytes that should leave in one piece where a copy costs less than asking first
  bool may_use_more = false;  ///< memory, for that: the job is small
};

/// The network that carries a job's messages.
struct Choice {
  std::string provider;   ///< "tcp;ofi_rxm"
  std::string interface;  ///< "eth0", "mlx5_0"
  std::string address;    ///< as a person reads it; empty when the network has no such form
  std::string why;        ///< one sentence
  std::string agreement;  ///< what both ends must have alike
  std::size_t contexts = 0;  ///< that the node has; 0: no limit
  std::size_t largest_message = 0, largest_name = 0;  ///< bytes
  bool sends_whole = false;  ///< messages of Need::whole bytes, and a copy costs less than asking first
};

/// One thing that was looked at, and whether it was taken.
struct Offered {
  std::string provider, interface, address;
  std::string verdict;  ///< "chosen", or why not
  std::uint32_t megabits = 0;  ///< a second; 0: not known, or not asked
};

/// What came of a look at one kind of network.
enum class Look : std::uint8_t {
  taken,
  passed,   ///< it is not there, or worth less than others
  refused,  ///< the user has asked for it, and it does not work
};

/// A kind of network. All of a process's contexts are of the one that was chosen.
struct Factory {
  const char* name;
  /// Parameters: HEDDLE_OFI_PROVIDER, HEDDLE_NET. Not `taken`: `problem` says the cause and the remedy. `offered` (may be null) gets all
  /// that was looked at.
  Look (*look)(const Need& need, Choice& choice, std::vector<Offered>* offered, std::string& problem);
  /// Opens what the last look took, for all contexts of the process; undone by `close`.
  bool (*open)(std::string& problem);
  void (*close)() noexcept;
  std::unique_ptr<Context> (*new_context)();  ///< null without memory
  /// What a code of an Event or a call means.
  std::string (*error_text)(int code);
  /// What messages of this job have in common and others have not. After `open`, before the first `poll`. May be null.
  void (*set_key)(std::uint64_t key) noexcept;
  /// As Context::find_silent, for all contexts together; `process` is what `watch` was told. May be null.
  bool (*find_silent)(int seconds, std::uint32_t& process, std::string& host) noexcept;
};

}  // namespace heddle::wire
