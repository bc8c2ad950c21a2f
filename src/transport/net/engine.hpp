// One VCI's part of the network: connections, frames, flow-control credit, remote reads, closing.
//
// It moves records and bytes, knows nothing of what they mean, and calls back: handle_record (transport/module.hpp) for what arrives,
// Completion for what has left or was fetched. docs/design/network.md
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transport/net/completion.hpp"
#include "transport/net/connection.hpp"
#include "transport/net/host.hpp"
#include "transport/net/look_pace.hpp"
#include "transport/net/region.hpp"
#include "transport/record.hpp"
#include "transport/process.hpp"
#include "transport/wire.hpp"

namespace heddle::net {

/// Where a process can be reached.
struct ProcessAddress : NetworkPeer {
  std::uint32_t vcis = 1;  ///< that it has
  std::string name;        ///< of its VCI 0, for wire::Context::insert
};

/// What the engines of a process have in common. Set before the first one is made, but for what is atomic.
struct Common {
  Host* host = nullptr;
  const wire::Factory* factory = nullptr;
  wire::Choice choice;
  const ProcessAddress& (*address_of)(ProcessIndex process) noexcept = nullptr;  ///< thread-safe
  void (*written)(Held& held, std::uint32_t immediate) noexcept = nullptr;  ///< \see hear_writes
  void (*wake_helper)() noexcept = nullptr;  ///< somebody has gathered messages, and may not come back soon. Thread-safe
  std::uint64_t key = 0;           ///< of the job
  ProcessName self{};
  std::uint32_t ranks = 1;         ///< of the job: who has a higher one is refused
  std::size_t frame_bytes = 16 << 10;  ///< largest frame that records are copied into
  std::size_t copy_limit = 8 << 10;    ///< largest message that is copied into one, with others
  std::size_t eager = 8 << 10;         ///< largest message that is sent without waiting for its receive
  std::size_t largest_frame = 17 << 10;
  std::uint64_t window = 1 << 20;  ///< bytes that a VCI sends to another before that has confirmed them
  bool gathers = true;             ///< small messages to one peer that follow each other leave in one write
  std::int64_t patience = 60;      ///< seconds after which a silent peer is given up; 0: never
  /// In MPI_Finalize or the end of the last session. Relaxed: the helper may see it a tick later.
  std::atomic<bool> finishing{false};
};

/// Frames ahead of their turn; more mean that some were lost. If both ends have connected at once, all that the kernel holds of the one
/// connection may come before what it holds of the other: megabytes of small frames.
inline constexpr std::uint32_t most_early = 1 << 18;
/// Unfinished writes on a connection, above which a stream of records waits.
inline constexpr std::uint32_t most_streamed = 16;

/// Memory of a peer to be fetched. The caller's, from `read` until `completion` is told; what begins with it may hold it.
struct RemoteRead : Completion {
  Connection* connection = nullptr;
  std::byte* to = nullptr;
  void* descriptor = nullptr;  ///< of `to`, where local memory is registered
  std::uint64_t bytes = 0;     ///< at least 1
  std::uint64_t from = 0, key = 0;
  // The engine's.
  std::uint64_t issued = 0, arrived = 0;  ///< bytes
  std::uint32_t in_flight = 0;            ///< pieces
  bool queued = false;
  RemoteRead* following = nullptr;
};

/// Not thread-safe: who calls holds the VCI, and proves it by `Held`, but for what says otherwise.
class Engine {
 public:
  /// \param index of the VCI
  Engine(Common& common, VciIndex vci, std::unique_ptr<wire::Context> context) noexcept;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  [[nodiscard]] const Common& common() const noexcept { return common_; }
  [[nodiscard]] const wire::Capabilities& capabilities() const noexcept { return context_->capabilities(); }
  /// This end's address. Thread-safe.
  [[nodiscard]] std::string_view name() const noexcept { return context_->name(); }

  /// The connection that messages for the peer's lane take, made on first use.
  Connection& connection_to(ProcessIndex process, Lane lane) noexcept;
  /// The connection that leads to a region of the peer's.
  Connection& connection_to(ProcessIndex process, const RemoteRegion& region) noexcept { return connection_to(process, lane_to(region.vci)); }

  // --- sending ---

  /// Whether the peer can take another message that it has not asked for.
  [[nodiscard]] bool has_credit(const Connection& connection) const noexcept { return connection.sent - connection.acked <= common_.window; }
  /// Sends a small message at once. False, and nothing is done, where it would wait for others to leave with, is too large to be copied, or
  /// the peer has no credit for it.
  bool try_send(Held& held, Connection& connection, const RecordHead& head, const void* bytes, std::size_t n) noexcept;
  /// Room for a record of `payload` bytes behind what the connection sends already: the payload's place. A frame's worth at most.
  /// One of the functions below follows at once.
  std::byte* append(Held& held, Connection& connection, const RecordHead& head, std::size_t payload) noexcept;
  /// Sends what was appended, or leaves it to be gathered with more. True when it was sent.
  bool send_appended(Held& held, Connection& connection) noexcept;
  /// The same, and tells `completion` when the record is on its way: whoever waits for that makes progress, which sends what was gathered.
  void send_appended(Held& held, Connection& connection, Completion& completion) noexcept;
  /// Sends a record of few bytes, in order behind what was sent before.
  void push(Held& held, Connection& connection, const RecordHead& head, const void* payload, std::uint32_t bytes) noexcept;
  /// Sends a record in a frame of its own whose last `body_bytes` are taken from the caller's memory. \param completion told when the network
  /// is done with that; null: the caller knows otherwise. \pre capabilities().sends_parts
  void send_uncopied(Held& held, Connection& connection, const RecordHead& head, const void* first, std::size_t first_bytes, const void* body,
                     std::size_t body_bytes, Completion* completion) noexcept;
  /// Sends what the connection has gathered. True if anything left.
  bool flush(Held& held, Connection& connection) noexcept;
  /// The largest payload of a record that fills a frame.
  [[nodiscard]] std::size_t largest_payload() const noexcept;
  /// Whether a stream of records is to wait for the network.
  [[nodiscard]] bool is_congested(const Connection& connection) const noexcept { return connection.posted >= most_streamed || connection.head; }

  // --- memory ---

  bool register_memory(const void* address, std::size_t bytes, wire::Use use, wire::Registration& registration) noexcept {
    return context_->register_memory(address, bytes, use, registration);
  }
  void deregister(wire::Registration& registration) noexcept { context_->deregister(registration); }
  /// Fetches memory of a peer, in pieces. \pre capabilities().reads
  void read(Held& held, RemoteRead& read) noexcept;

  // --- memory of peers (docs/design/network.md) ---
  //
  // Each call says 1: done; 0: `pending` was increased, and is decreased when it is done; -EAGAIN: nothing happened, since too much is under way,
  // or the peer's address is not known yet: make progress, and call again; -ENOSYS: the network cannot; -ERANGE: outside the region;
  // -EMSGSIZE: more than Capabilities::largest_write or largest_read.
  // A peer that is gone, or refuses, ends the job. No call blocks.

  /// Lets peers use memory of this process, which stays in place until it is withdrawn. May be empty. False where the network refuses.
  /// \param use one of Use::…_by_peers
  bool expose(void* memory, std::size_t bytes, wire::Use use, Region& region) noexcept;
  /// Peers that still use it lose their connection, and with that the job ends: whoever calls has heard that they are done.
  void withdraw(Region& region) noexcept;
  /// Writes to a region of the peer's. Done: `from` is free again; the bytes are in place after `confirm_writes`. In no order with other writes
  /// and messages. What is small is copied, and leaves with what follows, at the latest when this VCI makes progress.
  int write(Held& held, Connection& connection, const void* from, std::size_t bytes, const RemoteRegion& to, std::uint64_t offset,
            Pending& pending) noexcept;
  /// The same, and then what `hear_writes` was given is called at the peer with `immediate`. Leaves at once. `bytes` may be 0.
  int write_with_data(Held& held, Connection& connection, const void* from, std::size_t bytes, const RemoteRegion& to, std::uint64_t offset,
                      std::uint32_t immediate, Pending& pending) noexcept;
  /// Done: all writes on the connection before this are in place, whoever asked for them. One message and its answer, however many there were;
  /// none where nothing was written since the last one.
  int confirm_writes(Held& held, Connection& connection, Pending& pending) noexcept;
  /// Reads a region of the peer's. Done: `to` holds the bytes. In no order with writes.
  int read(Held& held, Connection& connection, void* to, std::size_t bytes, const RemoteRegion& from, std::uint64_t offset,
           Pending& pending) noexcept;
  /// Whether `update` can do that. \param fetches the value before is wanted
  [[nodiscard]] bool has_atomic(wire::Atomic what, wire::AtomicType type, bool fetches) const noexcept {
    return context_->has_atomic(what, type, fetches);
  }
  /// Carries out `what` on a number in a region of the peer's, as one step for all that reach it through the network. Operand and comparand are
  /// copied. Done: it is in place, and `before`, unless null, holds what was there. \param compare for Atomic::compare_swap
  int update(Held& held, Connection& connection, wire::Atomic what, wire::AtomicType type, const void* operand, const void* compare, void* before,
             const RemoteRegion& at, std::uint64_t offset, Pending& pending) noexcept;

  // --- progress ---

  /// Takes what has arrived. True if there was anything. \param neighbours this step has had something from the node: then the network is
  /// looked at now and then only (look_pace.hpp)
  bool poll(Held& held, bool neighbours) noexcept;
  /// Sends what was gathered. True if anything left.
  bool flush(Held& held) noexcept;
  /// Thread-safe. Relaxed: the helper takes the VCI before it acts.
  [[nodiscard]] bool has_gathered() const noexcept { return gathered_.load(std::memory_order_relaxed); }

  // --- sleeping ---

  /// A descriptor that is readable when `poll` has something; -1: there is none.
  [[nodiscard]] int wait_fd() const noexcept { return context_->wait_fd(); }
  /// Before sleeping on `wait_fd` this must have said true.
  bool may_sleep() noexcept { return context_->may_sleep(); }

  // --- peers that leave ---

  /// Whether the peer is known to have left.
  bool has_left(ProcessIndex process, Lane lane) noexcept;
  /// Whether a peer from whose VCI `index` messages came is in MPI_Finalize, or has left.
  [[nodiscard]] bool is_finishing(ProcessIndex process, VciIndex vci) const noexcept;
  /// Asks all peers to confirm what was sent to them; then `has_closed` becomes true in time. Calls to that repeat what is still to be said.
  void begin_closing(Held& held) noexcept;
  bool has_closed(Held& held) noexcept;
  /// After it.
  void end_closing() noexcept { context_->report_all_sends(false); }
  /// Once a second: takes what arrived if nobody else did, asks silent peers for a sign of life, and ends the job when one gives none.
  void tick(Held& held) noexcept;
  /// See wire::Context::find_silent.
  bool find_silent(int seconds, ProcessIndex& process, std::string& host) noexcept;

 private:
  struct Slab {
    std::byte* memory;
    wire::Registration registration;
    Frame* frames;
  };

  Frame* new_frame() noexcept;
  void recycle(Frame& frame) noexcept;
  int post(Connection& connection, Frame& frame) noexcept;
  void close_frame(Held& held, Connection& connection) noexcept;
  void drop_frames(Held& held, Connection& connection) noexcept;
  void mark_dirty(Connection& connection) noexcept;
  [[nodiscard]] bool leaves_at_once(const Connection& connection) const noexcept {
    return !in_step_ && (connection.epoch != epoch_ || !common_.gathers);
  }
  static void sent(wire::Operation& operation, const wire::Event& event, Held& held) noexcept;

  Connection& new_connection(ProcessIndex process, VciIndex vci) noexcept;
  Connection* find(ProcessIndex process, VciIndex vci) const noexcept;
  void append_name(Held& held, Connection& connection, RecordKind kind, VciIndex vci, std::string_view name) noexcept;
  void greet(Held& held, Connection& connection) noexcept;
  void ask_address(Held& held, Connection& connection) noexcept;
  void learn_address(Held& held, Connection& connection, const Record& record) noexcept;

  void arrived(Held& held, const wire::Event& event) noexcept;
  void take_frame(Held& held, Connection& connection, std::byte* data, std::size_t bytes) noexcept;
  void handle_control(Held& held, Connection& connection, const Record& record) noexcept;
  void tell(Held& held, Connection& connection, RecordKind kind) noexcept;
  void give_withheld_credit(Held& held) noexcept;

  bool issue(RemoteRead& read, bool& worked) noexcept;
  void queue(RemoteRead& read) noexcept;
  bool issue_queued() noexcept;
  static void piece_arrived(wire::Operation& operation, const wire::Event& event, Held& held) noexcept;

  bool is_reachable(Held& held, Connection& connection) noexcept;
  RegionPiece& new_piece(Connection& connection) noexcept;
  void recycle(RegionPiece& piece) noexcept;
  bool find_memory(RegionPiece& piece, const void* memory, std::size_t bytes, wire::Use use, void*& descriptor) noexcept;
  int posted(Connection& connection, RegionPiece* piece, int code, Pending* pending) noexcept;
  static void piece_done(wire::Operation& operation, const wire::Event& event, Held& held) noexcept;
  void one_less(Held& held, Pending& pending) noexcept;
  void begin_group(Connection& connection) noexcept;
  void end_groups(Held& held, Connection& connection) noexcept;
  void leave_with_others() noexcept;
  bool send_waiting(Held& held) noexcept;
  int post_write(Held& held, Connection& connection, const void* from, std::size_t bytes, const RemoteRegion& to, std::uint64_t offset,
                 const std::uint32_t* immediate, Pending& pending) noexcept;

  [[nodiscard]] bool may_fail(const Connection& connection, int error) const noexcept;
  [[nodiscard]] bool is_parting(const Connection& connection) const noexcept;
  [[nodiscard]] bool has_parted(const Connection& connection) const noexcept;
  [[nodiscard]] bool is_known_to_have_left(const Connection& connection) const noexcept;
  void say_closing(Held& held, Connection& connection) noexcept;
  [[nodiscard]] std::string way_to(const Connection& connection) const;
  /// End the job: the peer cannot be reached any more, or does not answer.
  [[noreturn]] void give_up(const Connection& connection) const noexcept;
  [[noreturn]] void lost(const Connection& connection, const char* doing, int error) const noexcept;

  Common& common_;
  const VciIndex vci_;
  std::unique_ptr<wire::Context> context_;
  std::unordered_map<std::uint64_t, Connection*> by_lane_;  ///< by process and lane, as senders ask
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;  ///< by process and the peer's VCI
  std::vector<Connection*> dirty_;  ///< with frames to send
  Frame* free_frames_ = nullptr;
  ReadPiece* free_pieces_ = nullptr;
  std::vector<Slab> slabs_;
  std::vector<std::pair<std::unique_ptr<RegionPiece[]>, wire::Registration>> region_pieces_;
  RemoteRead *reads_head_ = nullptr, *reads_tail_ = nullptr;  ///< with pieces to ask for
  RegionPiece* free_region_pieces_ = nullptr;
  WriteGroup* free_groups_ = nullptr;
  LookPace pace_;
  std::uint32_t epoch_ = 1;         ///< counts progress steps
  std::uint32_t epoch_before_ = 0;  ///< at the helper's last tick
  std::uint32_t under_way_ = 0;     ///< posted frames and reads
  std::uint32_t pieces_under_way_ = 0;  ///< of operations on peers' memory
  std::uint32_t copies_ = 0;        ///< of these, with a frame
  bool waiting_ = false;            ///< some of these wait in the context for the end of the step
  bool in_step_ = false;            ///< inside a progress step: replies leave together at its end
  bool withheld_ = false;           ///< credit was kept back because too much is kept here unasked
  std::atomic<bool> gathered_{false};
};

}  // namespace heddle::net
