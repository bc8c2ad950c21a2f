// A network in one process, in the hands of a test: engines that stand for processes, and wires between them that the test lets run.
//
// What one context sends lies in the wire until the test delivers it, in whatever order of connections the test likes. What the kernel would
// do to a sender (take nothing now, take it late, say that it is gone) the test does by Wire's switches.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/module.hpp"
#include "transport/net/control.hpp"
#include "transport/net/engine.hpp"
#include "transport/net/frame.hpp"

namespace heddle::net {

/// The VCI of a test: nobody else is there.
struct TestHolder : Held {
  class Station* station = nullptr;
};

class World;

/// What a context has sent or wants to read, on its way.
struct InFlight {
  std::vector<std::byte> bytes;
  wire::Operation* operation = nullptr;  ///< of a send that is not complete yet, or of a read
};

class SimulatedContext final : public wire::Context {
 public:
  SimulatedContext(World& world, std::string name, bool tells_departures) : world_(world) {
    name_ = std::move(name);
    capabilities_.sends_parts = capabilities_.reads = true;
    capabilities_.tells_departures = tells_departures;
    capabilities_.largest_read = 4096;
    // Like sockets, or like libfabric.
    capabilities_.writes = capabilities_.writes_with_data = true;
    capabilities_.confirms = tells_departures;
    capabilities_.largest_write = 1 << 20;
    capabilities_.copied_write = tells_departures ? 256 : 64;
  }
  ~SimulatedContext() override;

  bool open(std::size_t, bool, std::string&) override { return true; }
  void close() noexcept override {}
  wire::Address insert(std::string_view name) noexcept override;
  int send(wire::Address to, const void* data, std::size_t bytes, void*, wire::Operation& operation) noexcept override {
    const iovec part{const_cast<void*>(data), bytes};
    return send_parts(to, &part, 1, operation);
  }
  int send_parts(wire::Address to, const iovec* parts, std::size_t count, wire::Operation& operation) noexcept override;
  int read(wire::Address from, void* to, std::size_t bytes, void*, std::uint64_t address, std::uint64_t key, wire::Operation& operation) noexcept override;
  int write(wire::Address to, const void* data, std::size_t bytes, void*, std::uint64_t address, std::uint64_t key, wire::Operation* operation) noexcept override {
    return post_write(to, data, bytes, address, key, operation, {});
  }
  int write_with_data(wire::Address to, const void* data, std::size_t bytes, void*, std::uint64_t address, std::uint64_t key, std::uint32_t immediate,
                      wire::Operation* operation) noexcept override {
    return post_write(to, data, bytes, address, key, operation, immediate);
  }
  int confirm(wire::Address to, wire::Operation& operation) noexcept override {
    writes_.push_back({&operation, {}, nullptr, 0, peers_.at(to), {}});
    ++confirms;
    return 0;
  }
  [[nodiscard]] bool has_atomic(wire::Atomic what, wire::AtomicType type, bool) const noexcept override {
    return what == wire::Atomic::add && type == wire::AtomicType::int64;
  }
  int atomic(wire::Address, wire::Atomic, wire::AtomicType, const void* operand, const void*, void* before, void*, std::uint64_t address, std::uint64_t,
             wire::Operation& operation) noexcept override {
    auto& number = *reinterpret_cast<std::int64_t*>(address);
    if (before) std::memcpy(before, &number, sizeof number);
    number += *static_cast<const std::int64_t*>(operand);
    events_.push_back({&operation, 0, nullptr, 0});
    return 0;
  }
  void flush() noexcept override { ++flushes; }
  int poll(wire::Event* events, int n) noexcept override;
  bool register_memory(const void* address, std::size_t, wire::Use, wire::Registration& registration) noexcept override {
    registration.base = reinterpret_cast<std::uint64_t>(address);
    registration.key = 4711;
    return true;
  }
  void deregister(wire::Registration&) noexcept override {}
  bool may_sleep() noexcept override { return true; }
  [[nodiscard]] bool has_left(wire::Address address) const noexcept override;

  // The test's switches.
  int room = 1 << 30;        ///< messages that it takes; then -EAGAIN
  bool completes_late = false;  ///< sends return 0, and complete when the test says so
  int read_room = 1 << 30;   ///< the same of reads
  int failure = 0;           ///< of every send from now on
  std::deque<wire::Operation*> sending;  ///< not complete yet
  std::size_t sends = 0;     ///< messages that it has taken
  int write_room = 1 << 30;  ///< as `room`, of writes
  std::size_t confirms = 0, flushes = 0;  ///< calls

  /// Carries out a write that was posted, or answers: the oldest, or another one. False: there is none.
  bool complete_write(std::size_t which = 0);
  [[nodiscard]] std::size_t writes_waiting() const { return writes_.size(); }

  void complete_sends(int error = 0) {
    for (; !sending.empty(); sending.pop_front()) events_.push_back({sending.front(), 0, nullptr, error});
  }
  void deliver(std::vector<std::byte> bytes) { arrived_.push_back(std::move(bytes)); }
  /// Carries out the oldest read.
  bool complete_read();
  [[nodiscard]] std::size_t reads_waiting() const { return reads_.size(); }

 private:
  struct Write {
    wire::Operation* operation;
    std::vector<std::byte> copy;  ///< of what its caller may change
    const void* from;             ///< of what may not
    std::uint64_t bytes;
    std::string peer;
    std::optional<std::uint32_t> immediate;
    std::uint64_t address = 0;
  };
  int post_write(wire::Address to, const void* data, std::size_t bytes, std::uint64_t address, std::uint64_t key, wire::Operation* operation,
                 std::optional<std::uint32_t> immediate) noexcept {
    EXPECT_EQ(key, 4711U);
    if (write_room <= 0) return -EAGAIN;
    --write_room;
    const auto* from = static_cast<const std::byte*>(data);
    const bool copies = bytes <= capabilities_.copied_write;
    EXPECT_TRUE(operation || (copies && capabilities_.confirms));
    writes_.push_back({operation, copies ? std::vector<std::byte>(from, from + bytes) : std::vector<std::byte>(), copies ? nullptr : from, bytes, peers_.at(to),
                       immediate, address});
    return operation ? 0 : 1;
  }
  struct Read {
    wire::Operation* operation;
    void* to;
    const void* from;
    std::size_t bytes;
  };
  World& world_;
  std::vector<std::string> peers_;  ///< by Address
  std::deque<wire::Event> events_;
  std::deque<std::vector<std::byte>> arrived_;
  std::vector<std::vector<std::byte>> handed_out_;
  std::deque<Read> reads_;
  std::deque<Write> writes_;
};

/// All contexts, and what is between them.
class World {
 public:
  std::map<std::string, SimulatedContext*> contexts;
  std::map<std::pair<std::string, std::string>, std::deque<std::vector<std::byte>>> wires;  ///< from, to

  /// Lets the oldest message from one to the other arrive. False: there is none, or nobody is there any more.
  bool deliver(const std::string& from, const std::string& to) {
    auto& wire = wires[{from, to}];
    const auto there = contexts.find(to);
    if (wire.empty() || there == contexts.end()) return false;
    there->second->deliver(std::move(wire.front()));
    wire.pop_front();
    return true;
  }
  /// Lets the newest overtake all before it.
  bool deliver_newest(const std::string& from, const std::string& to) {
    auto& wire = wires[{from, to}];
    if (wire.empty()) return false;
    std::rotate(wire.begin(), wire.end() - 1, wire.end());
    return deliver(from, to);
  }
  bool deliver_all() {
    bool any = false;
    for (auto& [ends, wire] : wires)
      while (deliver(ends.first, ends.second)) any = true;
    return any;
  }
};

inline SimulatedContext::~SimulatedContext() { world_.contexts.erase(name_); }

inline wire::Address SimulatedContext::insert(std::string_view name) noexcept {
  for (std::size_t i = 0; i < peers_.size(); ++i)
    if (peers_[i] == name) return i;
  peers_.emplace_back(name);
  return peers_.size() - 1;
}

inline int SimulatedContext::send_parts(wire::Address to, const iovec* parts, std::size_t count, wire::Operation& operation) noexcept {
  if (failure) return -failure;
  if (room <= 0) return -EAGAIN;
  --room;
  ++sends;
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto* at = static_cast<const std::byte*>(parts[i].iov_base);
    bytes.insert(bytes.end(), at, at + parts[i].iov_len);
  }
  world_.wires[{name_, peers_.at(to)}].push_back(std::move(bytes));
  if (!completes_late) return 1;
  sending.push_back(&operation);
  return 0;
}

inline int SimulatedContext::read(wire::Address, void* to, std::size_t bytes, void*, std::uint64_t address, std::uint64_t, wire::Operation& operation) noexcept {
  if (read_room <= 0) return -EAGAIN;
  --read_room;
  reads_.push_back({&operation, to, reinterpret_cast<const void*>(address), bytes});
  return 0;
}

inline bool SimulatedContext::complete_read() {
  if (reads_.empty()) return false;
  const Read read = reads_.front();
  reads_.pop_front();
  std::memcpy(read.to, read.from, read.bytes);
  events_.push_back({read.operation, read.bytes, nullptr, 0});
  return true;
}

inline bool SimulatedContext::complete_write(std::size_t which) {
  if (which >= writes_.size()) return false;
  const Write write = std::move(writes_[which]);
  writes_.erase(writes_.begin() + static_cast<std::ptrdiff_t>(which));
  if (write.address && write.bytes) std::memcpy(reinterpret_cast<void*>(write.address), write.from ? write.from : write.copy.data(), write.bytes);
  if (write.immediate) world_.contexts.at(write.peer)->events_.push_back({nullptr, 0, nullptr, 0, *write.immediate});
  if (write.operation) events_.push_back({write.operation, write.bytes, nullptr, 0});
  return true;
}

inline int SimulatedContext::poll(wire::Event* events, int n) noexcept {
  handed_out_.clear();
  int found = 0;
  for (; found < n && !events_.empty(); events_.pop_front()) events[found++] = events_.front();
  for (; found < n && !arrived_.empty(); arrived_.pop_front()) {
    handed_out_.push_back(std::move(arrived_.front()));
    events[found++] = {nullptr, handed_out_.back().size(), handed_out_.back().data(), 0};
  }
  return found;
}

inline bool SimulatedContext::has_left(wire::Address address) const noexcept {
  return capabilities_.tells_departures && !world_.contexts.count(peers_.at(address));
}

/// A record that a station has got.
struct Got {
  ProcessIndex process;
  int tag;
  std::vector<std::byte> payload;
};

/// A process with as many VCIs as engines; each engine has a holder of its own.
class Station final : public Host {
 public:
  Station(World& world, ProcessIndex self, std::uint32_t processes, unsigned vcis, bool tells_departures) : self_(self) {
    factory_.error_text = [](int code) { return std::string(std::strerror(code < 0 ? -code : code)); };
    common.host = this;
    common.factory = &factory_;
    common.choice.provider = "simulated";
    common.choice.interface = "sim0";
    common.address_of = address_of;
    common.written = [](Held& held, std::uint32_t immediate) noexcept { static_cast<TestHolder&>(held).station->announced.push_back(immediate); };
    common.wake_helper = []() noexcept { ++wakes; };
    common.key = 0x1234;
    heddle::processes.add_job(1, 64, [](std::uint32_t) noexcept { return ProcessPlace{Route::network, false}; });
    common.self = {1, self};
    common.ranks = processes;
    common.frame_bytes = 1024;
    common.copy_limit = 512;
    common.eager = 4096;
    common.largest_frame = 8192;
    common.window = 16 << 10;
    for (unsigned i = 0; i < vcis; ++i) {
      auto context = std::make_unique<SimulatedContext>(world, name_of(self, i), tells_departures);
      contexts.push_back(context.get());
      world.contexts[name_of(self, i)] = context.get();
      engines.push_back(std::make_unique<Engine>(common, vci_at(i), std::move(context)));
      holders.push_back(std::make_unique<TestHolder>());
      holders.back()->station = this;
    }
  }

  static std::string name_of(ProcessIndex process, unsigned vci) { return std::to_string(process) + "." + std::to_string(vci); }
  static const ProcessAddress& address_of(ProcessIndex process) noexcept {
    static std::map<ProcessIndex, ProcessAddress> known;
    return known.try_emplace(process, ProcessAddress{{}, 4, name_of(process, 0)}).first->second;
  }

  Engine& engine_of(Lane lane) noexcept override { return *engines.at(number(lane)); }
  bool has_gathered() noexcept override { return std::ranges::any_of(engines, [](const auto& engine) { return engine->has_gathered(); }); }
  void leave_work(Held&) noexcept override {}
  void wake_sleepers(Held&) noexcept override {}
  bool holds_back(Held&) noexcept override { return holding; }

  Engine& engine(unsigned vci = 0) { return *engines.at(vci); }
  SimulatedContext& context(unsigned vci = 0) { return *contexts.at(vci); }
  Held& held(unsigned vci = 0) { return *holders.at(vci); }
  Connection& to(ProcessIndex process, unsigned lane = 0, unsigned vci = 0) { return engine(vci).connection_to(process, lane_at(lane)); }
  /// All VCIs make progress, once each; true if any had something to do.
  bool poll() {
    bool worked = false;
    for (unsigned i = 0; i < engines.size(); ++i) {
      worked |= engine(i).poll(held(i), false);
      worked |= engine(i).flush(held(i));
    }
    return worked;
  }
  /// Ends as a process does: nothing of it is left.
  void leave() {
    engines.clear();
    contexts.clear();
  }

  static inline int wakes = 0;
  Common common;
  bool holding = false;
  std::vector<Got> got;
  std::vector<std::uint32_t> announced;  ///< of writes of peers
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<SimulatedContext*> contexts;
  std::vector<std::unique_ptr<TestHolder>> holders;

 private:
  void visit_engines(bool, Visitor visit, void* context) noexcept override {
    for (unsigned i = 0; i < engines.size(); ++i) visit(context, held(i), engine(i));
  }
  ProcessIndex self_;
  wire::Factory factory_{};
};

// --- the module of the test: records whose source is the sender and whose tag is a number ---
inline constexpr RecordKind numbered{7, 0};
inline void take_numbered(Held& held, Record& record) noexcept {
  const std::byte* const payload = record.payload;
  static_cast<TestHolder&>(held).station->got.push_back(
      {static_cast<ProcessIndex>(record.source), record.tag, std::vector<std::byte>(payload, payload + record.bytes)});
}
inline constexpr RecordOperation test_operations[] = {{"numbered", 0, true, take_numbered}};
inline constexpr Module test_module{7, "of a test", test_operations};

/// Counts.
struct Told : Completion {
  Told() {
    done = [](Completion& self, Held&, int error) noexcept {
      ++static_cast<Told&>(self).times;
      static_cast<Told&>(self).error = error;
    };
  }
  int times = 0, error = 0;
};

inline std::vector<std::byte> pattern(std::size_t n, int seed) {
  std::vector<std::byte> bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(seed));
  return bytes;
}

class NetEngine : public testing::TestWithParam<bool> {
 protected:
  NetEngine() {
    register_module(control());
    register_module(test_module);
    for (ProcessIndex i = 0; i < 3; ++i) stations.push_back(std::make_unique<Station>(world, i, 3, 4, GetParam()));
  }
  /// In order, from one's VCI 0 to the other's.
  void send(ProcessIndex from, ProcessIndex to, int tag, std::size_t bytes = 8) {
    Station& s = *stations[from];
    const auto payload = pattern(bytes, tag);
    s.engine().push(s.held(), s.to(to), {2, static_cast<std::int32_t>(from), tag, numbered}, payload.data(), static_cast<std::uint32_t>(bytes));
  }
  /// Everybody makes progress and all that was sent arrives, until nothing happens any more.
  void settle() {
    for (int idle = 0, rounds = 0; idle < 3 && rounds < 10'000; ++rounds) {
      bool worked = false;
      for (auto& station : stations) worked |= station->poll();
      worked |= world.deliver_all();
      idle = worked ? 0 : idle + 1;
    }
  }
  /// Everything got is whole; the tags, of one sender.
  std::vector<int> tags_from(ProcessIndex at, ProcessIndex from) {
    std::vector<int> tags;
    for (const Got& one : stations[at]->got) {
      EXPECT_EQ(one.payload, pattern(one.payload.size(), one.tag));
      if (one.process == from) tags.push_back(one.tag);
    }
    return tags;
  }
  static std::vector<int> up_to(int n) {
    std::vector<int> all;
    for (int i = 0; i < n; ++i) all.push_back(i);
    return all;
  }

  World world;
  std::vector<std::unique_ptr<Station>> stations;
};

/// With and without a network that tells who has left.
inline std::string departures(const testing::TestParamInfo<bool>& info) { return info.param ? "network_tells_departures" : "network_tells_nothing"; }

}  // namespace heddle::net
