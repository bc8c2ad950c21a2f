// Large messages over the network.
//
//   sender                                   receiver
//   offer {address, key, bytes} -----------> matched
//                                            the provider can read: reads pieces, several at a time ----> finished
//                                            else, or small, or not one block at either end: pull ------> data … data
#include <cerrno>
#include <new>

#include "proto/net_state.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"

namespace heddle::net {
namespace {

HEDDLE_PARAM_SIZE(piece_size, "HEDDLE_NET_PIECE", 1 << 20, 4096, sys::ParamRange::unlimited, "bytes of each read when a large message is fetched over the network");
HEDDLE_PARAM_INT(piece_depth, "HEDDLE_NET_DEPTH", 4, 1, 1'000'000, "how many reads of HEDDLE_NET_PIECE bytes are under way at a time for each message");

constexpr std::uint32_t stream_frames = 16;  ///< unfinished writes to one peer, above which a stream waits

void queue_reads(Net& net, Transfer& t) noexcept {
  if (t.net->queued) return;  // an earlier read of it ended, and the provider still takes no more
  t.net->queued = true;
  t.net->next = nullptr;
  if (net.reads_tail) net.reads_tail->net->next = &t; else net.reads_head = &t;
  net.reads_tail = &t;
}

ReadPiece* new_piece(Net& net) noexcept {
  if (ReadPiece* piece = net.free_pieces) {
    net.free_pieces = piece->next;
    return piece;
  }
  auto* piece = new (std::nothrow) ReadPiece;
  if (!piece) sys::fatal("no memory for a large message");
  piece->kind = wire::Operation::Kind::read;
  return piece;
}

void give_back(Net& net, ReadPiece& piece) noexcept {
  piece.next = net.free_pieces;
  net.free_pieces = &piece;
}

/// Asks for the next pieces of `t`. False when the provider takes no more now.
bool issue(Net& net, Transfer& t, bool& worked) noexcept {
  Move& move = *t.net;
  std::uint64_t limit = static_cast<std::uint64_t>(piece_size.value());
  if (limit > net.context.largest_read()) limit = net.context.largest_read();
  while (move.issued < t.bytes && move.in_flight < static_cast<std::uint32_t>(piece_depth.value())) {
    ReadPiece* piece = new_piece(net);
    piece->transfer = &t;
    piece->bytes = t.bytes - move.issued < limit ? t.bytes - move.issued : limit;
    const int code = net.context.read(move.link->address, reinterpret_cast<void*>(t.to + move.issued), piece->bytes,
                                      move.memory.descriptor, move.remote + move.issued, move.key, *piece);
    if (code) {
      give_back(net, *piece);
      if (code == -EAGAIN) return false;
      lost(*move.link, "reading a large message", code);
    }
    move.issued += piece->bytes;
    ++move.in_flight;
    ++net.under_way;
    worked = true;
  }
  return true;
}

}  // namespace

bool issue_reads(VciGuard&, Net& net) noexcept {
  bool worked = false;
  Transfer* t = net.reads_head;
  net.reads_head = net.reads_tail = nullptr;
  while (t) {
    Transfer* following = t->net->next;
    t->net->queued = false;
    if (!issue(net, *t, worked)) queue_reads(net, *t);
    t = following;
  }
  return worked;
}

void handle_read(VciGuard& guard, Net& net, ReadPiece& piece) noexcept {
  Transfer& t = *piece.transfer;
  t.moved += piece.bytes;
  --t.net->in_flight;
  --net.under_way;
  give_back(net, piece);
  if (t.moved == t.bytes) {
    const RecordHead head{0, 0, 0, proto::PointToPoint::finished, 0};
    std::memcpy(append(guard, *t.net->link, head, sizeof t.other), &t.other, sizeof t.other);
    send_appended(guard, *t.net->link);
    return proto::finish_transfer(guard, t);
  }
  bool worked = false;
  if (t.net->issued < t.bytes && !issue(net, t, worked)) queue_reads(net, t);
}

void begin_transfer(VciGuard& guard, Request& receive, const proto::Offer& offer, std::uint16_t lane) noexcept {
  Net& net = net_of(guard.vci());
  Link& link = link_to(net, offer.process, lane);
  const auto bytes = static_cast<std::uint64_t>(receive.bytes);
  if (!bytes) {
    push(guard, offer.process, lane, {0, 0, 0, proto::PointToPoint::finished, 0}, &offer.request, sizeof offer.request);
    return complete(receive, guard);
  }
  Transfer* t = proto::new_transfer(receive);
  auto* move = new (std::nothrow) Move;
  if (!move) sys::fatal("no memory for a large message");
  t->net = move;
  t->bytes = bytes;
  t->other = offer.request;
  t->lane = lane;
  move->link = &link;
  if (receive.datatype->contiguous) t->to = reinterpret_cast<std::uint64_t>(receive.buffer) + static_cast<std::uint64_t>(receive.datatype->true_lb);
  const bool can_read = offer.copy && receive.datatype->contiguous && net.context.reads() &&
                        (!net.context.registers_local() ||
                         net.context.register_memory(reinterpret_cast<void*>(t->to), bytes, wire::Use::read_into, move->memory));
  if (can_read) {
    move->remote = offer.address;
    move->key = offer.heap;
    bool worked = false;
    if (!issue(net, *t, worked)) queue_reads(net, *t);
    if (!net.in_step) net.context.flush();
    return;
  }
  const proto::Accept accept{offer.request, reinterpret_cast<proto::RequestToken>(&receive), 0, bytes, 0, runtime.self, lane_of(receive)};
  push(guard, offer.process, lane, {0, 0, 0, proto::PointToPoint::pull, 0}, &accept, sizeof accept);
}

bool stream_step(VciGuard& guard, Transfer& t, bool& finished) noexcept {
  Link& link = *t.net->link;
  Request& send = *t.request;
  const std::uint64_t room = frame_bytes - sizeof(FrameHead) - record_room(sizeof(proto::DataFor)) - 8;
  bool moved = false;
  while (t.moved < t.bytes && link.posted < stream_frames && !link.head) {
    const std::uint64_t n = t.bytes - t.moved < room ? t.bytes - t.moved : room;
    std::byte* to = append(guard, link, {0, 0, 0, proto::PointToPoint::data, 0}, n + sizeof(proto::DataFor));
    const proto::DataFor whose{t.other, t.moved};
    std::memcpy(to, &whose, sizeof whose);
    pack(send.buffer, send.count, *send.datatype, t.cursor, to + sizeof whose, n);
    if (n == room) flush_link(guard, link);
    else send_appended(guard, link);  // what others have for the peer leaves with it
    t.moved += n;
    moved = true;
  }
  finished = t.moved == t.bytes;
  return moved;
}

void release(Transfer& t) noexcept {
  t.net->link->net->context.deregister(t.net->memory);
  delete t.net;
  t.net = nullptr;
}

}  // namespace heddle::net
