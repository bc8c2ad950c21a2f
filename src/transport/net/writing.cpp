// Memory of peers: what is exposed here, and writes, reads and updates of what is exposed there.
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "sys/log.hpp"
#include "sys/params.hpp"
#include "transport/net/engine.hpp"

namespace heddle::net {
namespace {

HEDDLE_PARAM_SIZE(write_copy, "HEDDLE_NET_WRITE_COPY", 2 << 10, 0, 4 << 10,
                  "largest write to another process's memory that is copied, and leaves with others; larger ones go from the caller's memory");

/// Reads, writes and updates that a VCI has under way; more wait with the caller.
constexpr std::uint32_t most_under_way = 4096, most_copies = 256;

/// Offset of the values in the memory of an update.
constexpr std::size_t operand_at = 0, compare_at = 8, before_at = 16;

bool is_inside(const RemoteRegion& region, std::uint64_t offset, std::uint64_t bytes) noexcept {
  return offset <= region.bytes && bytes <= region.bytes - offset;
}

}  // namespace

bool Engine::expose(void* memory, std::size_t bytes, wire::Use use, Region& region) noexcept {
  region.registration = {};
  region.name = {0, 0, bytes, vci_, use, {}};
  if (!bytes) return true;  // nothing can be asked of it
  if (!register_memory(memory, bytes, use, region.registration)) return false;
  region.name.key = region.registration.key;
  region.name.base = region.registration.base;
  return true;
}

void Engine::withdraw(Region& region) noexcept {
  deregister(region.registration);
  region.name = {};
}

/// Whether operations can be posted to the peer now. If its address is not known yet, it is asked for.
bool Engine::is_reachable(Held& held, Connection& connection) noexcept {
  if (connection.address != wire::no_address && pieces_under_way_ < most_under_way) [[likely]] return true;
  connection.stalled = true;
  if (connection.address == wire::no_address && connection.greet) greet(held, connection);
  return false;
}

RegionPiece& Engine::new_piece(Connection& connection) noexcept {
  if (!free_region_pieces_) {
    constexpr std::size_t together = 64;
    std::unique_ptr<RegionPiece[]> pieces(new (std::nothrow) RegionPiece[together]);
    if (!pieces) sys::fatal("no memory to reach other processes' memory");
    wire::Registration registration;
    if (capabilities().registers_local && !register_memory(pieces.get(), together * sizeof(RegionPiece), wire::Use::at_this_end, registration))
      sys::fatal("the network refuses to register memory: the limit of locked memory (`ulimit -l`) is too low");
    for (std::size_t i = 0; i < together; ++i) {
      RegionPiece& piece = pieces[i];
      piece.done = piece_done;
      piece.descriptor = registration.descriptor;
      piece.next = free_region_pieces_;
      free_region_pieces_ = &piece;
    }
    region_pieces_.emplace_back(std::move(pieces), registration);
  }
  RegionPiece& piece = *free_region_pieces_;
  free_region_pieces_ = piece.next;
  piece.connection = &connection;
  piece.pending = nullptr;
  piece.group = nullptr;
  piece.copy = nullptr;
  piece.to = nullptr;
  piece.confirms = false;
  return piece;
}

void Engine::recycle(RegionPiece& piece) noexcept {
  if (piece.copy) {
    recycle(*piece.copy);
    --copies_;
  }
  if (piece.memory.memory) deregister(piece.memory);
  piece.next = free_region_pieces_;
  free_region_pieces_ = &piece;
}

/// The memory at this end of a read or write, as the network wants it: a copy of little, at `from`, else the caller's, registered where that is
/// needed. False: not now.
bool Engine::find_memory(RegionPiece& piece, const void* memory, std::size_t bytes, wire::Use use, void*& descriptor) noexcept {
  const bool registers = capabilities().registers_local, writes = use == wire::Use::write_from;
  piece.from = static_cast<const std::byte*>(memory);
  piece.bytes = bytes;
  if (bytes <= RegionPiece::room_bytes && (registers || writes)) {
    piece.from = piece.room;
    descriptor = piece.descriptor;
  } else if (!registers) {
    return true;
  } else if (bytes <= static_cast<std::size_t>(write_copy.value()) && bytes <= common_.frame_bytes) {
    if (copies_ >= most_copies) return false;
    ++copies_;
    piece.copy = new_frame();
    piece.from = piece.copy->data;
    descriptor = piece.copy->descriptor;
  } else {
    const bool done = register_memory(memory, bytes, use, piece.memory);  // else others hold what the process may lock
    descriptor = piece.memory.descriptor;
    return done;
  }
  if (writes && bytes) std::memcpy(const_cast<std::byte*>(piece.from), memory, bytes);
  if (!writes) piece.to = const_cast<void*>(memory);
  return true;
}

/// What a network says of an operation that was to be posted. The piece is given up unless it comes back.
int Engine::posted(Connection& connection, RegionPiece* piece, int code, Pending* pending) noexcept {
  if (code < 0) {
    if (piece) recycle(*piece);
    if (code == -ENOSYS) return code;
    if (code != -EAGAIN) lost(connection, "reaching its memory", code);
    connection.stalled = true;
    return code;
  }
  connection.stalled = false;
  ++connection.moved;
  if (code == 1 && piece) recycle(*piece);
  if (code == 1) return 1;
  ++pieces_under_way_;
  ++under_way_;
  ++connection.unanswered;
  if (!pending) return 1;
  piece->pending = pending;
  ++pending->under_way;
  return 0;
}

void Engine::piece_done(wire::Operation& operation, const wire::Event& event, Held& held) noexcept {
  auto& piece = static_cast<RegionPiece&>(operation);
  Connection& connection = *piece.connection;
  Engine& self = *connection.engine;
  if (event.error) self.lost(connection, "reaching its memory", event.error);
  --self.pieces_under_way_;
  --self.under_way_;
  --connection.unanswered;
  ++connection.moved;
  connection.confirming -= piece.confirms;
  if (piece.to) std::memcpy(piece.to, piece.from, piece.bytes);
  Pending* const pending = piece.pending;
  WriteGroup* const group = piece.group;
  self.recycle(piece);
  if (pending) self.one_less(held, *pending);
  if (group) {
    --group->under_way;
    self.end_groups(held, connection);
  }
}

void Engine::one_less(Held& held, Pending& pending) noexcept {
  if (--pending.under_way) return;
  if (pending.done) pending.done(pending, held);
  common_.host->wake_sleepers(held);
}

/// Tells who waits for groups of writes that are in place, with all before them.
void Engine::end_groups(Held& held, Connection& connection) noexcept {
  while (connection.groups != connection.last_group && !connection.groups->under_way) {
    WriteGroup* const group = connection.groups;
    connection.groups = group->next;
    Pending* const pending = group->pending;
    group->next = free_groups_;
    free_groups_ = group;
    one_less(held, *pending);
  }
}

/// The writes of the connection that are posted from now on.
void Engine::begin_group(Connection& connection) noexcept {
  WriteGroup* group = free_groups_;
  if (group) free_groups_ = group->next;
  else group = new (std::nothrow) WriteGroup;
  if (!group) sys::fatal("no memory to reach other processes' memory");
  *group = {};
  if (connection.last_group) connection.last_group->next = group; else connection.groups = group;
  connection.last_group = group;
}

/// Something waits in the context for the end of a step, or for the helper.
void Engine::leave_with_others() noexcept {
  waiting_ = true;
  if (in_step_ || has_gathered()) return;
  gathered_.store(true, std::memory_order_relaxed);
  common_.wake_helper();
}

int Engine::post_write(Held& held, Connection& connection, const void* from, std::size_t bytes, const RemoteRegion& to, std::uint64_t offset,
                       const std::uint32_t* immediate, Pending& pending) noexcept {
  const wire::Capabilities& can = capabilities();
  if (!(immediate ? can.writes_with_data : can.writes)) return -ENOSYS;
  if (!is_inside(to, offset, bytes)) return -ERANGE;
  if (bytes > can.largest_write) return -EMSGSIZE;
  if (!is_reachable(held, connection)) return -EAGAIN;
  const bool is_small = bytes <= static_cast<std::size_t>(write_copy.value()), copies = is_small && bytes <= can.copied_write;
  RegionPiece* piece = nullptr;
  void* descriptor = nullptr;
  bool frees = copies;
  if (!copies || !can.confirms) {
    piece = &new_piece(connection);
    if (!copies) {
      if (!find_memory(*piece, from, bytes, wire::Use::write_from, descriptor)) {
        recycle(*piece);
        connection.stalled = true;
        return -EAGAIN;
      }
      frees = piece->from != from;
      from = piece->from;
    }
  }
  const std::uint64_t address = to.base + offset;
  int code = immediate ? context_->write_with_data(connection.address, from, bytes, descriptor, address, to.key, *immediate, piece)
                       : context_->write(connection.address, from, bytes, descriptor, address, to.key, piece);
  if (code >= 0) {
    if (can.confirms) {
      connection.unconfirmed = true;
    } else if (code == 0) {
      if (!connection.last_group) begin_group(connection);
      piece->group = connection.last_group;
      ++connection.last_group->under_way;
    }
  }
  return posted(connection, piece, code, frees ? nullptr : &pending);
}

int Engine::write(Held& held, Connection& connection, const void* from, std::size_t bytes, const RemoteRegion& to, std::uint64_t offset,
                  Pending& pending) noexcept {
  const int code = post_write(held, connection, from, bytes, to, offset, nullptr, pending);
  if (code >= 0) leave_with_others();
  return code;
}

int Engine::write_with_data(Held& held, Connection& connection, const void* from, std::size_t bytes, const RemoteRegion& to, std::uint64_t offset,
                            std::uint32_t immediate, Pending& pending) noexcept {
  const int code = post_write(held, connection, from, bytes, to, offset, &immediate, pending);
  if (code >= 0) send_waiting(held);
  return code;
}

int Engine::confirm_writes(Held& held, Connection& connection, Pending& pending) noexcept {
  if (!capabilities().confirms) {
    // Groups before the last one have somebody who waits for them.
    if (!connection.groups || (connection.groups == connection.last_group && !connection.last_group->under_way)) return 1;
    connection.last_group->pending = &pending;
    ++pending.under_way;
    begin_group(connection);
    return 0;
  }
  if (!connection.unconfirmed && !connection.confirming) return 1;
  if (!is_reachable(held, connection)) return -EAGAIN;
  RegionPiece& piece = new_piece(connection);
  piece.confirms = true;
  const int code = posted(connection, &piece, context_->confirm(connection.address, piece), &pending);
  if (code < 0) return code;
  connection.unconfirmed = false;
  ++connection.confirming;
  leave_with_others();
  return code;
}

int Engine::read(Held& held, Connection& connection, void* to, std::size_t bytes, const RemoteRegion& from, std::uint64_t offset,
                 Pending& pending) noexcept {
  const wire::Capabilities& can = capabilities();
  if (!can.reads) return -ENOSYS;
  if (!is_inside(from, offset, bytes)) return -ERANGE;
  if (!bytes) return 1;
  if (bytes > can.largest_read) return -EMSGSIZE;
  if (!is_reachable(held, connection)) return -EAGAIN;
  RegionPiece& piece = new_piece(connection);
  void* descriptor = nullptr;
  if (!find_memory(piece, to, bytes, wire::Use::read_into, descriptor)) {
    recycle(piece);
    connection.stalled = true;
    return -EAGAIN;
  }
  auto* const at = const_cast<std::byte*>(piece.from);
  const int code =
      posted(connection, &piece, context_->read(connection.address, at, bytes, descriptor, from.base + offset, from.key, piece), &pending);
  if (code >= 0) leave_with_others();
  return code;
}

int Engine::update(Held& held, Connection& connection, wire::Atomic what, wire::AtomicType type, const void* operand, const void* compare,
                   void* before, const RemoteRegion& at, std::uint64_t offset, Pending& pending) noexcept {
  const std::size_t bytes = wire::size_of(type);
  if (!has_atomic(what, type, before)) return -ENOSYS;
  if (!is_inside(at, offset, bytes)) return -ERANGE;
  if (!is_reachable(held, connection)) return -EAGAIN;
  RegionPiece& piece = new_piece(connection);
  std::byte* const memory = piece.room;
  if (operand) std::memcpy(memory + operand_at, operand, bytes);
  if (compare) std::memcpy(memory + compare_at, compare, bytes);
  piece.to = before;
  piece.from = memory + before_at;
  piece.bytes = bytes;
  const bool fetches = before || what == wire::Atomic::compare_swap;
  const int code = posted(connection, &piece,
                          context_->atomic(connection.address, what, type, memory + operand_at, compare ? memory + compare_at : nullptr,
                                           fetches ? memory + before_at : nullptr, piece.descriptor, at.base + offset, at.key, piece),
                          &pending);
  if (code >= 0) leave_with_others();
  return code;
}

bool Engine::send_waiting(Held& held) noexcept {
  waiting_ = false;
  if (in_step_) return false;  // they leave at its end
  context_->flush();
  if (capabilities().keeps_messages) common_.host->leave_work(held);
  return true;
}

}  // namespace heddle::net
