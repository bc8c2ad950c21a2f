// Three processes in one, in the hands of a test. Each has a VCI of its own; their rings lie in one region, so that what one pushes is in the
// next one's ring. While it is a process's turn, the library takes it for "this process".
//
// A test decides who makes progress when: `step` is one step of a process's VCI. It may also play a process itself, by `take` and `push`.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/comm.hpp"
#include "core/datatype.hpp"
#include "core/datatype_envelope.hpp"
#include "core/runtime.hpp"
#include "proto/p2p.hpp"
#include "proto/protocol_state.hpp"
#include "proto/rendezvous.hpp"
#include "sys/bootstrap/bootstrap.hpp"
#include "sys/error.hpp"
#include "transport/shm/node.hpp"
#include "vci/wait.hpp"

namespace heddle::proto {

void report_wait(Vci* vci, const WaitSubject& subject, std::int64_t seconds) noexcept;  // hang_report.cpp

inline Datatype& byte_type() { return *heddle::resolve<Datatype>(MPI_BYTE); }
/// Three bytes and a gap of one.
inline Datatype& gap_type() {
  static Datatype& type = [&]() -> Datatype& {
    Datatype *three = nullptr, *resized = nullptr;
    EXPECT_EQ(make_contiguous(3, byte_type(), false, three), MPI_SUCCESS);
    EXPECT_EQ(make_resized(*three, 0, 4, false, resized), MPI_SUCCESS);
    EXPECT_EQ(commit(*resized), MPI_SUCCESS);
    return *resized;
  }();
  return type;
}

/// A message's memory, or a receive buffer's, with bytes behind it that nobody may touch.
class Data {
 public:
  /// \param n bytes, a multiple of 3 where there are gaps \param place where they lie; null: memory of its own
  explicit Data(std::size_t n, bool gaps = false, std::byte* place = nullptr) : n_(n), gaps_(gaps), base_(place) {
    if (!base_) {
      own_.resize(span() + guard);
      base_ = own_.data();
    }
    std::memset(base_, 0xee, span() + guard);
  }
  Data(Data&&) noexcept = default;  // the memory stays where it is
  static Data numbered(std::size_t n, int seed, bool gaps = false, std::byte* place = nullptr) {
    Data data(n, gaps, place);
    const std::vector<std::byte> bytes = pattern(n, seed);
    data.buffer().unpack(0, bytes.data(), n);
    return data;
  }
  static std::vector<std::byte> pattern(std::size_t n, int seed) {
    std::vector<std::byte> bytes(n);
    for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251 + static_cast<std::size_t>(seed) * 31 + 1);
    return bytes;
  }
  [[nodiscard]] Buffer buffer() const {
    return gaps_ ? Buffer(base_, static_cast<MPI_Count>(n_ / 3), gap_type()) : Buffer(base_, static_cast<MPI_Count>(n_), byte_type());
  }
  /// That the first `n` bytes are those of the pattern, and that nothing was written elsewhere.
  void expect(std::size_t n, int seed) const {
    std::vector<std::byte> bytes(n_);
    buffer().pack(0, bytes.data(), n_);
    std::vector<std::byte> wanted = pattern(n, seed);
    wanted.resize(n_, std::byte{0xee});
    EXPECT_TRUE(bytes == wanted) << "wrong bytes, first at " << std::mismatch(bytes.begin(), bytes.end(), wanted.begin()).first - bytes.begin();
    for (std::size_t i = 3; gaps_ && i < span(); i += 4) EXPECT_EQ(base_[i], std::byte{0xee}) << "in the gap at " << i;
    for (std::size_t i = span(); i < span() + guard; ++i) EXPECT_EQ(base_[i], std::byte{0xee}) << "behind the buffer";
  }
  [[nodiscard]] const std::byte* base() const { return base_; }

 private:
  static constexpr std::size_t guard = 64;
  [[nodiscard]] std::size_t span() const { return gaps_ ? n_ / 3 * 4 : n_; }
  std::size_t n_;
  bool gaps_;
  std::byte* base_;
  std::vector<std::byte> own_;
};

/// A record that a test took out of a ring.
struct Taken {
  RecordHead head;
  std::vector<std::byte> payload;
  template <typename T>
  [[nodiscard]] T as() const {
    T value;
    EXPECT_GE(payload.size(), sizeof value);
    std::memcpy(&value, payload.data(), sizeof value);
    return value;
  }
};

/// One of the processes.
class Side {
 public:
  static constexpr unsigned count = 3;
  static constexpr ContextId context = ContextId{1} << 32 | 2;

  /// \param process that it is; another side's, of which it is an endpoint then
  Side(unsigned number, const std::vector<ProcessIndex>& process_of) : number_(number), process_(process_of[number]) {
    auto routing = std::make_unique<Routing>();
    routing->sender = lane_at(number);
    routing->lanes = std::make_unique<Lane[]>(count);
    for (unsigned i = 0; i < count; ++i) routing->lanes[i] = lane_at(i);
    Group* group = make_group(process_of.data(), static_cast<int>(count), static_cast<int>(number));
    comm_ = make_comm(context, group, static_cast<int>(number));
    comm_->routing = routing.release();
    set_context(*comm_, context);
    set_comm_name(*comm_, "simulated");
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  ~Side() { release_comm(comm_); }

  /// From now on the library is in this process.
  Side& turn() {
    runtime.self = process_;
    runtime.rank = static_cast<int>(process_);
    runtime.name = {1, process_};
    return *this;
  }
  [[nodiscard]] Vci& vci() const { return vci_of_lane(lane_at(number_)); }
  [[nodiscard]] State& state() const { return state_of(vci()); }
  [[nodiscard]] Comm& comm() const { return *comm_; }
  /// Whether it asks senders to hold back.
  [[nodiscard]] bool held() const { return port_of(*shm::find(process_), lane_at(number_)).ring.held(); }

  Request* send(const Data& data, unsigned to, int tag = 0, SendMode mode = SendMode::standard) {
    turn();
    return isend(data.buffer(), static_cast<int>(to), tag, *comm_, Space::user, mode);
  }
  Request* receive(const Data& data, int from = MPI_ANY_SOURCE, int tag = MPI_ANY_TAG) {
    turn();
    return irecv(data.buffer(), from, tag, *comm_, Space::user);
  }
  void cancel(Request* send) {
    turn();
    cancel_send(*send);
  }
  void free(Request* request) {
    turn();
    release_by_user(*request);
  }
  bool step() {
    turn();
    return submit(vci(), [](VciGuard& guard) { return progress(guard); });
  }
  /// What a step does besides taking records: so a test leaves them in the ring.
  bool move() {
    turn();
    return submit(vci(), [&](VciGuard& guard) { return state().transfers && advance_transfers(guard); });
  }
  /// The oldest record in this process's ring, which the library here will not see.
  std::optional<Taken> take() {
    sync::RingLine* line = vci().ring.front();
    if (!line) return {};
    const auto& record = *reinterpret_cast<const Record*>(line);
    const std::byte* const payload = record.payload;
    Taken taken{{record.context, record.source, record.tag, record.kind, record.lane}, std::vector<std::byte>(payload, payload + record.bytes)};
    vci().ring.pop(line);
    return taken;
  }
  /// A record of the test's own making, from this process.
  template <typename Payload>
  void push(unsigned to, RecordKind kind, const Payload& payload, match::Pattern key = {0, 0, 0}) {
    turn();
    submit(vci(), [&](VciGuard& guard) {
      const RecordHead head{key.context, key.source, key.tag, kind, lane_at(number_)};
      push_or_queue(guard, peer_of(static_cast<ProcessIndex>(to)), lane_at(to), head, &payload, sizeof payload);
    });
  }
  /// Fills the ring of another with messages of no bytes, to the last line. Returns how many there are; `tag` is theirs.
  int fill(unsigned to, int tag) {
    turn();
    shm::Port& port = port_of(peer_of(static_cast<ProcessIndex>(to)), lane_at(to));
    int n = 0;
    while (try_push(port, {context, static_cast<int>(number_), tag, PointToPoint::eager, lane_at(number_)}, nullptr, 0)) ++n;
    return n;
  }

 private:
  unsigned number_;
  ProcessIndex process_;
  Comm* comm_;
};

/// What MPI_Wait would report, and the request is gone.
struct Outcome {
  int source, tag, error_class;
  std::size_t bytes;
  bool cancelled;
};
inline Outcome finish(Request* request) {
  EXPECT_TRUE(request->is_done());
  const Outcome outcome{request->source, request->tag, error_class(request->error), static_cast<std::size_t>(request->bytes), request->cancelled};
  if (request->is_done()) retire(request);
  return outcome;
}

class ProtoTest : public testing::Test {
 protected:
  /// \param one_process the first two are endpoints of one process
  explicit ProtoTest(bool one_process = false) {
    static constexpr auto here = [](std::uint32_t) noexcept { return ProcessPlace{Route::node, true}; };
    start(here, one_process);
  }
  using Locate = ProcessPlace (*)(std::uint32_t) noexcept;
  ProtoTest(Locate locate, bool one_process) { start(locate, one_process); }

  ~ProtoTest() override {
    for (const auto& side : sides) {
      EXPECT_EQ(side->state().transfers, nullptr) << "a transfer that nobody ends";
      EXPECT_EQ(side->state().free_copies, ~std::uint64_t{0}) << "a shared copy that nobody has given back";
      EXPECT_EQ(side->vci().backlogged.load(), 0u);
      EXPECT_EQ(side->vci().moving.load(), 0u);
    }
    EXPECT_FALSE(has_freed_operations());
    sides.clear();
    stop_vcis();
    shm::stop();  // the peers too
    processes.clear();
  }

  Side& a() { return *sides[0]; }
  Side& b() { return *sides[1]; }
  Side& c() { return *sides[2]; }

  /// From now on no process can read another one's memory.
  static void refuse_single_copy() {
    shm::header->said.store(static_cast<std::uint32_t>(shm::NodeNotice::no_cma));
    shm::header->probe_value ^= 1;
  }
  /// Everybody makes progress until `done`. What is asked for comes within milliseconds; the bound is for what never does.
  template <typename Done>
  void run_until(Done&& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      for (const auto& side : sides) side->step();
      if (std::chrono::steady_clock::now() > end) return ADD_FAILURE() << "nothing moves any more";
    }
    settle();
  }
  void run(std::initializer_list<Request*> requests) {
    const std::vector<Request*> all(requests);
    run_until([&] { return std::ranges::all_of(all, [](Request* request) { return request->is_done(); }); });
  }
  /// Everybody makes progress until there is nothing to be taken any more.
  void settle() {
    for (int idle = 0; idle < 3; ++idle)
      for (const auto& side : sides)
        if (side->step()) idle = -1;
  }
  /// Steps of one process until `done`.
  template <typename Done>
  void step_until(Side& side, Done&& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      side.step();
      if (std::chrono::steady_clock::now() > end) return ADD_FAILURE() << "nothing moves any more";
    }
  }
  /// Longer than either end of a transfer waits for the other.
  static void let_patience_end() { usleep(100); }

  std::vector<std::unique_ptr<Side>> sides;

 private:
  void start(Locate locate, bool one_process) {
    read_limits();
    register_point_to_point();
    processes.add_job(1, Side::count, locate);
    sys::Bootstrap job;
    job.job_id = "simulated";
    unsigned vcis = Side::count;
    std::string problem;
    if (!shm::start(job, vcis, fit_limits, problem) || vcis < Side::count) {
      ADD_FAILURE() << problem;
      std::abort();
    }
    start_waiting(1, 0, report_wait);
    start_vcis(vcis);
    for (ProcessIndex process = 0; process < Side::count && locate(process).route == Route::node; ++process) {
      auto* peer = new shm::Peer;
      peer->process = process;
      peer->pid = getpid();
      peer->vcis = vcis;
      peer->doorbell = &shm::header->doorbell;
      peer->region = shm::region;
      if (process) {  // the region that `shm::stop` unmaps is process 0's
        peer->region.base = nullptr;
        EXPECT_TRUE(sys::map_segment(peer->region, shm::vci_offset + shm::max_vcis * shm::vci_stride, problem)) << problem;
      }
      processes.set(process, *peer);
    }
    const std::vector<ProcessIndex> process_of{0, one_process ? 0U : 1U, 2};
    for (unsigned i = 0; i < Side::count; ++i) sides.push_back(std::make_unique<Side>(i, process_of));
  }
};

}  // namespace heddle::proto
