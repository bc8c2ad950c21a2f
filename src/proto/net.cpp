// The network of a process: who is where, links and frames, sending.
#include <pthread.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "proto/net_state.hpp"
#include "sys/bootstrap/bootstrap.hpp"
#include "sys/error.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"
#include "transport/host_address.hpp"
#include "transport/ofi/library.hpp"
#include "transport/network.hpp"
#include "transport/ofi/tcp_watch.hpp"
#include "transport/shm/doorbell.hpp"
#include "transport/tcp/context.hpp"

namespace heddle::net {

bool detail::active = false;
std::uint64_t job_key = 0;
int guard_bell = -1;
std::size_t frame_bytes = 0;
std::size_t largest_frame = 0;
std::uint64_t window = 1 << 20;

namespace {

HEDDLE_PARAM_SIZE(frame_size, "HEDDLE_NET_FRAME", 16 << 10, 1024, 1 << 20, "largest network message that small ones are gathered into");
HEDDLE_PARAM_SIZE(eager_size, "HEDDLE_NET_EAGER", 0, 0, 1 << 20, "largest message that is sent over the network without waiting for its receive; 0: 64K over TCP, else 8K");
HEDDLE_PARAM_SIZE(window_size, "HEDDLE_NET_WINDOW", 1 << 20, 16 << 10, sys::ParamRange::unlimited,
                  "bytes that a VCI sends to another over the network before that has said that they arrived; then messages wait for their receive");
HEDDLE_PARAM_BOOL(gather, "HEDDLE_NET_GATHER", 1, "small messages to one peer that follow each other leave in one write");

HEDDLE_PARAM_BOOL(wake, "HEDDLE_NET_WAKE", 1, "what arrives from the network wakes sleeping threads; 0: they look twice in a millisecond, which some providers make messages faster by");

constexpr std::uint64_t frames_per_slab = 16;
constexpr char card_version = 3;
constexpr int most_ranks_with_large_buffers = 32;
constexpr std::size_t tcp_eager = 64 << 10;  ///< a copy costs less than the two more ways that asking first takes

/// What a process publishes. The name follows.
struct Card {
  char version;
  char reserved[3];
  std::uint32_t vcis;
  std::uint64_t key;       ///< rank 0's is the job's, where the launcher gave none
  std::uint64_t largest_frame;  ///< that it receives
  char provider[48];
};

struct KnownProcess {
  std::uint32_t vcis;
  std::string name;  ///< of its VCI 0
};

wire::Network network;
std::size_t copy_limit = 8 << 10;  ///< largest message that is copied into a frame with others
unsigned own_vcis = 1;
bool card_put = false;
std::uint64_t own_key = 0;
std::unordered_map<ProcessIndex, KnownProcess>* known = nullptr;  // guarded by known_mutex
std::mutex known_mutex;
std::mutex open_mutex;
wire::Context* first_context = nullptr;  ///< of VCI 0, opened before the VCI exists so that its address can be published

/// Whether ofi_rxm sends `bytes` in one piece: its own protocols for more are slower than asking first.
bool rxm_takes(std::size_t bytes) noexcept {
  const char* text = std::getenv("FI_OFI_RXM_BUFFER_SIZE");
  return text && std::strtoull(text, nullptr, 0) >= bytes + 512;
}

std::uint64_t hash(std::string_view text) noexcept {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93;
  return value ^ value >> 32;
}

/// What both ends of a connection must agree on.
std::string provider_and_buffer() {
  const char* size = std::getenv("FI_OFI_RXM_BUFFER_SIZE");
  std::string text = network.choice.provider;
  if (size && text.find("rxm") != std::string::npos) text += std::string(" with buffers of ") + size;
  return text.substr(0, sizeof(Card::provider) - 1);
}

bool read_card(const sys::Bootstrap* job, ProcessIndex process, KnownProcess& out, std::uint64_t* key, std::string& problem) {
  std::optional<std::string> text;
  if (!sys::bootstrap::get(static_cast<int>(process), "net", text, problem)) return false;
  Card card;
  if (!text || text->size() <= sizeof card || (std::memcpy(&card, text->data(), sizeof card), card.version != card_version)) {
    problem = "rank " + std::to_string(process) + " has published no network address: do all ranks run the same version of the library, with the "
              "same HEDDLE_SHM?";
    return false;
  }
  card.provider[sizeof card.provider - 1] = 0;
  if (provider_and_buffer() != card.provider) {
    problem = "rank " + std::to_string(process) + " uses the network provider " + card.provider + ", this one " + provider_and_buffer() +
              ": set HEDDLE_OFI_PROVIDER, and with ofi_rxm FI_OFI_RXM_BUFFER_SIZE, to the same on all nodes";
    return false;
  }
  if (card.largest_frame != largest_frame) {
    problem = "rank " + std::to_string(process) + " takes network messages of " + std::to_string(card.largest_frame) + " bytes, this one of " +
              std::to_string(largest_frame) + ": set HEDDLE_NET_EAGER and HEDDLE_NET_FRAME to the same on all nodes";
    return false;
  }
  (void)job;
  out.vcis = card.vcis ? card.vcis : 1;
  out.name = text->substr(sizeof card);
  if (key) *key = card.key;
  return true;
}

const KnownProcess& process_of(ProcessIndex process) noexcept {
  const std::lock_guard hold(known_mutex);
  const auto found = known->find(process);
  if (found != known->end()) return found->second;
  KnownProcess read;
  std::string problem;
  if (!read_card(nullptr, process, read, nullptr, problem)) sys::fatal("cannot reach rank %u: %s", process, problem.c_str());
  return known->emplace(process, std::move(read)).first->second;  // elements of the map stay where they are
}

std::uint64_t key_of(ProcessIndex process, unsigned lane) noexcept { return std::uint64_t{process} << 16 | lane; }

void append_name(VciGuard& guard, Link& link, RecordKind kind, unsigned vci, std::string_view name) noexcept {
  const NetworkName head{static_cast<std::uint16_t>(vci), static_cast<std::uint16_t>(name.size()), 0};
  std::byte* to = append(guard, link, {0, 0, 0, kind, 0}, sizeof head + name.size());
  std::memcpy(to, &head, sizeof head);
  std::memcpy(to + sizeof head, name.data(), name.size());
}

Frame* new_frame(Net& net) noexcept {
  if (!net.free_frames) {
    const std::size_t each = (frame_bytes + 63) & ~std::size_t{63};
    Net::Slab slab{};
    slab.memory = static_cast<std::byte*>(std::aligned_alloc(4096, (each * frames_per_slab + 4095) & ~std::size_t{4095}));
    slab.frames = new (std::nothrow) Frame[frames_per_slab];
    if (!slab.memory || !slab.frames) sys::fatal("no memory for messages to the network");
    if (net.context.registers_local() && !net.context.register_memory(slab.memory, each * frames_per_slab, wire::Use::send, slab.registration))
      sys::fatal("the network refuses to register memory: the limit of locked memory (`ulimit -l`) is too low");
    for (std::uint64_t i = 0; i < frames_per_slab; ++i) {
      Frame& frame = slab.frames[i];
      frame.kind = wire::Operation::Kind::send;
      frame.data = slab.memory + i * each;
      frame.descriptor = slab.registration.descriptor;
      frame.next = net.free_frames;
      net.free_frames = &frame;
    }
    net.slabs.push_back(slab);
  }
  Frame* frame = net.free_frames;
  net.free_frames = frame->next;
  frame->next = nullptr;
  frame->waiting = nullptr;
  frame->direct = nullptr;
  frame->bytes = sizeof(ofi::FrameHead);
  return frame;
}

/// What of the frame lies in a user's buffer, with its padding.
std::size_t direct_room(const Frame& frame) noexcept { return frame.direct ? (frame.direct->capacity + 7) & ~std::size_t{7} : 0; }

int post(Net& net, Link& link, Frame& frame) noexcept {
  if (!frame.direct) return net.context.send(link.address, frame.data, frame.bytes, frame.descriptor, frame);
  static std::byte padding[8] = {};
  const Request& send = *frame.direct;
  auto* bytes = static_cast<std::byte*>(send.buffer) + send.datatype->true_lb;
  const iovec parts[3] = {{frame.data, frame.bytes}, {bytes, send.capacity}, {padding, direct_room(frame) - send.capacity}};
  return net.context.send_parts(link.address, parts, parts[2].iov_len ? 3 : 2, frame);
}

/// Ends the filling of the open frame; the sends in it are complete.
void close_frame(VciGuard& guard, Link& link) noexcept {
  Frame* frame = link.open;
  if (!frame) return;
  link.open = nullptr;
  const ofi::FrameHead head{job_key, runtime.self, link.next_sequence++, frame->bytes + static_cast<std::uint32_t>(direct_room(*frame)), static_cast<std::uint16_t>(link.net->vci.index),
                            ofi::frame_version, 0};
  std::memcpy(frame->data, &head, sizeof head);
  if (link.tail) link.tail->next = frame; else link.head = frame;
  link.tail = frame;
  for (Request* send = frame->waiting; send;) {
    Request* following = send->next;
    complete(*send, guard);
    send = following;
  }
  frame->waiting = nullptr;
}

void mark_dirty(Link& link) noexcept {
  if (link.dirty) return;
  link.dirty = true;
  link.net->dirty.push_back(&link);
}

bool is_counted(RecordKind kind) noexcept { return kind < RecordKind::hello; }

Link& new_link(Net& net, ProcessIndex process, unsigned vci) noexcept {
  auto link = std::make_unique<Link>();
  link->net = &net;
  link->process = process;
  link->vci = static_cast<std::uint16_t>(vci);
  return *(net.links[key_of(process, vci)] = std::move(link));
}

}  // namespace

std::string way_to(const Link& link) {
  std::string text = network.choice.interface;
  if (!network.choice.address.empty()) text += " " + network.choice.address;
  const std::unique_lock hold(known_mutex, std::try_to_lock);  // the job is about to end: nothing may be waited for
  const auto found = hold && known ? known->find(link.process) : decltype(known->end()){};
  if (!hold || !known || found == known->end()) return text;
  sockaddr_storage name{};
  std::memcpy(&name, found->second.name.data(), std::min(found->second.name.size(), sizeof name));
  if (const std::string there = text_of(reinterpret_cast<const sockaddr&>(name)); !there.empty()) text += " to " + there;
  return text;
}

const char* advice_for(const Link& link) noexcept {
  return link.expected || link.acked ? "" : ". Nothing has ever come from there: HEDDLE_NET says which network is the one between the hosts";
}

void await_the_launcher() noexcept {
  constexpr useconds_t longest = 1'000'000, turn = 250'000;
  constexpr std::uint32_t turns = 8;
  usleep(longest + runtime.self % turns * turn);
}

void lost(const Link& link, const char* doing, int error) noexcept {
  await_the_launcher();
  sys::fatal("the connection to rank %u was lost while %s (%s, %s: %s): the process has died, its host is down, or the network between is "
             "cut%s", link.process, doing, network.choice.provider.c_str(), way_to(link).c_str(), wire::error_text(network, error).c_str(), advice_for(link));
}

Link& link_to(Net& net, ProcessIndex process, unsigned lane) noexcept {
  const auto found = net.by_lane.find(key_of(process, lane));
  if (found != net.by_lane.end()) [[likely]] return *found->second;
  const KnownProcess& peer = process_of(process);
  const unsigned vci = lane < shm::lanes ? lane % peer.vcis : lane;
  Link* link;
  const auto existing = net.links.find(key_of(process, vci));
  if (existing != net.links.end()) {
    link = existing->second.get();
  } else {
    link = &new_link(net, process, vci);
    link->greet = true;
    if (vci == 0) {
      ofi::watch_peer(peer.name.data(), process);
      link->address = net.context.insert(peer.name);
      if (link->address == wire::no_address) lost(*link, "looking up its address", EADDRNOTAVAIL);
    }
  }
  net.by_lane[key_of(process, lane)] = link;
  return *link;
}

namespace {

/// Asks VCI 0 of the link's process for the link's address. The answer comes to this VCI.
void ask_address(VciGuard& guard, Link& link) noexcept {
  Link& first = link_to(*link.net, link.process, 0);
  const std::uint32_t wanted = link.vci;
  std::memcpy(append(guard, first, {0, 0, 0, RecordKind::where, 0}, sizeof wanted), &wanted, sizeof wanted);
  flush_link(guard, first);
}

}  // namespace

std::byte* append(VciGuard& guard, Link& link, const proto::RecordHead& head, std::size_t payload) noexcept {
  Net& net = *link.net;
  if (link.greet) [[unlikely]] {
    link.greet = false;
    append_name(guard, link, RecordKind::hello, net.vci.index, net.context.name());
    if (link.address == wire::no_address) ask_address(guard, link);
  }
  const std::size_t room = ofi::record_room(payload);
  if (link.open && link.open->bytes + room > frame_bytes) {
    close_frame(guard, link);
    flush_link(guard, link);
  }
  if (!link.open) link.open = new_frame(net);
  Frame& frame = *link.open;
  frame.link = &link;
  std::byte* at = frame.data + frame.bytes;
  Record* record = ofi::record_at(at);
  record->context = head.context;
  record->source = head.source;
  record->tag = head.tag;
  record->bytes = static_cast<std::uint32_t>(payload);
  record->kind = head.kind;
  record->reserved = 0;
  record->lane = head.lane;
  frame.bytes += static_cast<std::uint32_t>(room);
  if (is_counted(head.kind)) {
    link.sent += room;
    link.said_closing = link.heard_farewell = false;
    if (!net.context.tells_departures()) link.peer_closing = false;  // it may be in another session by now
  }
  if (payload % 8) std::memset(at + room - 8, 0, 8);  // the padding, or what was there before would leave the process
  return record->payload;
}

namespace {
/// For a peer that has left. What it was sent since was not for it.
void drop_frames(VciGuard& guard, Link& link) noexcept {
  while (Frame* frame = link.head) {
    link.head = frame->next;
    if (frame->direct && frame->completes) complete(*frame->direct, guard);
    frame->next = link.net->free_frames;
    link.net->free_frames = frame;
  }
  link.tail = nullptr;
}
}  // namespace

bool flush_link(VciGuard& guard, Link& link) noexcept {
  Net& net = *link.net;
  close_frame(guard, link);
  bool posted = false;
  if (link.gone) [[unlikely]] return drop_frames(guard, link), false;
  while (Frame* frame = link.head) {
    if (link.address == wire::no_address) return posted;  // `here` makes it dirty again
    Frame* const following = frame->next;
    const int code = post(net, link, *frame);
    if (code == -EAGAIN) {
      mark_dirty(link);
      return posted;
    }
    if (code < 0 && !link.peer_may_go) lost(link, "sending", code);
    if (code < 0) {
      link.gone = true;
      drop_frames(guard, link);
      return posted;
    }
    link.head = following;
    if (!following) link.tail = nullptr;
    frame->next = nullptr;
    posted = true;
    if (code == 1) {
      if (frame->direct && frame->completes) complete(*frame->direct, guard);
      frame->next = net.free_frames;
      net.free_frames = frame;
    } else {
      ++link.posted;
      ++net.under_way;
      // Whoever sleeps at the network did not know, and this thread may compute from now on.
      if (!net.in_step && net.context.keeps_messages()) leave_work(guard.vci());
    }
  }
  return posted;
}

bool send_appended(VciGuard& guard, Link& link) noexcept {
  Net& net = *link.net;
  // The first write since this VCI last made progress goes at once; what follows it waits for more, until the thread looks for anything
  // (every wait, test and probe does), the frame is full, or the helper comes by.
  if (!net.in_step && (link.epoch != net.epoch || !gather.value())) {
    link.epoch = net.epoch;
    flush_link(guard, link);
    return true;
  }
  mark_dirty(link);
  if (!net.in_step && !net.gathered.load(std::memory_order_relaxed)) {
    net.gathered.store(true, std::memory_order_relaxed);
    wake_helper_to_flush();
  }
  return false;
}

void push(VciGuard& guard, ProcessIndex process, unsigned lane, const proto::RecordHead& head, const void* payload,
          std::uint32_t bytes) noexcept {
  Link& link = link_to(net_of(guard.vci()), process, lane);
  std::memcpy(append(guard, link, head, bytes), payload, bytes);
  send_appended(guard, link);
}

bool flush(VciGuard& guard) noexcept {
  Net* net = guard.vci().net.load(std::memory_order_relaxed);
  if (net->dirty.empty()) return false;
  std::vector<Link*> links;
  links.swap(net->dirty);
  bool sent = false;
  for (Link* link : links) {
    link->dirty = false;
    sent |= flush_link(guard, *link);
  }
  net->gathered.store(false, std::memory_order_relaxed);
  if (net->dirty.empty()) {  // keep the memory
    links.clear();
    net->dirty.swap(links);
  }
  return sent;
}

namespace {

/// The record of a message of `send`. Its place must not exceed a frame.
void append_message(VciGuard& guard, Link& link, Request& send) noexcept {
  const bool sync = static_cast<SendMode>(send.mode) == SendMode::synchronous;
  const std::size_t extra = sync ? sizeof(AckTo) : 0;
  std::byte* to = append(guard, link,
                         {send.pattern.context, send.pattern.source, send.pattern.tag, sync ? RecordKind::eager_sync : RecordKind::eager, lane_of(send)},
                         send.capacity + extra);
  if (sync) {
    const AckTo ack{reinterpret_cast<RequestToken>(&send), runtime.self, 0};
    std::memcpy(to, &ack, sizeof ack);
  }
  if (send.datatype->contiguous) {
    if (send.capacity) std::memcpy(to + extra, static_cast<const std::byte*>(send.buffer) + send.datatype->true_lb, send.capacity);
  } else {
    PackCursor cursor;
    pack(send.buffer, send.count, *send.datatype, cursor, to + extra, send.capacity);
  }
}

/// A message that is too large to be copied gladly, and small enough to be sent unasked: a frame of its own, whose payload is taken from the
/// user's buffer. The send completes when the provider is done with that.
void send_direct(VciGuard& guard, Link& link, Request& send) noexcept {
  const bool sync = static_cast<SendMode>(send.mode) == SendMode::synchronous;
  const std::size_t extra = sync ? sizeof(AckTo) : 0;
  close_frame(guard, link);
  std::byte* to = append(guard, link,
                         {send.pattern.context, send.pattern.source, send.pattern.tag, sync ? RecordKind::eager_sync : RecordKind::eager, lane_of(send)},
                         extra);
  if (sync) {
    const AckTo ack{reinterpret_cast<RequestToken>(&send), runtime.self, 0};
    std::memcpy(to, &ack, sizeof ack);
  }
  auto* record = reinterpret_cast<Record*>(to - Record::head_bytes);
  record->bytes = static_cast<std::uint32_t>(extra + send.capacity);
  link.open->direct = &send;
  link.open->completes = !sync;
  link.sent += direct_room(*link.open);
  flush_link(guard, link);
}

void send_offer(VciGuard& guard, Link& link, Request& send) noexcept {
  Transfer* t = proto::new_transfer(send);
  auto* move = new (std::nothrow) Move;
  if (!move) sys::fatal("no memory for a large message");
  t->net = move;
  move->link = &link;
  t->bytes = send.capacity;
  Offer offer{};
  offer.request = reinterpret_cast<RequestToken>(&send);
  offer.bytes = send.capacity;
  offer.process = runtime.self;
  Net& net = *link.net;
  // Small ones are offered when there is no credit for more, many at a time: those are asked for, and sent, several in a frame.
  if (send.datatype->contiguous && send.capacity > copy_limit && net.context.reads()) {
    const auto* bytes = static_cast<const std::byte*>(send.buffer) + send.datatype->true_lb;
    if (net.context.register_memory(bytes, send.capacity, wire::Use::read_by_peers, move->memory)) {
      offer.address = move->memory.base;
      offer.heap = move->memory.key;
      offer.copy = 1;  // there is a key
    }
  }
  std::memcpy(append(guard, link, {send.pattern.context, send.pattern.source, send.pattern.tag, RecordKind::offer, lane_of(send)}, sizeof offer),
              &offer, sizeof offer);
  send_appended(guard, link);
}

}  // namespace

void send(VciGuard& guard, Request& send, Address to) noexcept {
  Link& link = link_to(net_of(guard.vci()), to.process, to.vci);
  const bool sync = static_cast<SendMode>(send.mode) == SendMode::synchronous;
  if (send.capacity > proto::limits.net_eager || link.sent - link.acked > window) return send_offer(guard, link, send);
  if (send.capacity > copy_limit) {
    if (!send.datatype->contiguous || !link.net->context.sends_parts()) return send_offer(guard, link, send);
    return send_direct(guard, link, send);
  }
  append_message(guard, link, send);
  const bool posted = send_appended(guard, link);
  if (sync) return;
  if (posted || !link.open) return complete(send, guard);
  send.next = link.open->waiting;
  link.open->waiting = &send;
}

bool start(const sys::Bootstrap& job, unsigned& vcis, std::string& problem) {
  const bool one_host = job.size == job.local_size;
  if (job.size == 1 || (one_host && shm::enabled())) return true;
  // Larger buffers inside libfabric cost 100 MiB more for each VCI: not where many ranks may share a node's memory. By the size of
  // the job, because all must choose alike.
  if (job.size <= most_ranks_with_large_buffers) ofi::prefer_rxm_buffer(tcp_eager + 512);
  if (!wire::choose(one_host, network, nullptr, problem) || !wire::open(network, problem)) {
    problem = (one_host ? "HEDDLE_SHM=0 asks for the network, but: " : "the job runs on several nodes, and has no network between them: ") + problem;
    return false;
  }
  frame_bytes = static_cast<std::size_t>(frame_size.value()) & ~std::size_t{7};
  if (frame_bytes > network.largest_message) frame_bytes = network.largest_message & ~std::size_t{7};
  constexpr std::size_t around = sizeof(ofi::FrameHead) + ofi::record_room(sizeof(AckTo) + 8);
  copy_limit = frame_bytes - around < (8 << 10) ? frame_bytes - around : 8 << 10;
  const bool in_one = network.over_tcp() && (network.choice.provider.find("rxm") == std::string::npos || rxm_takes(tcp_eager));
  proto::limits.net_eager = eager_size.value() > 0 ? static_cast<std::size_t>(eager_size.value()) : in_one ? tcp_eager : std::size_t{8} << 10;
  const std::size_t largest_message = network.largest_message < (std::size_t{1} << 20) ? network.largest_message - around
                                                                                                 : std::size_t{1} << 20;
  if (proto::limits.net_eager > largest_message) proto::limits.net_eager = largest_message;
  largest_frame = frame_bytes;
  if (((proto::limits.net_eager + 7) & ~std::size_t{7}) + around + 256 > largest_frame)
    largest_frame = ((proto::limits.net_eager + 7) & ~std::size_t{7}) + around + 256;  // with a `hello` before it
  window = static_cast<std::uint64_t>(window_size.value());

  // Contexts are divided among the ranks of the node; VCIs above their number share.
  const std::size_t contexts = network.contexts;
  const auto share = contexts ? contexts / static_cast<std::size_t>(job.local_size) : vcis;
  if (share < vcis) {
    HEDDLE_NOTICE_ONCE("the network has %zu contexts for %d ranks on this node; each rank uses %zu instead of %u VCIs.", contexts,
                       job.local_size, share ? share : 1, vcis);
    vcis = share ? static_cast<unsigned>(share) : 1;
  }
  own_vcis = vcis;
  first_context = wire::new_context(network).release();
  if (!first_context || !first_context->open(largest_frame, wake.value(), problem)) return false;
  known = new std::unordered_map<ProcessIndex, KnownProcess>;

  Card card{};
  card.version = card_version;
  card.vcis = vcis;
  if (getrandom(&own_key, sizeof own_key, 0) != sizeof own_key) own_key = hash(job.job_id + std::to_string(job.rank));
  card.key = own_key;
  card.largest_frame = largest_frame;
  std::snprintf(card.provider, sizeof card.provider, "%s", provider_and_buffer().c_str());
  std::string text(reinterpret_cast<const char*>(&card), sizeof card);
  text += first_context->name();
  return card_put = sys::bootstrap::put("net", text, problem);
}

bool needs_fence() noexcept { return card_put; }

bool meet(const sys::Bootstrap& job, std::string& problem) {
  if (!card_put) return true;
  // Our own mpiexec names each job with 128 random bits, known to its ranks only. Elsewhere rank 0 has made a key.
  const char* random_name = std::getenv("HEDDLE_JOB_ID");
  if (random_name && job.job_id == random_name) {
    job_key = hash(job.job_id);
  } else if (job.rank == 0) {
    job_key = own_key;
  } else {
    KnownProcess first;
    if (!read_card(&job, 0, first, &job_key, problem)) return false;
    known->emplace(0, std::move(first));
  }
  // Rank 0 may have nothing to do but to leave again, while others have not come to ask for its key. No other card is wanted from
  // somebody who may leave: the owner talks to whoever asks, and leaves when that is over.
  if (!sys::bootstrap::await_fetches(problem)) return false;
  tcp::set_key(job_key);
  guard_bell = shm::open_bell(shm::header->doorbell, shm::guard_bell, problem);
  runtime.locks = true;  // before there is somebody who looks whether
  if (guard_bell < 0 || !start_helper(problem)) return false;
  detail::active = true;
  net_of(vci_of_lane(0));
  return true;
}

Net& net_of(Vci& vci) noexcept {
  if (Net* net = vci.net.load(std::memory_order_acquire)) [[likely]] return *net;  // pairs with the store below
  const std::lock_guard hold(open_mutex);
  if (Net* net = vci.net.load(std::memory_order_relaxed)) return *net;
  std::unique_ptr<wire::Context> context(vci.index == 0 ? std::exchange(first_context, nullptr) : nullptr);
  if (!context) {
    context = wire::new_context(network);
    std::string problem = "no memory";
    if (!context || !context->open(largest_frame, wake.value(), problem)) sys::fatal("no network for VCI %u: %s. HEDDLE_VCIS lowers their number", vci.index, problem.c_str());
  }
  auto* net = new (std::nothrow) Net(vci, std::move(context));
  if (!net) sys::fatal("no memory for the network of VCI %u", vci.index);
  std::string problem;
  net->bell = shm::open_bell(shm::header->doorbell, vci.index, problem);
  if (net->bell < 0) sys::fatal("no network for VCI %u: %s. HEDDLE_VCIS lowers their number", vci.index, problem.c_str());
  vci.net.store(net, std::memory_order_release);
  wake_all_sleepers();  // whoever sleeps at the network does not know of this one yet
  return *net;
}

void destroy(Vci& vci) noexcept { delete vci.net.exchange(nullptr, std::memory_order_relaxed); }

Net::~Net() {
  for (Slab& slab : slabs) context.deregister(slab.registration);
  context_.reset();
  if (bell >= 0) ::close(bell);
  for (Slab& slab : slabs) {
    std::free(slab.memory);
    delete[] slab.frames;
  }
  while (ReadPiece* piece = free_pieces) {
    free_pieces = piece->next;
    delete piece;
  }
}

void stop() noexcept {
  if (!detail::active) return;
  stop_helper();
  ::close(std::exchange(guard_bell, -1));
  detail::active = false;
}

void close() noexcept {
  delete std::exchange(first_context, nullptr);
  wire::close();
}

}  // namespace heddle::net
