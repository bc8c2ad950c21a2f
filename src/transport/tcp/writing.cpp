// Writes to the memory of peers, and theirs to ours: posting, numbers, confirmations. How the bytes come: receiving.cpp.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "sys/log.hpp"
#include "sys/params.hpp"
#include "transport/tcp/connection.hpp"
#include "transport/tcp/context.hpp"

namespace heddle::tcp {
namespace {

HEDDLE_PARAM_SIZE(most_unsent, "HEDDLE_TCP_UNSENT", 1 << 20, 64 << 10, 1 << 30,
                  "bytes of writes to one peer's memory that wait for the kernel to take them; who writes more makes progress first");

constexpr std::size_t block_bytes = 8 << 10;     ///< in which small writes leave together
constexpr std::size_t sent_at_once = 64 << 10;   ///< so many leave without waiting for the end of the step
constexpr std::size_t most_confirms = 1024;      ///< of one peer, unanswered
static_assert(sizeof(PacketHead) + sizeof(WriteHead) + largest_copied_write + 8 <= block_bytes);

/// Whether one number comes after another; they go round.
bool is_after(std::uint32_t a, std::uint32_t b) noexcept { return static_cast<std::int32_t>(a - b) > 0; }

/// Whether a peer's write may have this number.
bool may_be_next(const Peer& peer, std::uint32_t number) noexcept {
  return number == peer.landed + 1 || (peer.early ? number == peer.early_from + peer.early : is_after(number, peer.landed));
}

}  // namespace

/// Puts a small write into the block that waits last. False: there is none, or it is full.
bool Context::append_write(Peer& peer, const PacketHead& head, const WriteHead& where, const void* data, std::size_t bytes) noexcept {
  Packet* const tail = peer.out ? peer.out->tail : peer.attempt->tail;
  if (!tail || !tail->block || !tail->is_whole()) return false;
  std::size_t& used = tail->parts[0].iov_len;
  if (used + sizeof head + sizeof where + bytes + padding(bytes) > block_bytes) return false;
  PacketHead before;
  WriteHead there;
  std::byte* const last = tail->block + tail->last;
  std::memcpy(&before, last, sizeof before);
  std::memcpy(&there, last + sizeof before, sizeof there);
  const std::size_t n = before.bytes - sizeof there;
  const bool continues = there.key == where.key && there.offset + n == where.offset && n % 8 == 0;
  if (continues && before.kind == PacketKind::write && head.kind == PacketKind::write) {
    before.bytes += static_cast<std::uint32_t>(bytes);  // one longer write
    std::memcpy(last, &before, sizeof before);
  } else {
    tail->last = used;
    std::memcpy(tail->block + used, &head, sizeof head);
    std::memcpy(tail->block + used + sizeof head, &where, sizeof where);
    used += sizeof head + sizeof where;
    ++peer.written;
  }
  if (bytes) std::memcpy(tail->block + used, data, bytes);
  std::memset(tail->block + used + bytes, 0, padding(bytes));
  used += bytes + padding(bytes);
  return true;
}

/// A packet that is a block, with nothing in it.
Packet& Context::new_block(Peer& peer) noexcept {
  Packet& packet = *new_packet();
  if (free_blocks_.empty()) {
    packet.block = static_cast<std::byte*>(std::malloc(block_bytes));
    if (!packet.block) sys::fatal("no memory for a write to a peer's memory");
  } else {
    packet.block = free_blocks_.back();
    free_blocks_.pop_back();
  }
  packet.first = packet.count = 0;
  packet.last = 0;
  packet.writes_to = &peer;
  peer.unsent += packet.weight = block_bytes;
  return packet;
}

int Context::post_write(Peer& peer, PacketKind kind, std::uint32_t immediate, const void* data, std::size_t bytes, const WriteHead& where,
                        wire::Operation* operation) noexcept {
  if (!peer.error && !peer.out && !peer.attempt) connect(peer);
  if (peer.error) return -peer.error;
  if (bytes > capabilities_.largest_write || (!operation && bytes > largest_copied_write)) return -EMSGSIZE;
  if (peer.unsent >= static_cast<std::size_t>(most_unsent.value())) return -EAGAIN;
  const PacketHead head{static_cast<std::uint32_t>(sizeof where + bytes), kind, packet_version, std::uint64_t{immediate} << 32 | (peer.written + 1)};
  if (!operation && append_write(peer, head, where, data, bytes)) return 1;
  if (peer.unsent >= sent_at_once && peer.out) push(*peer.out);
  if (peer.error) return -peer.error;
  ++peer.written;
  if (!operation) {
    Packet& packet = new_block(peer);
    std::byte* at = packet.block;
    std::memcpy(at, &head, sizeof head);
    std::memcpy(at += sizeof head, &where, sizeof where);
    at += sizeof where;
    if (bytes) std::memcpy(at, data, bytes);
    std::memset(at + bytes, 0, padding(bytes));
    packet.add(packet.block, sizeof head + sizeof where + bytes + padding(bytes));
    post(peer, packet, true);
    return 1;
  }
  Packet& packet = *new_packet();
  packet.operation = operation;
  packet.writes_to = &peer;
  peer.unsent += packet.weight = sizeof packet;
  std::memcpy(packet.small, &where, sizeof where);
  packet.fill(kind, head.id, head.bytes);
  packet.add(packet.small, sizeof where);
  packet.add(const_cast<void*>(data), bytes);
  packet.finish();
  return post(peer, packet, bytes < sent_at_once);
}

int Context::write(wire::Address to, const void* data, std::size_t bytes, void*, std::uint64_t address, std::uint64_t key,
                   wire::Operation* operation) noexcept {
  return post_write(*peers_[to], PacketKind::write, 0, data, bytes, {key, address}, operation);
}

int Context::write_with_data(wire::Address to, const void* data, std::size_t bytes, void*, std::uint64_t address, std::uint64_t key,
                             std::uint32_t immediate, wire::Operation* operation) noexcept {
  return post_write(*peers_[to], PacketKind::write_with_data, immediate, data, bytes, {key, address}, operation);
}

int Context::confirm(wire::Address to, wire::Operation& operation) noexcept {
  Peer& peer = *peers_[to];
  if (peer.confirms >= most_confirms) return -EAGAIN;
  ++peer.confirms;
  const std::uint32_t slot = new_read({&operation, nullptr, 0, &peer, nullptr, true});
  Packet& packet = *new_packet();
  const WriteAwaited question{peer.written, 0};
  std::memcpy(packet.small, &question, sizeof question);
  packet.fill(PacketKind::confirm, slot, sizeof question);
  packet.add(packet.small, sizeof question);
  packet.finish();
  post(peer, packet, true);
  if (peer.error && reads_under_way_[slot].operation == &operation) end_read(slot, peer.error);
  return 0;
}

/// Where a peer's write goes; null where it may not write: the peer has a defect, or is none.
std::byte* Context::place_of_write(const Connection& connection, const PacketHead& head, const WriteHead& where) noexcept {
  const std::uint64_t bytes = head.bytes - sizeof where;
  const Region* const region = region_of(where.key, where.offset, bytes);
  if (region && region->may_write && may_be_next(*connection.peer, static_cast<std::uint32_t>(head.id))) return region->base + where.offset;
  const char* const why = !region              ? "outside of any memory that was exposed, or after that was withdrawn"
                          : !region->may_write ? "to memory that was exposed for reading only"
                                               : "out of turn";
  HEDDLE_NOTICE_ONCE("a peer (%s) writes %llu bytes at offset %llu %s: nothing was written, and the connection is ended",
                     connection.there.text().c_str(), static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(where.offset), why);
  return nullptr;
}

/// All of a peer's write is in place. False if it may not have this number.
bool Context::has_written(Connection& connection, const PacketHead& head) noexcept {
  Peer& peer = *connection.peer;
  const auto number = static_cast<std::uint32_t>(head.id);
  if (!may_be_next(peer, number)) return false;  // another connection has brought it meanwhile
  if (number != peer.landed + 1) {
    if (!peer.early++) peer.early_from = number;
  } else {
    ++peer.landed;
    if (peer.early && peer.early_from == peer.landed + 1) {
      peer.landed += peer.early;
      peer.early = 0;
    }
  }
  if (head.kind == PacketKind::write_with_data) done_.push_back({nullptr, 0, nullptr, 0, static_cast<std::uint32_t>(head.id >> 32)});
  if (!peer.unconfirmed.empty()) [[unlikely]]
    std::erase_if(peer.unconfirmed, [&](const auto& question) {
      if (is_after(question.first, peer.landed)) return false;
      say_confirmed(peer, question.second);
      return true;
    });
  return true;
}

/// Answers when all up to the number is in place: now, unless the peer has changed over to this connection and the other one is not read yet.
void Context::confirm_later(Connection& connection, std::uint64_t id, const std::byte* body) noexcept {
  WriteAwaited question;
  std::memcpy(&question, body, sizeof question);
  Peer& peer = *connection.peer;
  if (!is_after(question.number, peer.landed)) return say_confirmed(peer, id);
  if (peer.unconfirmed.size() >= most_confirms) return break_off(connection, EPROTO);
  peer.unconfirmed.emplace_back(question.number, id);
}

void Context::say_confirmed(Peer& peer, std::uint64_t id) noexcept {
  Packet& packet = *new_packet();
  packet.fill(PacketKind::confirmed, id, 0);
  packet.finish();
  post(peer, packet, true);
}

}  // namespace heddle::tcp
