#include "rma/messages.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>

#include "core/accumulate.hpp"
#include "core/runtime.hpp"
#include "proto/network.hpp"
#include "proto/protocol_state.hpp"
#include "rma/combine.hpp"
#include "rma/create.hpp"
#include "rma/kernel_copy.hpp"
#include "rma/stripes.hpp"
#include "rma/volley.hpp"
#include "sync/thread_sanitizer.hpp"
#include "sys/error.hpp"
#include "sys/log.hpp"
#include "transport/module.hpp"
#include "vci/completion.hpp"
#include "vci/module.hpp"
#include "vci/server.hpp"
#include "vci/wait.hpp"

namespace heddle::rma {
namespace {

/// The operations of the module, in the order of its table. Every record begins with a Head.
struct OneSided {
  static constexpr std::uint8_t module = 2;

  static constexpr RecordKind write{module, 0};             ///< puts and accumulates, in order; Items follow
  static constexpr RecordKind read{module, 1};              ///< gets; Read, then blocks. The answer is `data`
  static constexpr RecordKind fetch{module, 2};             ///< a get-accumulate; Read, then one Item. The answer is `data`
  static constexpr RecordKind compare_and_swap{module, 3};  ///< CompareAndSwap. The answer is `data`
  static constexpr RecordKind data{module, 4};              ///< to a Fetch: what was read; Data, then the bytes
  static constexpr RecordKind confirm{module, 5};           ///< Confirm, then maybe Items: they, and what came before, are to be complete. The answer is `confirmed`
  static constexpr RecordKind confirmed{module, 6};         ///< to a Flow
  static constexpr RecordKind lock{module, 7};              ///< Lock. The answer is `answered`, except to a release
  static constexpr RecordKind describe{module, 8};          ///< Question: where is the window of this context? The answer is `described`
  static constexpr RecordKind answered{module, 9};          ///< Answer
  static constexpr RecordKind described{module, 10};        ///< Described
};

/// Names an object of another process. The value is opaque to everyone but the process that made it.
using Token = std::uint64_t;
template <typename T>
Token token_of(T& object) noexcept {
  return reinterpret_cast<std::uintptr_t>(&object);
}
template <typename T>
T& object_of(Token token) noexcept {
  return *reinterpret_cast<T*>(token);
}

struct Head {
  Token window;         ///< of the target
  ProcessName process;  ///< the origin
};
/// A put or an accumulate: the description of the target's blocks, then the data, each padded to eight bytes.
struct Item {
  std::uint32_t described, bytes;
  OpCode op;  ///< `user`: a put
  BasicType basic;
  std::uint16_t reserved;
};
struct Read {
  Token fetch;
  std::int64_t position;  ///< in the stream of the origin's data
};
struct CompareAndSwap {
  Token fetch;
  std::uint64_t at;
  std::byte value[32], compare[32];
  BasicType basic;
  std::uint8_t reserved[7];
};
struct Data {
  Token fetch;
  std::int64_t position;
};
struct Confirm {
  Token flow;
  std::uint64_t number;  ///< of records before it
};
struct Lock {
  Token answer;
  bool release;  ///< else: take it
  LockKind kind;
  std::uint8_t reserved[6];
};
struct Question {
  Token answer;
};
struct Answer {
  Token answer;
};
struct Described {
  Token answer;
  Token window;
  std::uint64_t base, size;
  std::int64_t unit;
  net::RemoteRegion region;  ///< that it may write and read through the network; without `use`: none
};

constexpr std::size_t padded(std::size_t n) noexcept { return (n + 7) & ~std::size_t{7}; }

/// Largest payload of a record. Bounds what one step of the target copies.
constexpr std::size_t most_payload = 16 << 10;
/// Items up to this size wait for others to leave with.
constexpr std::size_t most_gathered = 2 << 10;
/// Reads that a flow may have under way: what their target keeps of answers that its ring refuses is bounded by them.
constexpr std::uint64_t most_reads = 64;
/// Blocks of derived types that the network moves one by one; of smaller ones a record holds many.
constexpr std::int64_t least_block = 256;

/// What goes from one VCI to one target: records in order, writes and reads of the network in none. Guarded by the VCI; atomics are read by those
/// who wait.
struct Flow {
  Flow(Window& of_window, Target& to, Vci& from, Lane there) noexcept : window(&of_window), target(&to), vci(&from), lane(there) {}

  Window* const window;
  Target* const target;
  Vci* const vci;
  const Lane lane;               ///< of the target's process
  std::uint64_t written = 0;     ///< records that need to be confirmed
  std::uint64_t asked = 0;       ///< of these, as many as the last `confirm` was about
  std::uint64_t reads = 0;       ///< records that get an answer
  bool unlocked = false;         ///< a lock was let go since the last `confirm`
  std::atomic<std::uint64_t> confirmed{0}, reads_done{0};
  std::byte* gathered = nullptr;  ///< payload of a `write` that has not left yet
  std::size_t gathered_bytes = 0;
  Flow* next_gathered = nullptr;  ///< in State::gathered
  bool in_gathered = false;
  std::unique_ptr<KernelCopy> copies[2];  ///< gets and puts that the kernel is to make
  net::Connection* connection = nullptr;  ///< to the target's region, once used
  std::uint64_t puts = 0, puts_in_place = 0;  ///< writes of the network; so many of them are known to be in place
  Volleys volleys;                        ///< those, and its reads, until they are done at this end
};

/// An operation that waits for data, and where these go.
struct Fetch {
  Buffer to;
  BasicType elements = 0;
  Flow* flow = nullptr;
  std::uint32_t under_way = 1;  ///< records without an answer, and one while more may come
  Request* request = nullptr;
  Volley* volley = nullptr;  ///< that counts it
  Fetch* next = nullptr;
};

/// A record for which the ring of its receiver had no room.
struct Deferred {
  Deferred* next;
  ProcessIndex process;
  Lane lane;
  RecordKind kind;
  std::size_t bytes;
  std::byte payload[];
};

/// One who waits on another node for a lock of this process.
struct LockWaiter {
  WindowLock* lock;
  LockKind kind;
  Ticket ticket;
  Lane lane;  ///< of the origin
  ProcessIndex process;
  Token answer;
  LockWaiter* next;
};

struct State : VciState {
  std::unordered_map<const Target*, Flow*> flows;
  Flow* last = nullptr;  ///< most calls go where the one before went
  Fetch* spare = nullptr;
  Deferred *deferred = nullptr, *deferred_tail = nullptr;
  Flow* gathered = nullptr;  ///< flows that may have gathered something: the next step sends it, lest it wait for a flush that never comes
  LockWaiter* lock_waiters = nullptr;  ///< in the order of their tickets, for each lock
};

State& state_of(Vci& vci) noexcept { return *static_cast<State*>(vci.modules[OneSided::module]); }

std::mutex windows_mutex;
/// The windows of this process, by the context in which others name them.
std::unordered_map<ContextId, Window*>& windows() {
  static auto& made = *new std::unordered_map<ContextId, Window*>;
  return made;
}

// --- sending ---

/// Room for a record of `bytes`, filled by `fill(std::byte*)`. False where there is none now.
template <typename Fill>
bool try_push(VciGuard& guard, ProcessIndex process, Lane lane, RecordKind kind, std::size_t bytes, Fill&& fill) noexcept {
  const RecordHead head{0, 0, 0, kind, lane_to(guard.vci().index)};
  if (processes.route(process) == Route::network) {
    net::Engine& engine = network_of(guard.vci());
    net::Connection& connection = engine.connection_to(process, lane);
    if (engine.is_congested(connection) || !engine.has_credit(connection)) return false;
    fill(engine.append(guard, connection, head, bytes));
    engine.send_appended(guard, connection);
    return true;
  }
  shm::Peer& peer = proto::peer_of(process);
  shm::Port& port = proto::port_of(peer, lane);
  const std::uint32_t lines = lines_for(bytes);
  const auto reservation = port.ring.reserve(lines);
  if (!reservation.line) return false;
  auto* record = reinterpret_cast<Record*>(reservation.line);
  set_head(*record, head, bytes);
  fill(record->payload);
  sync::RingProducer::publish(reservation, lines);
  peer.ring_doorbell(port.vci);
  return true;
}

/// From a step: what finds no room is kept, in order.
template <typename Fill>
void push(VciGuard& guard, ProcessIndex process, Lane lane, RecordKind kind, std::size_t bytes, Fill&& fill) noexcept {
  Vci& vci = guard.vci();
  State& state = state_of(vci);
  if (!state.deferred && try_push(guard, process, lane, kind, bytes, fill)) return;
  auto* deferred = static_cast<Deferred*>(std::malloc(sizeof(Deferred) + bytes));
  if (!deferred) sys::fatal("no memory for an answer to rank %u", process);
  *deferred = {nullptr, process, lane, kind, bytes};
  fill(deferred->payload);
  (state.deferred ? state.deferred_tail->next : state.deferred) = deferred;
  state.deferred_tail = deferred;
  vci.moving.fetch_add(1, std::memory_order_relaxed);
  leave_work(vci);
}
template <typename T>
void push(VciGuard& guard, ProcessIndex process, Lane lane, RecordKind kind, const T& payload) noexcept {
  push(guard, process, lane, kind, sizeof payload, [&](std::byte* to) { std::memcpy(to, &payload, sizeof payload); });
}

bool grant_locks(VciGuard& guard) noexcept;
bool send_gathered(VciGuard& guard) noexcept;

bool advance(VciGuard& guard) noexcept {
  State& state = state_of(guard.vci());
  bool moved = state.lock_waiters && grant_locks(guard);
  if (state.gathered) moved |= send_gathered(guard);
  while (Deferred* next = state.deferred) {
    if (!try_push(guard, next->process, next->lane, next->kind, next->bytes, [&](std::byte* to) { std::memcpy(to, next->payload, next->bytes); })) break;
    state.deferred = next->next;
    std::free(next);
    guard.vci().moving.fetch_sub(1, std::memory_order_relaxed);
    moved = true;
  }
  return moved;
}

/// The largest payload of a record to a target.
std::size_t room_to(Vci& vci, const Target& target) noexcept {
  if (processes.route(target.process) == Route::network) {
    const std::size_t frame = network_of(vci).largest_payload();
    return frame < most_payload ? frame & ~std::size_t{7} : most_payload;
  }
  proto::port_of(proto::peer_of(target.process), target.lane);  // lowers the limit if the peer's rings are small
  const std::size_t limit = proto::limits.record.load(std::memory_order_relaxed);
  return limit < most_payload ? limit & ~std::size_t{7} : most_payload;
}

/// The VCI from which the calling thread works on the window. \param ordered: all threads take the same
Vci& vci_for(const Window& window, bool ordered) noexcept {
  const Comm& comm = *window.comm;
  return ordered || comm.group->endpoints || comm.routing ? vci_of_lane(comm.lane) : vci_of_lane(lane_of_thread());
}

/// \pre the VCI is held
Flow& flow_to(Window& window, Target& target, Vci& vci) noexcept {
  State& state = state_of(vci);
  if (state.last && state.last->target == &target) [[likely]] return *state.last;
  Flow*& flow = state.flows[&target];
  if (!flow) {
    const bool home = &vci == &vci_of_lane(window.comm->lane);
    flow = new (std::nothrow) Flow(window, target, vci, home ? target.lane : lane_at(number(vci.index)));
    if (!flow) sys::fatal("no memory for operations on rank %d", target.rank);
    // Release: who flushes and sees the bit finds the flow.
    window.touched.fetch_or(std::uint64_t{1} << (number(vci.index) % 64), std::memory_order_release);
  }
  return *(state.last = flow);
}

/// Sends what was gathered. False: there is no room now.
bool try_send_gathered(VciGuard& guard, Flow& flow) noexcept;

/// MPI-5.0 §12.7.3: operations make progress though nobody flushes. So the VCI's next step sends them, the server's if no other comes.
void note_gathered(VciGuard& guard, Flow& flow) noexcept {
  if (flow.in_gathered) return;
  State& state = state_of(guard.vci());
  flow.in_gathered = true;
  flow.next_gathered = state.gathered;
  state.gathered = &flow;
  guard.vci().moving.fetch_add(1, std::memory_order_relaxed);
  leave_work(guard.vci());
}

/// Takes the flow out of the list. \pre it is in it
void forget_gathered(Vci& vci, Flow& flow) noexcept {
  Flow** at = &state_of(vci).gathered;
  while (*at != &flow) at = &(*at)->next_gathered;
  *at = flow.next_gathered;
  flow.in_gathered = false;
  vci.moving.fetch_sub(1, std::memory_order_relaxed);
}

bool send_gathered(VciGuard& guard) noexcept {
  bool moved = false;
  while (Flow* flow = state_of(guard.vci()).gathered) {
    moved |= flow->gathered_bytes > 0;
    if (!try_send_gathered(guard, *flow)) return false;
    forget_gathered(guard.vci(), *flow);
  }
  return moved;
}

bool try_send_gathered(VciGuard& guard, Flow& flow) noexcept {
  if (!flow.gathered_bytes) return true;
  const bool sent = try_push(guard, flow.target->process, flow.lane, OneSided::write, flow.gathered_bytes,
                             [&](std::byte* to) { std::memcpy(to, flow.gathered, flow.gathered_bytes); });
  if (!sent) return false;
  flow.gathered_bytes = 0;
  ++flow.written;
  return true;
}

/// Does `step()` until it says true, and not again, as `wait_until` may. Makes progress meanwhile.
template <typename Step>
void repeat_until_done(Vci& vci, Step&& step, const WaitSubject& subject) noexcept {
  bool done = step();
  if (done) [[likely]] return;
  // Nobody rings when a full ring drains: the wait must not become a long sleep.
  vci.backlogged.fetch_add(1, std::memory_order_relaxed);
  wait_until(&vci, [&] { return done || (done = step()); }, subject);
  vci.backlogged.fetch_sub(1, std::memory_order_relaxed);
}

/// The same with the flow.
template <typename Step>
void persist(Window& window, Target& target, Vci& vci, Step&& step) noexcept {
  const auto once = [&] {
    return submit(vci, [&](VciGuard& guard) { return step(guard, flow_to(window, target, vci)); });
  };
  repeat_until_done(vci, once, {.comm = window.comm, .rank = target.rank, .of_rank = "to start an operation on a window at"});
}

/// Sends a record behind all that was gathered.
template <typename Fill>
bool try_send(VciGuard& guard, Flow& flow, RecordKind kind, std::size_t bytes, Fill&& fill) noexcept {
  return try_send_gathered(guard, flow) && try_push(guard, flow.target->process, flow.lane, kind, bytes, fill);
}

Head head_to(const Target& target) noexcept { return {target.window, runtime.name}; }

/// Writes an item's head and description; where its data go.
struct ItemWriter {
  std::byte* data;
  std::size_t bytes;  ///< of item, description and data

  ItemWriter(std::byte* to, Combination what, const BlocksEncoder& blocks, const std::byte* description, std::size_t data_bytes) noexcept {
    const Item item{static_cast<std::uint32_t>(blocks.size()), static_cast<std::uint32_t>(data_bytes), what.op, what.basic, 0};
    std::memcpy(to, &item, sizeof item);
    std::memcpy(to + sizeof item, description, blocks.size());
    data = to + sizeof item + padded(blocks.size());
    bytes = sizeof item + padded(blocks.size()) + padded(data_bytes);
  }
};

/// How much data goes into one record, so that a description has room as well.
std::int64_t share(std::size_t room) noexcept { return static_cast<std::int64_t>(room - sizeof(Head) - sizeof(Read) - sizeof(Item)) * 3 / 4 & ~std::int64_t{63}; }

/// Copies elements with holes, which are not touched: they may be somebody else's, or beyond the memory's end.
void copy_elements(BasicType elements, const std::byte* from, std::byte* to, std::int64_t bytes) noexcept {
  heddle::accumulate(OpCode::replace, elements, from, to, bytes / basic_info(elements).extent, nullptr);
}

void copy_out(const Buffer& from, BasicType elements, std::int64_t position, std::int64_t bytes, std::byte* to) noexcept {
  if (!elements) return from.pack(static_cast<std::uint64_t>(position), to, static_cast<std::size_t>(bytes));
  Pieces<1> pieces({from}, elements, position);
  for (Piece<1> piece; bytes > 0 && pieces.next_block(piece, bytes); bytes -= piece.bytes, to += piece.bytes) copy_elements(elements, piece.pointer(0), to, piece.bytes);
}
void copy_in(const Buffer& into, BasicType elements, std::int64_t position, std::int64_t bytes, const std::byte* from) noexcept {
  if (!elements) return into.unpack(static_cast<std::uint64_t>(position), from, static_cast<std::size_t>(bytes));
  Pieces<1> pieces({into}, elements, position);
  for (Piece<1> piece; bytes > 0 && pieces.next_block(piece, bytes); bytes -= piece.bytes, from += piece.bytes) copy_elements(elements, from, piece.pointer(0), piece.bytes);
}

/// The basic type by whose elements the data are counted, 0 where that is by bytes.
BasicType elements_of(BasicType basic) noexcept { return basic && basic_info(basic).size != basic_info(basic).extent ? basic : BasicType{0}; }

constexpr std::size_t description_room = 1024;

/// A part of an operation's data, in packing order.
struct Part {
  std::int64_t from = 0, to = INT64_MAX;
};

/// Puts and accumulates without result: items, gathered if small.
void write(Window& window, Target& target, Vci& vci, Combination what, const Buffer& here, const Buffer& there, Part part = {}) noexcept {
  const std::size_t room = room_to(vci, target);
  const BasicType elements = elements_of(what.basic);
  const bool no_data = what.op == OpCode::no_op;
  Pieces<1> blocks({there}, elements, part.from);
  const std::int64_t end = std::min(blocks.total(), part.to);
  while (blocks.position() < end) {
    const std::int64_t position = blocks.position();
    std::byte description[description_room];
    BlocksEncoder encoder(description, sizeof description);
    const std::int64_t bytes = encoder.add(blocks, std::min(share(room), end - position));
    const std::size_t data_bytes = no_data ? 0 : static_cast<std::size_t>(bytes);
    const std::size_t item_bytes = sizeof(Item) + padded(encoder.size()) + padded(data_bytes);
    const auto fill = [&](std::byte* to) {
      const ItemWriter item(to, what, encoder, description, data_bytes);
      if (data_bytes) copy_out(here, elements, position, bytes, item.data);
    };
    persist(window, target, vci, [&](VciGuard& guard, Flow& flow) {
      if (item_bytes <= most_gathered) {
        if (flow.gathered_bytes + item_bytes > room - sizeof(Confirm) && !try_send_gathered(guard, flow)) return false;
        if (!flow.gathered && !(flow.gathered = static_cast<std::byte*>(std::malloc(room)))) sys::fatal("no memory for operations on rank %d", target.rank);
        if (!flow.gathered_bytes) {
          note_gathered(guard, flow);
          const Head head = head_to(target);
          std::memcpy(flow.gathered, &head, sizeof head);
          flow.gathered_bytes = sizeof head;
        }
        fill(flow.gathered + flow.gathered_bytes);
        flow.gathered_bytes += item_bytes;
        return true;
      }
      if (!try_send(guard, flow, OneSided::write, sizeof(Head) + item_bytes, [&](std::byte* to) {
            const Head head = head_to(target);
            std::memcpy(to, &head, sizeof head);
            fill(to + sizeof head);
          }))
        return false;
      ++flow.written;
      return true;
    });
  }
}

Fetch* new_fetch(Vci& vci, const Buffer& to, BasicType elements) noexcept {
  State& state = state_of(vci);
  Fetch* fetch = state.spare;
  if (fetch) state.spare = fetch->next;
  else if (!(fetch = new (std::nothrow) Fetch)) sys::fatal("no memory for a read");
  *fetch = Fetch{};
  fetch->to = to;
  fetch->elements = elements;
  retain(*to.type);
  return fetch;
}

/// One record less, or the end of asking. \pre the VCI is held
void settle(VciGuard& guard, Fetch& fetch) noexcept {
  if (--fetch.under_way) return;
  release(*fetch.to.type);
  if (fetch.request) complete(*fetch.request, guard);
  if (fetch.volley) fetch.volley->of->one_less(*fetch.volley, guard);
  State& state = state_of(guard.vci());
  fetch.next = state.spare;
  state.spare = &fetch;
}

/// Asks for data, a record at a time. \param send (guard, flow, fetch, position) sends one, says how many bytes it asks for; 0: there is no room
template <typename Send>
void ask(Window& window, Target& target, Vci& vci, const Buffer& to, BasicType elements, Part part, Request** request, Volley* volley, Send&& send) noexcept {
  Fetch* fetch = submit(vci, [&](VciGuard&) {
    Fetch* made = new_fetch(vci, to, elements);
    if ((made->volley = volley)) ++volley->under_way;
    if (request) *request = made->request = new_request(vci, Request::Type::collective, window.comm);
    return made;
  });
  for (std::int64_t position = part.from; position < part.to;) {
    persist(window, target, vci, [&](VciGuard& guard, Flow& flow) {
      if (flow.reads - flow.reads_done.load(std::memory_order_relaxed) >= most_reads) return false;
      const std::int64_t asked = send(guard, flow, *fetch, position);
      if (!asked) return false;
      fetch->flow = &flow;
      ++fetch->under_way;
      ++flow.reads;
      position += asked;
      return true;
    });
  }
  submit(vci, [&](VciGuard& guard) { settle(guard, *fetch); });
}

/// What the network can write and read of the target; nullptr: nothing.
const net::RemoteRegion* region_of(const Target& target) noexcept { return target.exposure ? nullptr : target.region; }

/// Moves the blocks of a put or get: large ones, and what is one block, by `move`; runs of small ones by `by_records(Part, Volley*)`.
/// \param move (guard, engine, flow, here, bytes, offset in the region, pending): one of the engine's calls, at most `largest` bytes at once
template <typename Move, typename ByRecords>
void move_blocks(Window& window, Target& target, Vci& vci, const Buffer& here, const Buffer& there, std::size_t largest, Request** request, Move&& move,
                 ByRecords&& by_records) noexcept {
  constexpr int most_in_step = 64;
  // Where the target's process takes part anyway, a record costs it no more than a write, and its flush needs no second question.
  const bool served = !request && !network_of(vci).capabilities().passive_target;
  Volley* const volley = !request ? nullptr : submit(vci, [&](VciGuard&) {
    return &flow_to(window, target, vci).volleys.begin(*request = new_request(vci, Request::Type::collective, window.comm));
  });
  Part small{-1, -1};
  const auto send_small = [&](std::int64_t to) {
    if (small.from >= 0) by_records({small.from, to}, volley);
    small.from = -1;
  };
  const auto limit = static_cast<std::int64_t>(std::min<std::size_t>(largest, INT64_MAX));
  Pieces<2> pieces({here, there});
  Piece<2> piece;
  for (std::int64_t at = 0; pieces.next(piece); at = pieces.position()) {
    if (piece.bytes < least_block && (served || piece.bytes < pieces.total())) {
      if (small.from < 0) small.from = at;
      continue;
    }
    send_small(at);
    for (std::int64_t block = 0, moved = 0; block < piece.count;)
      persist(window, target, vci, [&](VciGuard& guard, Flow& flow) {
        net::Engine& engine = network_of(vci);
        if (!flow.connection) flow.connection = &engine.connection_to(target.process, *target.region);
        for (int n = 0; block < piece.count && n < most_in_step; ++n) {
          const std::int64_t bytes = std::min(piece.bytes - moved, limit);
          const int code = move(guard, engine, flow, piece.pointer(0, block) + moved, static_cast<std::size_t>(bytes),
                                static_cast<std::uint64_t>(piece.at[1] + block * piece.stride[1] + moved), volley ? *volley : flow.volleys.open());
          if (code == -EAGAIN) return n > 0;
          if (code < 0) sys::fatal("the network cannot reach the window of rank %d of %s: %s", target.rank, window.comm->name, std::strerror(-code));
          if ((moved += bytes) == piece.bytes) ++block, moved = 0;
        }
        return true;
      });
  }
  send_small(pieces.total());
  if (volley) submit(vci, [&](VciGuard& guard) { volley->of->one_less(*volley, guard); });
}

// --- the target's side ---

[[noreturn]] void refuse(const char* what, const Head& head) noexcept {
  sys::fatal("rank %u of job %x sent %s that does not fit this process's window: one of the two has overwritten the library's memory, or they run different versions", head.process.rank,
             head.process.job, what);
}

/// What a record is about, checked. Before its memory is touched.
Window& window_of(const Head& head) noexcept {
  sync::heard_from_another_process();  // what the owner did before it told the origin
  Window& window = object_of<Window>(head.window);
  if (!window.is(Kind::win)) refuse("an operation on a window", head);
  return window;
}

/// Dynamic windows: whether [at, at+bytes) is attached.
bool is_attached(const Window& window, std::uint64_t at, std::uint64_t bytes) noexcept {
  return window.exposure->attached.holds(at, bytes, [](std::uint64_t here, std::uint64_t) { return here; });
}

/// Calls use(address, bytes) for each block that a description names.
template <typename Use>
void for_described(Window& window, const Head& head, const std::byte* description, std::size_t bytes, BasicType elements, Use&& use) noexcept {
  const bool dynamic = window.flavor == MPI_WIN_FLAVOR_DYNAMIC;
  const std::int64_t padding = elements ? basic_info(elements).extent - basic_info(elements).second_offset - basic_info(basic_info(elements).second).size : 0;
  std::size_t total = 0;
  BlocksDecoder decoder(description, bytes, dynamic ? INT64_MAX : window.bytes, elements);
  auto* const base = dynamic ? nullptr : static_cast<std::byte*>(window.base);
  for (Blocks blocks; decoder.next(blocks);) {
    for (std::int64_t i = 0; i < blocks.count; ++i) {
      const auto at = static_cast<std::uint64_t>(blocks.offset + i * blocks.stride);
      if ((total += static_cast<std::size_t>(blocks.bytes)) > most_payload) refuse("a description", head);
      if (dynamic && !is_attached(window, at, static_cast<std::uint64_t>(blocks.bytes - padding)))
        sys::fatal("rank %u accessed [%p, +%lld) of a dynamic window, which is not attached: attach memory (MPI_Win_attach) before its address is given to others",
                   head.process.rank, reinterpret_cast<void*>(at), static_cast<long long>(blocks.bytes));
      use(reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(base) + at), static_cast<std::size_t>(blocks.bytes));
    }
  }
  if (!decoder.ok()) refuse("a place", head);
}

template <typename T>
T take(const std::byte*& at, const std::byte* end, const Head& head) noexcept {
  if (static_cast<std::size_t>(end - at) < sizeof(T)) refuse("a record", head);
  T value;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

/// Carries out one put or accumulate. \param result where what was there goes, or nullptr
void apply_item(Window& window, const Head& head, const std::byte*& at, const std::byte* end, std::byte* result, std::size_t room) noexcept {
  const Item item = take<Item>(at, end, head);
  const std::byte* const description = at;
  const std::byte* data = at + padded(item.described);
  if (padded(item.described) + padded(item.bytes) > static_cast<std::size_t>(end - at)) refuse("data", head);
  at = data + padded(item.bytes);
  const bool is_basic = item.op == OpCode::user || basic_info(item.basic).name;
  if (!is_basic || (item.op > OpCode::user && item.op < OpCode::replace && !find_kernel(item.op, item.basic)) || item.op > OpCode::no_op) refuse("an operation", head);
  std::size_t left = item.bytes;
  const bool no_data = item.op == OpCode::no_op;
  for_described(window, head, description, item.described, elements_of(item.basic), [&](std::byte* to, std::size_t bytes) {
    if ((!no_data && bytes > left) || (result && bytes > room)) refuse("data", head);
    if (item.op == OpCode::user) {
      std::memcpy(to, data, bytes);
    } else {
      combine(*own_stripes(), {item.op, item.basic}, no_data ? nullptr : data, to, bytes, result, 0);
      if (result) result += bytes, room -= bytes;
    }
    if (!no_data) data += bytes, left -= bytes;
  });
}

Head head_of(const Record& record) noexcept {
  Head head;
  std::memcpy(&head, record.payload, sizeof head);
  return head;
}
template <typename T>
T body_of(const Record& record) noexcept {
  T value;
  std::memcpy(&value, record.payload + sizeof(Head), sizeof value);
  return value;
}

void apply_items(Window& window, const Head& head, const Record& record, std::size_t from) noexcept {
  const std::byte* at = record.payload + from;
  const std::byte* const end = record.payload + record.bytes;
  while (at < end) apply_item(window, head, at, end, nullptr, 0);
}

void handle_write(Held&, Record& record) noexcept {
  const Head head = head_of(record);
  apply_items(window_of(head), head, record, sizeof head);
}

/// Answers with data that `fill` writes, `bytes` of them.
template <typename Fill>
void answer_with_data(Held& held, const Record& record, const Head& head, const Read& read, std::size_t bytes, Fill&& fill) noexcept {
  push(VciGuard::of(held), proto::index_of(head.process), record.lane, OneSided::data, sizeof(Head) + sizeof(Data) + bytes, [&](std::byte* to) {
    const Head own{0, runtime.name};
    const Data data{read.fetch, read.position};
    std::memcpy(to, &own, sizeof own);
    std::memcpy(to + sizeof own, &data, sizeof data);
    fill(to + sizeof own + sizeof data);
    sync::goes_to_another_process();  // also that the memory was read
  });
}

void handle_read(Held& held, Record& record) noexcept {
  const Head head = head_of(record);
  Window& window = window_of(head);
  const auto read = body_of<Read>(record);
  const std::byte* const description = record.payload + sizeof head + sizeof read;
  const std::size_t described = record.bytes - sizeof head - sizeof read;
  std::size_t total = 0;
  for_described(window, head, description, described, 0, [&](std::byte*, std::size_t bytes) { total += bytes; });
  answer_with_data(held, record, head, read, total, [&](std::byte* to) {
    for_described(window, head, description, described, 0, [&](const std::byte* from, std::size_t bytes) {
      std::memcpy(to, from, bytes);
      to += bytes;
    });
  });
}

void handle_fetch(Held& held, Record& record) noexcept {
  const Head head = head_of(record);
  Window& window = window_of(head);
  const auto read = body_of<Read>(record);
  const std::byte* at = record.payload + sizeof head + sizeof read;
  const std::byte* const end = record.payload + record.bytes;
  const std::byte* looked = at;
  const Item item = take<Item>(looked, end, head);
  std::size_t total = 0;
  if (item.described > static_cast<std::size_t>(end - looked)) refuse("a description", head);
  for_described(window, head, looked, item.described, elements_of(item.basic), [&](std::byte*, std::size_t bytes) { total += bytes; });
  // `push` calls it once, whether or not there is room for the answer.
  answer_with_data(held, record, head, read, total, [&](std::byte* to) { apply_item(window, head, at, end, to, total); });
}

void handle_compare_and_swap(Held& held, Record& record) noexcept {
  const Head head = head_of(record);
  Window& window = window_of(head);
  const auto what = body_of<CompareAndSwap>(record);
  const std::size_t bytes = basic_info(what.basic).size;
  if (!bytes || check_compare_and_swap(builtin_datatypes[what.basic])) refuse("an operation", head);
  const bool dynamic = window.flavor == MPI_WIN_FLAVOR_DYNAMIC;
  const auto size = static_cast<std::uint64_t>(window.bytes);
  if (dynamic ? !is_attached(window, what.at, bytes) : bytes > size || what.at > size - bytes) refuse("a place", head);
  auto* const to = reinterpret_cast<std::byte*>((dynamic ? 0 : reinterpret_cast<std::uintptr_t>(window.base)) + what.at);
  answer_with_data(held, record, head, {what.fetch, 0}, bytes, [&](std::byte* result) { compare_and_swap(*own_stripes(), what.basic, what.value, what.compare, to, result, 0); });
}

void handle_data(Held& held, Record& record) noexcept {
  const auto data = body_of<Data>(record);
  Fetch& fetch = object_of<Fetch>(data.fetch);
  const std::size_t skip = sizeof(Head) + sizeof(Data);
  copy_in(fetch.to, fetch.elements, data.position, static_cast<std::int64_t>(record.bytes - skip), record.payload + skip);
  Flow& flow = *fetch.flow;
  VciGuard& guard = VciGuard::of(held);
  settle(guard, fetch);
  flow.reads_done.fetch_add(1, std::memory_order_release);  // pairs with flush: the data are there
  wake_sleepers(guard.vci());
}

void handle_confirm(Held& held, Record& record) noexcept {
  const Head head = head_of(record);
  const auto what = body_of<Confirm>(record);
  apply_items(window_of(head), head, record, sizeof head + sizeof what);
  struct {
    Head head;
    Confirm what;
  } answer{{0, runtime.name}, what};
  std::atomic_thread_fence(std::memory_order_seq_cst);
  sync::goes_to_another_process();
  push(VciGuard::of(held), proto::index_of(head.process), record.lane, OneSided::confirmed, answer);
}

void handle_confirmed(Held& held, Record& record) noexcept {
  const auto what = body_of<Confirm>(record);
  object_of<Flow>(what.flow).confirmed.store(what.number, std::memory_order_release);  // pairs with flush
  wake_sleepers(VciGuard::of(held).vci());
}

/// Somebody at this end who waits for an answer, on the stack.
struct Waiting {
  std::atomic<bool> done{false};
  Described described{};
};

void grant(VciGuard& guard, const LockWaiter& waiter) noexcept {
  struct {
    Head head;
    Answer what;
  } answer{{0, runtime.name}, {waiter.answer}};
  push(guard, waiter.process, waiter.lane, OneSided::answered, answer);
}

/// Gives locks to those whose turn it is.
bool grant_locks(VciGuard& guard) noexcept {
  Vci& vci = guard.vci();
  bool moved = false;
  for (LockWaiter** at = &state_of(vci).lock_waiters; LockWaiter* waiter = *at;) {
    if (!try_lock(*waiter->lock, waiter->kind, waiter->ticket)) {
      at = &waiter->next;
      continue;
    }
    waiter->lock->asked_for.fetch_sub(1, std::memory_order_relaxed);
    *at = waiter->next;
    grant(guard, *waiter);
    delete waiter;
    vci.moving.fetch_sub(1, std::memory_order_relaxed);
    moved = true;
    at = &state_of(vci).lock_waiters;  // the turn is another's, who may stand before
  }
  return moved;
}

void handle_lock(Held& held, Record& record) noexcept {
  const Head head = head_of(record);
  const auto what = body_of<Lock>(record);
  WindowLock& lock = window_of(head).exposure->lock_of(what.kind);
  VciGuard& guard = VciGuard::of(held);
  if (what.release) {
    rma::unlock(lock, what.kind);
    grant_locks(guard);
    return;
  }
  const LockWaiter asks{&lock, what.kind, 0, record.lane, proto::index_of(head.process), what.answer, nullptr};
  if (try_lock(lock, what.kind)) return grant(guard, asks);
  // Counted before the ticket is drawn and the last look: who lets go after that tells us.
  lock.asked_for.fetch_add(1, std::memory_order_seq_cst);
  auto* waiter = new (std::nothrow) LockWaiter(asks);
  if (!waiter) sys::fatal("no memory for a rank that waits for a window's lock");
  waiter->ticket = draw_ticket(lock);
  LockWaiter** last = &state_of(guard.vci()).lock_waiters;
  while (*last) last = &(*last)->next;
  *last = waiter;
  guard.vci().moving.fetch_add(1, std::memory_order_relaxed);
  grant_locks(guard);
}

void answer_waiting(Held& held, Waiting& waiting) noexcept {
  waiting.done.store(true, std::memory_order_release);  // the last touch: `waiting` may be gone
  wake_sleepers(VciGuard::of(held).vci());
}

void handle_answered(Held& held, Record& record) noexcept {
  const auto what = body_of<Answer>(record);
  auto& waiting = object_of<Waiting>(what.answer);
  answer_waiting(held, waiting);
}

void handle_describe(Held& held, Record& record) noexcept {
  const Head head = head_of(record);
  const auto question = body_of<Question>(record);
  const Window* window = nullptr;
  {
    std::lock_guard lock(windows_mutex);
    const auto found = windows().find(head.window);
    if (found != windows().end()) window = found->second;
  }
  if (!window) refuse("a question about a window", head);
  const Exposure& shown = *window->exposure;
  struct {
    Head head;
    Described what;
  } answer{{0, runtime.name}, {question.answer, shown.window, shown.base, shown.size, shown.unit, window->region.name}};
  push(VciGuard::of(held), proto::index_of(head.process), record.lane, OneSided::described, answer);
}

void handle_described(Held& held, Record& record) noexcept {
  const auto what = body_of<Described>(record);
  auto& waiting = object_of<Waiting>(what.answer);
  waiting.described = what;
  answer_waiting(held, waiting);
}

VciState* open_state(Vci&) noexcept { return new (std::nothrow) State; }

void close_state(VciState& base) noexcept {
  auto& state = static_cast<State&>(base);
  while (Fetch* fetch = state.spare) {
    state.spare = fetch->next;
    delete fetch;
  }
  for (auto& [target, flow] : state.flows) {
    std::free(flow->gathered);
    delete flow;
  }
  delete &state;
}

constexpr RecordOperation operations[] = {
    {"write", sizeof(Head), true, handle_write},
    {"read", sizeof(Head) + sizeof(Read), true, handle_read},
    {"fetch", sizeof(Head) + sizeof(Read) + sizeof(Item), true, handle_fetch},
    {"compare_and_swap", sizeof(Head) + sizeof(CompareAndSwap), true, handle_compare_and_swap},
    {"data", sizeof(Head) + sizeof(Data), true, handle_data},
    {"confirm", sizeof(Head) + sizeof(Confirm), true, handle_confirm},
    {"confirmed", sizeof(Head) + sizeof(Confirm), true, handle_confirmed},
    {"lock", sizeof(Head) + sizeof(Lock), true, handle_lock},
    {"describe", sizeof(Head) + sizeof(Question), true, handle_describe},
    {"answered", sizeof(Head) + sizeof(Answer), true, handle_answered},
    {"described", sizeof(Head) + sizeof(Described), true, handle_described},
};
static_assert(std::size(operations) == OneSided::described.operation + 1);

/// With the library: before there is a thread that could receive a record.
[[gnu::constructor]] void register_one_sided() noexcept {
  static constexpr Module records{OneSided::module, "one-sided", operations};
  static constexpr VciModule in_vci{OneSided::module, open_state, close_state, advance, nullptr};
  register_module(records);
  register_vci_module(in_vci);
}

template <typename Body>
void send_without_answer(Window& window, Target& target, RecordKind kind, Token about, Body body) noexcept {
  Vci& vci = vci_of_lane(window.comm->lane);
  struct {
    Head head;
    Body body;
  } record{{about, runtime.name}, body};
  const auto sent = [&] {
    return submit(vci, [&](VciGuard& guard) {
      return try_push(guard, target.process, target.lane, kind, sizeof record, [&](std::byte* to) { std::memcpy(to, &record, sizeof record); });
    });
  };
  repeat_until_done(vci, sent, {.comm = window.comm, .rank = target.rank, .of_rank = "to reach"});
}

/// Sends a question that a Waiting of this thread is to be told the answer of, and waits.
template <typename Body>
void question(Window& window, Target& target, RecordKind kind, Token about, Body body, Waiting& waiting, const char* about_what) noexcept {
  send_without_answer(window, target, kind, about, body);
  wait_until(&vci_of_lane(window.comm->lane), [&] { return waiting.done.load(std::memory_order_acquire); }, {.comm = window.comm, .rank = target.rank, .of_rank = about_what});
}

/// Lets other nodes' processes write and read the window's memory, if their network can and does not refuse: it is asked for no more than that.
void show_to_network(Window& window) noexcept {
  Vci& vci = vci_of_lane(window.comm->lane);
  net::Engine& engine = network_of(vci);
  if (!engine.capabilities().writes && !engine.capabilities().reads) return;
  submit(vci, [&](VciGuard&) {
    if (!engine.expose(window.base, static_cast<std::size_t>(window.bytes), wire::Use::read_and_written_by_peers, window.region)) window.region = {};
  });
}

}  // namespace

int serve_window(Window& window, int on_node) noexcept {
  if (on_node < window.size && window.flavor != MPI_WIN_FLAVOR_DYNAMIC && path_policy() != PathPolicy::messages) show_to_network(window);
  {
    std::lock_guard lock(windows_mutex);
    windows().emplace(window.comm->inbox, &window);
  }
  bool by_messages = on_node < window.size || (on_node > 1 && path_policy() == PathPolicy::messages);
  for (int i = 0; !by_messages && i < window.entry_count; ++i) {
    const DirectoryEntry& entry = window.entries[i];
    if (entry.process == runtime.self) continue;
    by_messages = !entry.exposure_offset || !shm::heap_offset_of(window.exposure, sizeof(Exposure));
    if (by_messages || (window.flavor != MPI_WIN_FLAVOR_DYNAMIC && window.exposure->offset)) continue;
    shm::Peer* peer = nullptr;
    std::string problem;
    if (!(peer = shm::find(entry.process))) peer = shm::attach(entry.process, problem);
    by_messages = !peer || !peer->cma_works();
  }
  if (!by_messages) return MPI_SUCCESS;
  // Each thread of an origin sends from a VCI of its own to the one of the same number here, where perhaps nobody has used it so far.
  for (unsigned i = configured_vcis(); i-- > 0;) vci_of_lane(lane_at(i));
  window.served = acquire_server();
  if (!window.served) return error(MPI_ERR_OTHER, "the thread that answers one-sided operations cannot be started: %s", std::strerror(errno));
  return MPI_SUCCESS;
}

void forget_window(Window& window) noexcept {
  if (!window.comm) return;
  {
    std::lock_guard lock(windows_mutex);
    const auto found = windows().find(window.comm->inbox);
    if (found != windows().end() && found->second == &window) windows().erase(found);
  }
  if (window.touched.load(std::memory_order_acquire))
    for_each_vci([&](Vci& vci) {
      submit(vci, [&](VciGuard&) {
        State& state = state_of(vci);
        if (state.last && state.last->window == &window) state.last = nullptr;
        if (window.chunks)
          for_each_target(window, [&](Target& target) {
            const auto found = state.flows.find(&target);
            if (found == state.flows.end()) return;
            if (found->second->in_gathered) forget_gathered(vci, *found->second);
            std::free(found->second->gathered);
            delete found->second;
            state.flows.erase(found);
          });
      });
    });
  if (window.region.name.use != wire::Use::at_this_end) {
    Vci& vci = vci_of_lane(window.comm->lane);
    submit(vci, [&](VciGuard&) { network_of(vci).withdraw(window.region); });
  }
  if (window.served) release_server();
}

void ask_target(Window& window, Target& target) noexcept {
  Waiting waiting;
  question(window, target, OneSided::describe, window.comm->context_to(target.rank), Question{token_of(waiting)}, waiting, "to hear where the window is of");
  target.base = waiting.described.base;
  target.size = waiting.described.size;
  target.unit = waiting.described.unit;
  target.window = waiting.described.window;
  const net::RemoteRegion& region = waiting.described.region;
  if (region.use == wire::Use::read_and_written_by_peers && processes.route(target.process) == Route::network)
    target.region = new (std::nothrow) net::RemoteRegion(region);
}

void put(Window& window, Target& target, const Buffer& here, const Buffer& there, Request** request) noexcept {
  constexpr Combination put_only{OpCode::user, 0};
  Vci& vci = vci_for(window, false);
  if (const net::RemoteRegion* region = region_of(target); region && network_of(vci).capabilities().writes)
    return move_blocks(
        window, target, vci, here, there, network_of(vci).capabilities().largest_write, request,
        [&](VciGuard& guard, net::Engine& engine, Flow& flow, const std::byte* from, std::size_t bytes, std::uint64_t offset, net::Pending& pending) {
          const int code = engine.write(guard, *flow.connection, from, bytes, *region, offset, pending);
          flow.puts += code >= 0;
          return code;
        },
        [&](Part part, Volley*) { write(window, target, vci, put_only, here, there, part); });
  write(window, target, vci, put_only, here, there);
  if (request) *request = completed_request();
}

void copy_later(Window& window, Target& target, const Buffer& here, const Buffer& there, bool write) noexcept {
  Vci& vci = vci_for(window, false);
  submit(vci, [&](VciGuard&) {
    std::unique_ptr<KernelCopy>& copy = flow_to(window, target, vci).copies[write];
    if (!copy) copy.reset(new (std::nothrow) KernelCopy(target.process, write));
    if (!copy) sys::fatal("no memory for operations on rank %d", target.rank);
    copy->add(here, there);
  });
}

namespace {

void get_by_records(Window& window, Target& target, Vci& vci, const Buffer& here, const Buffer& there, Part part, Request** request, Volley* volley) noexcept {
  const std::size_t room = room_to(vci, target);
  ask(window, target, vci, here, 0, part, request, volley, [&](VciGuard& guard, Flow& flow, Fetch& fetch, std::int64_t position) -> std::int64_t {
    std::byte description[description_room];
    BlocksEncoder encoder(description, sizeof description);
    Pieces<1> blocks({there}, 0, position);
    const std::int64_t asked = encoder.add(blocks, std::min(share(room), part.to - position));
    const bool sent = try_send(guard, flow, OneSided::read, sizeof(Head) + sizeof(Read) + encoder.size(), [&](std::byte* to) {
      const Head head = head_to(target);
      const Read read{token_of(fetch), position};
      std::memcpy(to, &head, sizeof head);
      std::memcpy(to + sizeof head, &read, sizeof read);
      std::memcpy(to + sizeof head + sizeof read, description, encoder.size());
    });
    return sent ? asked : 0;
  });
}

}  // namespace

void get(Window& window, Target& target, const Buffer& here, const Buffer& there, Request** request) noexcept {
  Vci& vci = vci_for(window, false);
  if (const net::RemoteRegion* region = region_of(target); region && network_of(vci).capabilities().reads)
    return move_blocks(
        window, target, vci, here, there, network_of(vci).capabilities().largest_read, request,
        [&](VciGuard& guard, net::Engine& engine, Flow& flow, std::byte* to, std::size_t bytes, std::uint64_t offset, net::Pending& pending) {
          return engine.read(guard, *flow.connection, to, bytes, *region, offset, pending);
        },
        [&](Part part, Volley* volley) { get_by_records(window, target, vci, here, there, part, nullptr, volley); });
  get_by_records(window, target, vci, here, there, {0, static_cast<std::int64_t>(there.bytes())}, request, nullptr);
}

void accumulate(Window& window, Target& target, Combination what, const Buffer& here, const Buffer& there, const Buffer* result, Request** request) noexcept {
  if (!result) {
    write(window, target, vci_for(window, window.ordered), what, here, there);
    if (request) *request = completed_request();
    return;
  }
  Vci& vci = vci_for(window, window.ordered);
  const std::size_t room = room_to(vci, target);
  const BasicType elements = elements_of(what.basic);
  const bool no_data = what.op == OpCode::no_op;
  const std::int64_t total = Pieces<1>({there}, elements).total();
  ask(window, target, vci, *result, elements, {0, total}, request, nullptr, [&](VciGuard& guard, Flow& flow, Fetch& fetch, std::int64_t position) -> std::int64_t {
    std::byte description[description_room];
    BlocksEncoder encoder(description, sizeof description);
    Pieces<1> blocks({there}, elements, position);
    const std::int64_t asked = encoder.add(blocks, share(room));
    const std::size_t data_bytes = no_data ? 0 : static_cast<std::size_t>(asked);
    const std::size_t bytes = sizeof(Head) + sizeof(Read) + sizeof(Item) + padded(encoder.size()) + padded(data_bytes);
    const bool sent = try_send(guard, flow, OneSided::fetch, bytes, [&](std::byte* to) {
      const Head head = head_to(target);
      const Read read{token_of(fetch), position};
      std::memcpy(to, &head, sizeof head);
      std::memcpy(to + sizeof head, &read, sizeof read);
      const ItemWriter item(to + sizeof head + sizeof read, what, encoder, description, data_bytes);
      if (data_bytes) copy_out(here, elements, position, asked, item.data);
    });
    return sent ? asked : 0;
  });
}

void compare_and_swap(Window& window, Target& target, BasicType basic, const void* value, const void* compare, void* result, std::uint64_t at) noexcept {
  Vci& vci = vci_for(window, window.ordered);
  Datatype& type = builtin_datatypes[basic];
  ask(window, target, vci, {result, 1, type}, 0, {0, 1}, nullptr, nullptr, [&](VciGuard& guard, Flow& flow, Fetch& fetch, std::int64_t) -> std::int64_t {
    CompareAndSwap what{token_of(fetch), at, {}, {}, basic, {}};
    std::memcpy(what.value, value, static_cast<std::size_t>(type.size));
    std::memcpy(what.compare, compare, static_cast<std::size_t>(type.size));
    const bool sent = try_send(guard, flow, OneSided::compare_and_swap, sizeof(Head) + sizeof what, [&](std::byte* to) {
      const Head head = head_to(target);
      std::memcpy(to, &head, sizeof head);
      std::memcpy(to + sizeof head, &what, sizeof what);
    });
    return sent;
  });
}

namespace {

/// One who waits until the network's writes are in place.
struct Confirmation : net::Pending {
  std::atomic<bool> has_come{false};
  Confirmation() noexcept {
    done = [](net::Pending& self, Held&) noexcept { static_cast<Confirmation&>(self).has_come.store(true, std::memory_order_release); };  // the last touch
  }
};

/// Asks once for the network's writes up to now. False: not now.
bool ask_for_puts(VciGuard& guard, Flow& flow, Confirmation& confirmation) noexcept {
  const int code = network_of(guard.vci()).confirm_writes(guard, *flow.connection, confirmation);
  if (code == 1) confirmation.has_come.store(true, std::memory_order_relaxed);
  return code >= 0;
}

/// Waits until a flow's operations up to now are done. What other threads add meanwhile is theirs to wait for.
void flush_flow(Window& window, Target& target, Vci& vci, bool local) noexcept {
  std::uint64_t written = 0, reads = 0, volleys = 0, puts = 0;
  bool counted = false;
  Confirmation confirmation;
  Flow* flow = nullptr;
  const auto asked = [&] {
    return submit(vci, [&](VciGuard& guard) {
      State& state = state_of(vci);
      const auto found = state.flows.find(&target);
      if (found == state.flows.end()) return true;
      flow = found->second;
      for (auto& copy : flow->copies)
        if (copy) copy->finish();
      if (!counted) {
        counted = true;
        reads = flow->reads;
        volleys = flow->volleys.close();
      }
      if (local) return true;
      if (!puts && flow->puts != flow->puts_in_place) {
        if (!ask_for_puts(guard, *flow, confirmation)) return false;
        puts = flow->puts;
      }
      written = flow->written + (flow->gathered_bytes ? 1 : 0);
      if (flow->asked == written) return true;  // nothing since the last question, whose answer may be under way
      // What was gathered leaves with the question.
      const std::size_t items = flow->gathered_bytes ? flow->gathered_bytes - sizeof(Head) : 0;
      const bool sent = try_push(guard, target.process, flow->lane, OneSided::confirm, sizeof(Head) + sizeof(Confirm) + items, [&](std::byte* to) {
        const Head head = head_to(target);
        const Confirm what{token_of(*flow), written};
        std::memcpy(to, &head, sizeof head);
        std::memcpy(to + sizeof head, &what, sizeof what);
        if (items) std::memcpy(to + sizeof head + sizeof what, flow->gathered + sizeof head, items);
      });
      if (!sent) return false;
      flow->gathered_bytes = 0;
      flow->written = flow->asked = written;
      flow->unlocked = false;
      return true;
    });
  };
  const WaitSubject subject{.comm = window.comm, .rank = target.rank, .of_rank = "for operations on a window to be complete at"};
  repeat_until_done(vci, asked, subject);
  if (!flow) return;
  // Acquires pair with handle_confirmed and handle_data.
  wait_until(&vci, [&] {
    return flow->confirmed.load(std::memory_order_acquire) >= written && flow->reads_done.load(std::memory_order_acquire) >= reads &&
           flow->volleys.has_ended(volleys) && (!puts || confirmation.has_come.load(std::memory_order_acquire));
  }, subject);
  if (puts) submit(vci, [&](VciGuard&) { flow->puts_in_place = std::max(flow->puts_in_place, puts); });
}

}  // namespace

void flush(Window& window, Target* only, bool local) noexcept {
  const std::uint64_t touched = window.touched.load(std::memory_order_acquire);  // pairs with flow_to
  if (!touched) return;
  for_each_vci([&](Vci& vci) {
    if (!(touched >> (number(vci.index) % 64) & 1)) return;
    if (only) return flush_flow(window, *only, vci, local);
    for_each_target(window, [&](Target& target) { flush_flow(window, target, vci, local); });
  });
}

void lock(Window& window, Target& target, LockKind kind) noexcept {
  Waiting waiting;
  question(window, target, OneSided::lock, target.window, Lock{token_of(waiting), false, kind, {}}, waiting, awaited_lock);
}

void unlock(Window& window, Target& target, LockKind kind) noexcept {
  Vci& vci = vci_of_lane(window.comm->lane);
  persist(window, target, vci, [&](VciGuard& guard, Flow& flow) {
    struct {
      Head head;
      Lock what;
    } record{head_to(target), {0, true, kind, {}}};
    if (!try_send(guard, flow, OneSided::lock, sizeof record, [&](std::byte* to) { std::memcpy(to, &record, sizeof record); })) return false;
    flow.unlocked = true;
    return true;
  });
}

void flush_before_free(Window& window) noexcept {
  Vci& vci = vci_of_lane(window.comm->lane);
  if (!window.touched.load(std::memory_order_acquire)) return;  // pairs with flow_to
  // What lets go of a lock is worth no question of its own, but the end of the window may overtake it: the barrier goes other ways.
  submit(vci, [&](VciGuard&) {
    const auto& flows = state_of(vci).flows;
    for_each_target(window, [&](Target& target) {
      if (const auto found = flows.find(&target); found != flows.end() && found->second->unlocked) ++found->second->written;
    });
  });
  flush(window, nullptr, false);
}

void tell_owner(Target& target) noexcept {
  if (target.process == runtime.self) {
    submit(vci_of_lane(target.lane), [](VciGuard& guard) { grant_locks(guard); });
    return;
  }
  shm::Peer& peer = proto::peer_of(target.process);
  peer.ring_doorbell(proto::port_of(peer, target.lane).vci);
}

}  // namespace heddle::rma
