// Links, frames, sending: what leaves this process over the network.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "proto/net_peers.hpp"
#include "proto/net_state.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"
#include "transport/ofi/tcp_watch.hpp"

namespace heddle::net {
namespace {

HEDDLE_PARAM_BOOL(gather, "HEDDLE_NET_GATHER", 1, "small messages to one peer that follow each other leave in one write");

constexpr std::uint64_t frames_per_slab = 16;

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
  frame->bytes = sizeof(FrameHead);
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
  const FrameHead head{job_key, runtime.self, link.next_sequence++, frame->bytes + static_cast<std::uint32_t>(direct_room(*frame)), static_cast<std::uint16_t>(link.net->vci.index),
                            frame_version, 0};
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

bool is_counted(RecordKind kind) noexcept { return kind.module != Control::module; }

}  // namespace

Link& new_link(Net& net, ProcessIndex process, unsigned vci) noexcept {
  auto link = std::make_unique<Link>();
  link->net = &net;
  link->process = process;
  link->vci = static_cast<std::uint16_t>(vci);
  return *(net.links[key_of(process, vci)] = std::move(link));
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
      if (network.choice.info) ofi::watch_peer(peer.name.data(), process);
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
  std::memcpy(append(guard, first, {0, 0, 0, Control::where, 0}, sizeof wanted), &wanted, sizeof wanted);
  flush_link(guard, first);
}

}  // namespace

std::byte* append(VciGuard& guard, Link& link, const RecordHead& head, std::size_t payload) noexcept {
  Net& net = *link.net;
  if (link.greet) [[unlikely]] {
    link.greet = false;
    append_name(guard, link, Control::hello, net.vci.index, net.context.name());
    if (link.address == wire::no_address) ask_address(guard, link);
  }
  const std::size_t room = record_room(payload);
  if (link.open && link.open->bytes + room > frame_bytes) {
    close_frame(guard, link);
    flush_link(guard, link);
  }
  if (!link.open) link.open = new_frame(net);
  Frame& frame = *link.open;
  frame.link = &link;
  std::byte* at = frame.data + frame.bytes;
  Record* record = record_at(at);
  record->context = head.context;
  record->source = head.source;
  record->tag = head.tag;
  record->bytes = static_cast<std::uint32_t>(payload);
  record->kind = head.kind;
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

/// The first write since this VCI last made progress goes at once; what follows it waits for more, until the thread looks for anything
/// (every wait, test and probe does), the frame is full, or the helper comes by.
static bool leaves_at_once(const Link& link) noexcept {
  return !link.net->in_step && (link.epoch != link.net->epoch || !gather.value());
}

bool send_appended(VciGuard& guard, Link& link) noexcept {
  Net& net = *link.net;
  if (leaves_at_once(link)) {
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

bool try_send(VciGuard& guard, Address to, const RecordHead& head, const std::byte* bytes, std::size_t n) noexcept {
  Link& link = link_to(net_of(guard.vci()), to.process, to.vci);
  if (n > copy_limit || n > proto::limits.net_eager || link.sent - link.acked > window || !leaves_at_once(link)) return false;
  std::byte* const at = append(guard, link, head, n);
  if (n) std::memcpy(at, bytes, n);
  return send_appended(guard, link);
}

void push(VciGuard& guard, ProcessIndex process, unsigned lane, const RecordHead& head, const void* payload,
          std::uint32_t bytes) noexcept {
  Link& link = link_to(net_of(guard.vci()), process, lane);
  std::memcpy(append(guard, link, head, bytes), payload, bytes);
  send_appended(guard, link);
}

bool flush(VciGuard& guard) noexcept {
  Net* net = guard.vci().net.load(std::memory_order_acquire);  // pairs with open_net
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
  const std::size_t extra = sync ? sizeof(proto::AckTo) : 0;
  std::byte* to = append(guard, link,
                         {send.pattern.context, send.pattern.source, send.pattern.tag, sync ? proto::PointToPoint::eager_sync : proto::PointToPoint::eager, lane_of(send)},
                         send.capacity + extra);
  if (sync) {
    const proto::AckTo ack{reinterpret_cast<proto::RequestToken>(&send), runtime.self, 0};
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
  const std::size_t extra = sync ? sizeof(proto::AckTo) : 0;
  close_frame(guard, link);
  std::byte* to = append(guard, link,
                         {send.pattern.context, send.pattern.source, send.pattern.tag, sync ? proto::PointToPoint::eager_sync : proto::PointToPoint::eager, lane_of(send)},
                         extra);
  if (sync) {
    const proto::AckTo ack{reinterpret_cast<proto::RequestToken>(&send), runtime.self, 0};
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
  proto::Offer offer{};
  offer.request = reinterpret_cast<proto::RequestToken>(&send);
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
  std::memcpy(append(guard, link, {send.pattern.context, send.pattern.source, send.pattern.tag, proto::PointToPoint::offer, lane_of(send)}, sizeof offer),
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

}  // namespace heddle::net
