#include "part/partitioned.hpp"

#include <sched.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "proto/protocol_state.hpp"
#include "sys/error.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"
#include "transport/module.hpp"
#include "vci/completion.hpp"
#include "vci/module.hpp"
#include "vci/poll.hpp"
#include "vci/wait.hpp"

namespace heddle::part {
namespace {

HEDDLE_PARAM_CHOICE(aggregator, "HEDDLE_PART_AGGREGATOR",
                    "how the partitions of a partitioned send are joined to transport partitions, each of which is one message: none, or table, by "
                    "HEDDLE_PART_SIZE; a joined one leaves when its last partition is ready",
                    "none", "table");
HEDDLE_PARAM_SIZE(part_size, "HEDDLE_PART_SIZE", 16 << 10, 1, sys::ParamRange::unlimited,
                  "bytes that a transport partition has at least with HEDDLE_PART_AGGREGATOR=table, unless the whole send has less");

struct Partitioned {
  static constexpr std::uint8_t module = 3;
  static constexpr RecordKind announce{module, 0};  ///< Announcement: a send was initialized. Matched by the record's context, source and tag
};

/// What a sender tells when it is made; all that the receiver ever needs to know of it.
struct Announcement {
  std::uint64_t channel;     ///< the message space of the transport partitions, whose tags are their numbers; chosen by the sender
  std::uint64_t each;        ///< bytes of a partition of the sender
  std::uint32_t partitions;  ///< of the sender
  std::uint32_t parts;       ///< transport partitions

  /// The first partition of the sender in a transport partition.
  [[nodiscard]] std::uint64_t first(std::uint64_t part) const noexcept { return part * partitions / parts; }
  /// The transport partition that a partition of the sender is in.
  [[nodiscard]] std::uint32_t part_of(std::uint64_t partition) const noexcept {
    if (parts == partitions) return static_cast<std::uint32_t>(partition);
    return static_cast<std::uint32_t>(((partition + 1) * parts - 1) / partitions);
  }
};

/// An announcement that no receive has matched so far.
struct KeptAnnouncement : match::Arrival {
  Announcement what;
};

/// What partitioned communication keeps in a VCI: sends and receives that wait to be matched, which they are once.
struct State : VciState {
  match::Matcher matcher;
};
State& state_of(Vci& vci) noexcept { return *static_cast<State*>(vci.modules[Partitioned::module]); }

// --- the messages that transport partitions are ---

/// A request for one of them, used in every round.
Request* new_message(VciGuard& guard, Comm& comm, bool receives) noexcept {
  Request* made = new_request(guard.vci(), receives ? Request::Type::persistent_recv : Request::Type::persistent_send, &comm);
  made->special = made->persistent = true;
  retain_comm(comm);  // given back with the request
  made->state.store(Request::done_bit | Request::inactive_bit, std::memory_order_relaxed);
  return made;
}

/// Starts it. True if it is over; else `end` runs when it is. \pre the VCI is held
bool start_message(VciGuard& guard, Request& message, bool receives, Continuation& end) noexcept {
  message.error = MPI_SUCCESS;
  message.cancelled = false;
  message.bytes = 0;
  message.continuation = nullptr;
  message.state.store(Request::active, std::memory_order_relaxed);
  if (receives) start_receive(guard, message); else start_send(guard, message);
  if (message.is_done()) return true;
  message.then(end);
  return false;
}

/// Where the elements from `element` on lie.
std::byte* place(const Buffer& buffer, std::uint64_t element) noexcept {
  return displaced(buffer.base, static_cast<MPI_Count>(element) * buffer.type->extent);
}

const char* name_of(const Comm& comm) noexcept { return *comm.name ? comm.name : "(unnamed)"; }

/// What both ends have. Owned by the request.
struct End {
  Request* request = nullptr;
  PartitionedBuffer buffer;
  Comm* comm = nullptr;
  int peer = 0, tag = 0;
  std::uint32_t round = 0;  ///< counts starts

  [[nodiscard]] std::uint64_t bytes() const noexcept { return buffer.each.bytes() * static_cast<std::uint64_t>(buffer.partitions); }
};

Request* new_end(VciGuard& guard, End& end, Request::Type type, const RequestOps& ops) noexcept {
  Request* request = new_request(guard.vci(), type, end.comm);
  request->special = request->persistent = true;
  request->ops = &ops;
  request->data = &end;
  request->peer = end.peer;
  retain_comm(*end.comm);
  if (!end.buffer.each.type->builtin) retain(*end.buffer.each.type);
  request->state.store(Request::done_bit | Request::inactive_bit, std::memory_order_relaxed);
  end.request = request;
  return request;
}

void release_end(End& end) noexcept {
  if (!end.buffer.each.type->builtin) release(*end.buffer.each.type);
  release_comm(end.comm);
}

// --- sending ---

struct PartitionedSend;

/// A transport partition: several partitions that leave as one message.
struct SendPart : Continuation {
  PartitionedSend* owner = nullptr;
  Request* message = nullptr;
  std::atomic<std::uint32_t> missing{0};  ///< partitions that are not ready in this round
};

/// `rounds` is written by threads that mark different partitions; the rest does not change while the request is active, but for the atomics.
struct PartitionedSend : End {
  Announcement what{};
  Vci* vci = nullptr;
  std::unique_ptr<SendPart[]> parts;
  std::unique_ptr<std::atomic<std::uint32_t>[]> rounds;  ///< of each partition: in which it was marked last
  std::atomic<std::uint32_t> open{0};                    ///< transport partitions that are not over in this round
};
PartitionedSend& send_of(Request& request) noexcept { return *static_cast<PartitionedSend*>(request.data); }

/// True of the last.
bool end_send_part(PartitionedSend& send) noexcept {
  // The last one sees what the others have left: acquire and release pair with each other.
  return send.open.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

/// \pre the VCI is held
void end_send_part(SendPart& part, VciGuard& guard) noexcept {
  PartitionedSend& send = *part.owner;
  if (part.message->error) send.request->error = part.message->error;
  if (end_send_part(send)) complete_with_error(*send.request, guard);
}

/// The last partition of `part` is ready.
void post(SendPart& part) noexcept {
  PartitionedSend& send = *part.owner;
  if (send_at_once(*part.message)) {
    if (end_send_part(send)) complete_from_outside(*send.request);
    return;
  }
  submit(*send.vci, [&](VciGuard& guard) {
    if (start_message(guard, *part.message, false, part)) end_send_part(part, guard);
  });
}

int start_send_round(Request& request) noexcept {
  PartitionedSend& send = send_of(request);
  ++send.round;
  send.open.store(send.what.parts, std::memory_order_relaxed);
  // Relaxed throughout: the program orders MPI_Start before MPI_Pready.
  for (std::uint32_t i = 0; i < send.what.parts; ++i)
    send.parts[i].missing.store(static_cast<std::uint32_t>(send.what.first(i + 1) - send.what.first(i)), std::memory_order_relaxed);
  if (send.what.parts == 0) submit(*request.vci, [&](VciGuard& guard) { complete(request, guard); });
  return MPI_SUCCESS;
}

int refuse_cancel(Request& request) noexcept {
  const End& end = *static_cast<End*>(request.data);
  return error(MPI_ERR_REQUEST, "a partitioned operation (rank %d, tag %d, communicator %s) cannot be cancelled", end.peer, end.tag, name_of(*end.comm));
}

void free_messages(Request* message) noexcept {
  if (message) release_by_user(*message);
}

void free_send(Request& request) noexcept {
  PartitionedSend& send = send_of(request);
  for (std::uint32_t i = 0; i < send.what.parts && send.parts; ++i) free_messages(send.parts[i].message);
  release_end(send);
  delete &send;
}

/// For the report of a long wait: what is missing.
int describe_send(const Request& request, char* text, std::size_t room) noexcept {
  const auto& send = *static_cast<const PartitionedSend*>(request.data);
  int count = 0, first = -1;
  for (int i = 0; i < send.buffer.partitions && send.rounds; ++i) {
    if (send.rounds[static_cast<std::size_t>(i)].load(std::memory_order_relaxed) == send.round) continue;
    if (!count++) first = i;
  }
  if (!count) return std::snprintf(text, room, ": to send the last of %d partitions to rank %d, tag %d, which has not received them yet", send.buffer.partitions, send.peer, send.tag);
  return std::snprintf(text, room, ": for MPI_Pready of %d of %d partitions, the first is %d, of a partitioned send to rank %d, tag %d", count, send.buffer.partitions, first,
                       send.peer, send.tag);
}

constexpr RequestOps send_ops{.start = start_send_round, .cancel = refuse_cancel, .query = nullptr, .free = free_send, .describe = describe_send};

/// How many transport partitions a send gets.
std::uint32_t choose_parts(const PartitionedBuffer& buffer) noexcept {
  const auto partitions = static_cast<std::uint64_t>(buffer.partitions);
  const std::uint64_t bytes = buffer.each.bytes() * partitions;
  if (aggregator.value() == 0 || !bytes) return static_cast<std::uint32_t>(partitions);
  const std::uint64_t wanted = bytes / static_cast<std::uint64_t>(part_size.value());
  return static_cast<std::uint32_t>(wanted < 1 ? 1 : wanted < partitions ? wanted : partitions);
}

int no_memory(int partitions) noexcept { return error(MPI_ERR_NO_MEM, "no memory for a partitioned request of %d partitions", partitions); }

// --- receiving ---

struct PartitionedReceive;

struct ReceivePart : Continuation {
  PartitionedReceive* owner = nullptr;
  Request* message = nullptr;
  std::unique_ptr<std::byte[]> staging;  ///< where elements of the receiver's datatype are divided
  std::uint64_t offset = 0;              ///< in the packed data
  std::uint32_t first = 0, end = 0;      ///< partitions of the receiver that it has a share in
};

/// Guarded by the VCI, but for `arrived`.
struct PartitionedReceive : End, match::Posted {
  Announcement what{};
  bool matched = false, started = false;
  int refusal = MPI_SUCCESS;  ///< error code of every round: the sizes differ
  std::unique_ptr<ReceivePart[]> parts;
  std::unique_ptr<std::uint32_t[]> missing;               ///< of each partition: transport partitions that it waits for
  std::unique_ptr<std::atomic<std::uint32_t>[]> rounds;   ///< of each partition: in which it arrived last
  std::uint32_t open = 0;                                 ///< transport partitions that are not over in this round
};
PartitionedReceive& receive_of(Request& request) noexcept { return *static_cast<PartitionedReceive*>(request.data); }

void end_round(PartitionedReceive& receive, VciGuard& guard) noexcept {
  if (--receive.open) return;
  Request& request = *receive.request;
  receive.started = false;
  request.source = receive.peer;
  request.tag = receive.tag;
  request.bytes = static_cast<MPI_Count>(receive.bytes());
  if (receive.refusal) request.error = receive.refusal;
  complete_with_error(request, guard);
}

void end_receive_part(ReceivePart& part, VciGuard& guard) noexcept {
  PartitionedReceive& receive = *part.owner;
  if (part.message->error) {
    receive.request->error = part.message->error;
  } else if (part.staging) {
    const auto all = static_cast<MPI_Count>(receive.buffer.partitions) * receive.buffer.each.count;
    Buffer{receive.buffer.each.base, all, *receive.buffer.each.type}.unpack(part.offset, part.staging.get(), static_cast<std::size_t>(part.message->bytes));
  }
  for (std::uint32_t i = part.first; i < part.end; ++i)
    if (--receive.missing[i] == 0) receive.rounds[i].store(receive.round, std::memory_order_release);  // pairs with `arrived`
  end_round(receive, guard);
}

/// The receives of a round. \pre matched and started
void post_round(PartitionedReceive& receive, VciGuard& guard) noexcept {
  const auto partitions = static_cast<std::uint32_t>(receive.buffer.partitions);
  const std::uint32_t parts = receive.what.parts;
  for (std::uint32_t i = 0; i < partitions; ++i) receive.missing[i] = 0;
  for (std::uint32_t i = 0; i < parts; ++i)
    for (std::uint32_t j = receive.parts[i].first; j < receive.parts[i].end; ++j) ++receive.missing[j];
  for (std::uint32_t i = 0; i < partitions && !parts; ++i) receive.rounds[i].store(receive.round, std::memory_order_release);
  receive.open = parts + 1;
  for (std::uint32_t i = 0; i < parts; ++i) {
    ReceivePart& part = receive.parts[i];
    if (start_message(guard, *part.message, true, part)) end_receive_part(part, guard);
  }
  end_round(receive, guard);
}

/// Where a transport partition goes.
Buffer target_of(PartitionedReceive& receive, ReceivePart& part, std::uint64_t bytes) noexcept {
  Datatype& type = *receive.buffer.each.type;
  Datatype& packed = *resolve<Datatype>(MPI_BYTE);
  const auto size = static_cast<std::uint64_t>(type.size);
  if (receive.refusal || !bytes) return {nullptr, 0, packed};  // what does not fit is taken in all the same, so that its sender ends
  if (type.contiguous) return {displaced(receive.buffer.each.base, type.true_lb + static_cast<MPI_Count>(part.offset)), static_cast<MPI_Count>(bytes), packed};
  if (part.offset % size == 0 && bytes % size == 0)
    return {place(receive.buffer.each, part.offset / size), static_cast<MPI_Count>(bytes / size), type};
  part.staging.reset(new (std::nothrow) std::byte[bytes]);
  if (!part.staging) sys::fatal("no memory for %llu bytes of a partitioned receive", static_cast<unsigned long long>(bytes));
  return {part.staging.get(), static_cast<MPI_Count>(bytes), packed};
}

int sizes_differ(const PartitionedReceive& receive, std::uint64_t sent) noexcept {
  return error(sent > receive.bytes() ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT,
               "the partitioned send of rank %d, tag %d, on communicator %s has %llu bytes in %u partitions, its receive %llu bytes in %d: both ends must describe the same "
               "amount of data",
               receive.peer, receive.tag, name_of(*receive.comm), static_cast<unsigned long long>(sent), receive.what.partitions,
               static_cast<unsigned long long>(receive.bytes()), receive.buffer.partitions);
}

/// A receive has met its send.
void join(PartitionedReceive& receive, const Announcement& what, VciGuard& guard) noexcept {
  receive.what = what;
  receive.matched = true;
  if (!receive.request) return delete &receive;  // freed meanwhile: it has only consumed its match
  const std::uint64_t sent = what.each * what.partitions;
  if (sent != receive.bytes()) receive.refusal = sizes_differ(receive, sent);
  receive.parts.reset(new (std::nothrow) ReceivePart[what.parts + 1]);
  if (!receive.parts) sys::fatal("no memory for a partitioned receive of %u transport partitions", what.parts);
  const auto own = static_cast<std::uint64_t>(receive.buffer.partitions);
  for (std::uint32_t i = 0; i < what.parts; ++i) {
    ReceivePart& part = receive.parts[i];
    const std::uint64_t first = what.first(i), end = what.first(i + 1);
    part.run = [](Continuation& self, Request&, VciGuard& held) { end_receive_part(static_cast<ReceivePart&>(self), held); };
    part.owner = &receive;
    part.offset = first * what.each;
    // By shares of the whole and not by bytes, so that partitions without data arrive when they are ready, too.
    part.first = static_cast<std::uint32_t>(first * own / what.partitions);
    part.end = static_cast<std::uint32_t>((end * own + what.partitions - 1) / what.partitions);
    part.message = new_message(guard, *receive.comm, true);
    proto::fill(*part.message, target_of(receive, part, (end - first) * what.each), {what.channel, receive.peer, static_cast<int>(i)});
  }
  if (receive.started) post_round(receive, guard);
}

int start_receive_round(Request& request) noexcept {
  PartitionedReceive& receive = receive_of(request);
  submit(*request.vci, [&](VciGuard& guard) {
    ++receive.round;
    if (receive.peer == MPI_PROC_NULL) {
      request.source = MPI_PROC_NULL;
      for (int i = 0; i < receive.buffer.partitions; ++i) receive.rounds[static_cast<std::size_t>(i)].store(receive.round, std::memory_order_release);
      return complete(request, guard);
    }
    receive.started = true;
    if (receive.matched) post_round(receive, guard);
  });
  return MPI_SUCCESS;
}

void free_receive(Request& request) noexcept {
  PartitionedReceive& receive = receive_of(request);
  release_end(receive);
  const bool kept = receive.peer != MPI_PROC_NULL && submit(*request.vci, [&](VciGuard&) {
    receive.request = nullptr;
    return !receive.matched;
  });
  if (kept) return;  // its match is still to come, and must not go to the next receive
  for (std::uint32_t i = 0; i < receive.what.parts; ++i) free_messages(receive.parts[i].message);
  delete &receive;
}

int describe_receive(const Request& request, char* text, std::size_t room) noexcept {
  const auto& receive = *static_cast<const PartitionedReceive*>(request.data);
  if (!receive.matched)
    return std::snprintf(text, room, ": for a partitioned receive from rank %d, tag %d, which has not called MPI_Psend_init for it", receive.peer, receive.tag);
  int count = 0, first = -1;
  for (int i = 0; i < receive.buffer.partitions; ++i) {
    if (receive.rounds[static_cast<std::size_t>(i)].load(std::memory_order_relaxed) == receive.round) continue;
    if (!count++) first = i;
  }
  return std::snprintf(text, room, ": for %d of %d partitions, the first is %d, of a partitioned receive from rank %d, tag %d", count, receive.buffer.partitions, first,
                       receive.peer, receive.tag);
}

constexpr RequestOps receive_ops{.start = start_receive_round, .cancel = refuse_cancel, .query = nullptr, .free = free_receive, .describe = describe_receive};

// --- records ---

/// Gives an announcement to its receive, or keeps it.
void take_announcement(VciGuard& guard, match::Pattern key, const Announcement& what) noexcept {
  State& state = state_of(guard.vci());
  if (match::Posted* receive = state.matcher.take_posted(key)) return join(*static_cast<PartitionedReceive*>(receive), what, guard);
  auto* kept = new (std::nothrow) KeptAnnouncement;
  if (!kept) sys::fatal("no memory for an announcement of a partitioned send of rank %d", key.source);
  kept->key = key;
  kept->what = what;
  state.matcher.keep(*kept);
}

void handle_announce(Held& held, Record& record) noexcept {
  Announcement what;
  std::memcpy(&what, record.payload, sizeof what);
  if (what.parts > what.partitions || !what.parts != !what.partitions)
    sys::fatal("rank %d announces a partitioned send of %u partitions in %u transport partitions", record.source, what.partitions, what.parts);
  take_announcement(VciGuard::of(held), {record.context, record.source, record.tag}, what);
}

VciState* open_state(Vci&) noexcept { return new (std::nothrow) State; }

void close_state(VciState& base) noexcept {
  auto& state = static_cast<State&>(base);
  while (match::Arrival* first = state.matcher.first_arrival()) {
    state.matcher.remove_arrival(*first);
    delete static_cast<KeptAnnouncement*>(first);
  }
  delete &state;
}

bool advance(VciGuard&) noexcept { return false; }

constexpr RecordOperation operations[] = {{"announce", sizeof(Announcement), true, handle_announce}};

[[gnu::constructor]] void register_partitioned() noexcept {
  static constexpr Module records{Partitioned::module, "partitioned", operations};
  static constexpr VciModule in_vci{Partitioned::module, open_state, close_state, advance, nullptr};
  register_module(records);
  register_vci_module(in_vci);
}

std::unique_ptr<std::atomic<std::uint32_t>[]> new_rounds(int partitions) noexcept {
  return std::unique_ptr<std::atomic<std::uint32_t>[]>(new (std::nothrow) std::atomic<std::uint32_t>[static_cast<std::size_t>(partitions) + 1]());
}

}  // namespace

int init_send(const PartitionedBuffer& buffer, int dest, int tag, Comm& comm, Request** request) noexcept {
  std::unique_ptr<PartitionedSend> made(new (std::nothrow) PartitionedSend);
  if (!made) return no_memory(buffer.partitions);
  PartitionedSend& send = *made;
  send.buffer = buffer;
  send.comm = &comm;
  send.peer = dest;
  send.tag = tag;
  send.rounds = new_rounds(buffer.partitions);
  Announcement& what = send.what;
  proto::Path path{{}, 0, comm.lane};
  if (dest != MPI_PROC_NULL) {
    path = proto::resolve(comm, dest, tag, Space::collective);
    what = {new_context_id(1), buffer.each.bytes(), static_cast<std::uint32_t>(buffer.partitions), choose_parts(buffer)};
    if (!what.channel) return out_of_contexts();
    what.channel |= static_cast<std::uint64_t>(Space::collective);
    send.parts.reset(new (std::nothrow) SendPart[what.parts + 1]);
  }
  if (!send.rounds || (dest != MPI_PROC_NULL && !send.parts)) return no_memory(buffer.partitions);
  Vci& vci = vci_of_lane(path.from);
  send.vci = &vci;
  submit(vci, [&](VciGuard& guard) {
    *request = new_end(guard, send, Request::Type::partitioned_send, send_ops);
    if (dest == MPI_PROC_NULL) return;
    for (std::uint32_t i = 0; i < what.parts; ++i) {
      SendPart& part = send.parts[i];
      const std::uint64_t first = what.first(i), end = what.first(i + 1);
      part.run = [](Continuation& self, Request&, VciGuard& held) { end_send_part(static_cast<SendPart&>(self), held); };
      part.owner = &send;
      part.message = new_message(guard, comm, false);
      const auto count = static_cast<std::uint64_t>(buffer.each.count);
      const Buffer data{place(buffer.each, first * count), static_cast<MPI_Count>((end - first) * count), *buffer.each.type};
      proto::fill_send(*part.message, data, dest, {what.channel, comm.rank, static_cast<int>(i)}, path.to, SendMode::standard);
    }
    const match::Pattern key{path.context, comm.rank, tag};
    if (path.to.process == runtime.self && &vci_of_lane(path.to.lane) == &vci) return take_announcement(guard, key, what);
    send_record(guard, path.to.process, path.to.lane, {key.context, key.source, key.tag, Partitioned::announce, path.from}, &what, sizeof what);
  });
  made.release();  // owned by the request
  return MPI_SUCCESS;
}

int init_receive(const PartitionedBuffer& buffer, int source, int tag, Comm& comm, Request** request) noexcept {
  std::unique_ptr<PartitionedReceive> made(new (std::nothrow) PartitionedReceive);
  if (!made) return no_memory(buffer.partitions);
  PartitionedReceive& receive = *made;
  receive.buffer = buffer;
  receive.comm = &comm;
  receive.peer = source;
  receive.tag = tag;
  receive.rounds = new_rounds(buffer.partitions);
  receive.missing.reset(new (std::nothrow) std::uint32_t[static_cast<std::size_t>(buffer.partitions) + 1]());
  if (!receive.rounds || !receive.missing) return no_memory(buffer.partitions);
  submit(home_vci(comm), [&](VciGuard& guard) {
    *request = new_end(guard, receive, Request::Type::partitioned_recv, receive_ops);
    if (source == MPI_PROC_NULL) return;
    receive.pattern = {proto::own_context(comm, Space::collective), source, tag};
    State& state = state_of(guard.vci());
    auto* kept = static_cast<KeptAnnouncement*>(state.matcher.find_arrival(receive.pattern));
    if (!kept) return state.matcher.post(receive);
    state.matcher.remove_arrival(*kept);
    join(receive, kept->what, guard);
    delete kept;
  });
  made.release();  // owned by the request
  return MPI_SUCCESS;
}

namespace {

bool is_active(const Request& request) noexcept {
  // Relaxed: the program orders MPI_Start before this call, and this call before the one that ends the round.
  return !(request.state.load(std::memory_order_relaxed) & Request::inactive_bit);
}

[[gnu::cold, gnu::noinline]] int not_ready(Request& request, int first, int last) noexcept {
  if (request.type != Request::Type::partitioned_send)
    return error(MPI_ERR_REQUEST, "MPI_Pready of %s: only a partitioned send (MPI_Psend_init) has partitions to make ready",
                 request.type == Request::Type::partitioned_recv ? "a partitioned receive" : "a request that is not partitioned");
  const PartitionedSend& send = send_of(request);
  const int count = send.buffer.partitions;
  if (first < 0 || last >= count)
    return error(MPI_ERR_ARG, "partition %d of the partitioned send to rank %d, tag %d, on communicator %s is out of range: it has partitions 0 to %d", first < 0 ? first : last,
                 send.peer, send.tag, name_of(*send.comm), count - 1);
  if (first > last) return error(MPI_ERR_ARG, "the range of partitions %d to %d is empty or turned round", first, last);
  return error(MPI_ERR_REQUEST, "partition %d of the partitioned send to rank %d, tag %d, on communicator %s is made ready before MPI_Start", first, send.peer, send.tag,
               name_of(*send.comm));
}

[[gnu::cold, gnu::noinline]] int ready_twice(const PartitionedSend& send, int partition) noexcept {
  return error(MPI_ERR_ARG, "partition %d of the partitioned send to rank %d, tag %d, on communicator %s is ready already since the last MPI_Start", partition, send.peer,
               send.tag, name_of(*send.comm));
}

}  // namespace

int ready(Request& request, int first, int last) noexcept {
  if (request.type != Request::Type::partitioned_send) [[unlikely]] return not_ready(request, first, last);
  PartitionedSend& send = send_of(request);
  if (first < 0 || last >= send.buffer.partitions || first > last || !is_active(request)) [[unlikely]] return not_ready(request, first, last);
  for (int i = first; i <= last; ++i) {
    std::atomic<std::uint32_t>& mark = send.rounds[static_cast<std::size_t>(i)];
    // Relaxed: only a program that makes one partition ready twice has two threads here, and is told so if they do not come at the same instant.
    if (mark.load(std::memory_order_relaxed) == send.round) [[unlikely]] return ready_twice(send, i);
    mark.store(send.round, std::memory_order_relaxed);
    if (send.what.parts == 0) continue;  // to MPI_PROC_NULL
    SendPart& part = send.parts[send.what.part_of(static_cast<std::uint64_t>(i))];
    // Release: the data of this partition; acquire: of the others, before the last one sends them.
    if (part.missing.fetch_sub(1, std::memory_order_acq_rel) == 1) post(part);
  }
  return MPI_SUCCESS;
}

int arrived(Request& request, int partition, bool& flag) noexcept {
  if (request.type != Request::Type::partitioned_recv)
    return error(MPI_ERR_REQUEST, "MPI_Parrived of %s: only a partitioned receive (MPI_Precv_init) has partitions that arrive",
                 request.type == Request::Type::partitioned_send ? "a partitioned send" : "a request that is not partitioned");
  PartitionedReceive& receive = receive_of(request);
  if (partition < 0 || partition >= receive.buffer.partitions)
    return error(MPI_ERR_ARG, "partition %d of the partitioned receive from rank %d, tag %d, on communicator %s is out of range: it has partitions 0 to %d", partition,
                 receive.peer, receive.tag, name_of(*receive.comm), receive.buffer.partitions - 1);
  const auto here = [&] {
    // Acquire pairs with end_receive_part: the data are there.
    return receive.rounds[static_cast<std::size_t>(partition)].load(std::memory_order_acquire) == receive.round;
  };
  flag = !is_active(request) || here();
  if (!flag) {
    poll_for_test(*request.vci);
    flag = here();
    // Programs ask in loops, with more threads than cores as well: the one that has to bring the partition needs a core.
    static constinit thread_local unsigned misses = 0;
    if (!flag && ++misses % idle_looks() == 0) sched_yield();
  }
  return MPI_SUCCESS;
}

}  // namespace heddle::part
