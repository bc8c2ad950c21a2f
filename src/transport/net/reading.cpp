// Reads of a peer's memory: in pieces, several at a time, so that neither end keeps the network to itself.
#include <cerrno>
#include <new>

#include "sys/log.hpp"
#include "sys/params.hpp"
#include "transport/net/engine.hpp"

namespace heddle::net {
namespace {

HEDDLE_PARAM_SIZE(piece_size, "HEDDLE_NET_PIECE", 1 << 20, 4096, sys::ParamRange::unlimited, "bytes of each read when a large message is fetched over the network");
HEDDLE_PARAM_INT(piece_depth, "HEDDLE_NET_DEPTH", 4, 1, 1'000'000, "how many reads of HEDDLE_NET_PIECE bytes are under way at a time for each message");

}  // namespace

void Engine::queue(RemoteRead& read) noexcept {
  if (read.queued) return;  // an earlier piece of it ended, and the network still takes no more
  read.queued = true;
  read.following = nullptr;
  if (reads_tail_) reads_tail_->following = &read; else reads_head_ = &read;
  reads_tail_ = &read;
}

/// Asks for the next pieces. False when the network takes no more now.
bool Engine::issue(RemoteRead& read, bool& worked) noexcept {
  std::uint64_t limit = static_cast<std::uint64_t>(piece_size.value());
  if (limit > capabilities().largest_read) limit = capabilities().largest_read;
  while (read.issued < read.bytes && read.in_flight < static_cast<std::uint32_t>(piece_depth.value())) {
    ReadPiece* piece = free_pieces_;
    if (piece) {
      free_pieces_ = piece->next;
    } else {
      piece = new (std::nothrow) ReadPiece;
      if (!piece) sys::fatal("no memory for a large message");
      piece->done = piece_arrived;
    }
    piece->read = &read;
    piece->bytes = read.bytes - read.issued < limit ? read.bytes - read.issued : limit;
    const int code = context_->read(read.connection->address, read.to + read.issued, piece->bytes, read.descriptor, read.from + read.issued,
                                    read.key, *piece);
    if (code) {
      piece->next = free_pieces_;
      free_pieces_ = piece;
      if (code == -EAGAIN) return false;
      lost(*read.connection, "reading a large message", code);
    }
    read.issued += piece->bytes;
    ++read.in_flight;
    ++under_way_;
    worked = true;
  }
  return true;
}

void Engine::read(Held&, RemoteRead& read) noexcept {
  read.issued = read.arrived = 0;
  read.in_flight = 0;
  bool worked = false;
  if (!issue(read, worked)) queue(read);
  if (!in_step_) context_->flush();
}

bool Engine::issue_queued() noexcept {
  bool worked = false;
  RemoteRead* read = reads_head_;
  reads_head_ = reads_tail_ = nullptr;
  while (read) {
    RemoteRead* following = read->following;
    read->queued = false;
    if (!issue(*read, worked)) queue(*read);
    read = following;
  }
  return worked;
}

void Engine::piece_arrived(wire::Operation& operation, const wire::Event& event, Held& held) noexcept {
  auto& piece = static_cast<ReadPiece&>(operation);
  RemoteRead& read = *piece.read;
  Engine& self = *read.connection->engine;
  if (event.error) self.lost(*read.connection, "reading a large message", event.error);
  read.arrived += piece.bytes;
  --read.in_flight;
  --self.under_way_;
  piece.next = self.free_pieces_;
  self.free_pieces_ = &piece;
  if (read.arrived == read.bytes) return read.done(read, held, 0);
  bool worked = false;
  if (read.issued < read.bytes && !self.issue(read, worked)) self.queue(read);
}

}  // namespace heddle::net
