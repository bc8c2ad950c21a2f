// Frames on their way out: gathering records, posting, what becomes of them.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "sys/log.hpp"
#include "transport/net/control.hpp"
#include "transport/net/engine.hpp"
#include "transport/net/frame.hpp"

namespace heddle::net {
namespace {

constexpr std::uint64_t frames_per_slab = 16;

constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 7) & ~std::size_t{7}; }

/// Control records are not subject to flow control.
bool is_counted(RecordKind kind) noexcept { return kind.module != Control::module; }

}  // namespace

Engine::Engine(Common& common, VciIndex vci, std::unique_ptr<wire::Context> context) noexcept
    : common_(common), vci_(vci), context_(std::move(context)) {}

Engine::~Engine() {
  for (Slab& slab : slabs_) context_->deregister(slab.registration);
  for (auto& pieces : region_pieces_) context_->deregister(pieces.second);
  context_.reset();
  for (Slab& slab : slabs_) {
    std::free(slab.memory);
    delete[] slab.frames;
  }
  while (ReadPiece* piece = free_pieces_) {
    free_pieces_ = piece->next;
    delete piece;
  }
  for (const auto& entry : connections_)
    for (WriteGroup* group = entry.second->groups; group;) delete std::exchange(group, group->next);
  while (WriteGroup* group = free_groups_) {
    free_groups_ = group->next;
    delete group;
  }
}

Frame* Engine::new_frame() noexcept {
  if (!free_frames_) {
    const std::size_t each = (common_.frame_bytes + 63) & ~std::size_t{63};
    Slab slab{};
    slab.memory = static_cast<std::byte*>(std::aligned_alloc(4096, (each * frames_per_slab + 4095) & ~std::size_t{4095}));
    slab.frames = new (std::nothrow) Frame[frames_per_slab];
    if (!slab.memory || !slab.frames) sys::fatal("no memory for messages to the network");
    if (capabilities().registers_local && !register_memory(slab.memory, each * frames_per_slab, wire::Use::at_this_end, slab.registration))
      sys::fatal("the network refuses to register memory: the limit of locked memory (`ulimit -l`) is too low");
    for (std::uint64_t i = 0; i < frames_per_slab; ++i) {
      Frame& frame = slab.frames[i];
      frame.done = sent;
      frame.data = slab.memory + i * each;
      frame.descriptor = slab.registration.descriptor;
      recycle(frame);
    }
    slabs_.push_back(slab);
  }
  Frame* frame = free_frames_;
  free_frames_ = frame->next;
  frame->next = nullptr;
  frame->waiting = frame->completion = nullptr;
  frame->body = nullptr;
  frame->body_bytes = 0;
  frame->bytes = sizeof(FrameHead);
  return frame;
}

void Engine::recycle(Frame& frame) noexcept {
  frame.next = free_frames_;
  free_frames_ = &frame;
}

int Engine::post(Connection& connection, Frame& frame) noexcept {
  if (!frame.body) return context_->send(connection.address, frame.data, frame.bytes, frame.descriptor, frame);
  static std::byte padding[8] = {};
  const iovec parts[3] = {{frame.data, frame.bytes},
                          {const_cast<std::byte*>(frame.body), frame.body_bytes},
                          {padding, padded(frame.body_bytes) - frame.body_bytes}};
  return context_->send_parts(connection.address, parts, parts[2].iov_len ? 3 : 2, frame);
}

/// Ends the filling of the open frame.
void Engine::close_frame(Held& held, Connection& connection) noexcept {
  Frame* frame = connection.open;
  if (!frame) return;
  connection.open = nullptr;
  const FrameHead head{common_.key, common_.self.rank, connection.next_sequence++, frame->bytes + static_cast<std::uint32_t>(padded(frame->body_bytes)),
                       vci_, frame_version, 0};
  std::memcpy(frame->data, &head, sizeof head);
  if (connection.tail) connection.tail->next = frame; else connection.head = frame;
  connection.tail = frame;
  for (Completion* waiting = std::exchange(frame->waiting, nullptr); waiting;) {
    Completion* following = waiting->next;
    waiting->done(*waiting, held, 0);
    waiting = following;
  }
}

void Engine::mark_dirty(Connection& connection) noexcept {
  if (connection.dirty) return;
  connection.dirty = true;
  dirty_.push_back(&connection);
}

std::byte* Engine::append(Held& held, Connection& connection, const RecordHead& head, std::size_t payload) noexcept {
  if (connection.greet) [[unlikely]] greet(held, connection);
  const std::size_t room = record_room(payload);
  if (connection.open && connection.open->bytes + room > common_.frame_bytes) {
    close_frame(held, connection);
    flush(held, connection);
  }
  if (!connection.open) connection.open = new_frame();
  Frame& frame = *connection.open;
  frame.connection = &connection;
  std::byte* at = frame.data + frame.bytes;
  Record* record = record_at(at);
  set_head(*record, head, payload);
  frame.bytes += static_cast<std::uint32_t>(room);
  if (is_counted(head.kind)) {
    connection.sent += room;
    connection.peer_closing = connection.said_closing = connection.heard_farewell = false;  // it may be in another session by now
  }
  if (payload % 8) std::memset(at + room - 8, 0, 8);  // the padding, or what was there before would leave the process
  return record->payload;
}

/// For a peer that has left. What it was sent since was not for it.
void Engine::drop_frames(Held& held, Connection& connection) noexcept {
  while (Frame* frame = connection.head) {
    connection.head = frame->next;
    if (frame->completion) frame->completion->done(*frame->completion, held, ECONNRESET);
    recycle(*frame);
  }
  connection.tail = nullptr;
}

bool Engine::flush(Held& held, Connection& connection) noexcept {
  close_frame(held, connection);
  bool posted = false;
  if (connection.gone) [[unlikely]] return drop_frames(held, connection), false;
  while (Frame* frame = connection.head) {
    if (connection.address == wire::no_address) return posted;  // `here` flushes again
    Frame* const following = frame->next;
    const int code = post(connection, *frame);
    if (code == -EAGAIN) {
      mark_dirty(connection);
      return posted;
    }
    if (code < 0 && !may_fail(connection, -code)) lost(connection, "sending", code);
    if (code < 0) {
      connection.gone = true;
      drop_frames(held, connection);
      return posted;
    }
    connection.head = following;
    if (!following) connection.tail = nullptr;
    frame->next = nullptr;
    posted = true;
    if (code == 1) {
      if (frame->completion) frame->completion->done(*frame->completion, held, 0);
      recycle(*frame);
    } else {
      ++connection.posted;
      ++under_way_;
      // Whoever sleeps at the network did not know, and this thread may compute from now on.
      if (!in_step_ && capabilities().keeps_messages) common_.host->leave_work(held);
    }
  }
  return posted;
}

void Engine::sent(wire::Operation& operation, const wire::Event& event, Held& held) noexcept {
  auto& frame = static_cast<Frame&>(operation);
  Connection& connection = *frame.connection;
  Engine& self = *connection.engine;
  --connection.posted;
  --self.under_way_;
  if (event.error && !self.may_fail(connection, event.error)) self.lost(connection, "sending", event.error);
  if (frame.completion) frame.completion->done(*frame.completion, held, event.error);
  self.recycle(frame);
}

// Coalescing: the first message after this VCI's last progress step is sent at once. Those that follow wait for more, until the next step
// (every wait, test and probe makes one), the frame is full, or the helper comes by.
bool Engine::send_appended(Held& held, Connection& connection) noexcept {
  if (leaves_at_once(connection)) {
    connection.epoch = epoch_;
    flush(held, connection);
    return true;
  }
  mark_dirty(connection);
  if (!in_step_ && !has_gathered()) {
    gathered_.store(true, std::memory_order_relaxed);
    common_.wake_helper();
  }
  return false;
}

void Engine::send_appended(Held& held, Connection& connection, Completion& completion) noexcept {
  if (send_appended(held, connection) || !connection.open) return completion.done(completion, held, 0);
  completion.next = connection.open->waiting;
  connection.open->waiting = &completion;
}

bool Engine::try_send(Held& held, Connection& connection, const RecordHead& head, const void* bytes, std::size_t n) noexcept {
  if (n > common_.copy_limit || n > common_.eager || !has_credit(connection) || !leaves_at_once(connection)) return false;
  std::byte* const at = append(held, connection, head, n);
  if (n) std::memcpy(at, bytes, n);
  return send_appended(held, connection);
}

void Engine::push(Held& held, Connection& connection, const RecordHead& head, const void* payload, std::uint32_t bytes) noexcept {
  std::byte* const to = append(held, connection, head, bytes);
  if (bytes) std::memcpy(to, payload, bytes);
  send_appended(held, connection);
}

void Engine::send_uncopied(Held& held, Connection& connection, const RecordHead& head, const void* first, std::size_t first_bytes,
                           const void* body, std::size_t body_bytes, Completion* completion) noexcept {
  close_frame(held, connection);
  std::byte* to = append(held, connection, head, first_bytes);
  if (first_bytes) std::memcpy(to, first, first_bytes);
  reinterpret_cast<Record*>(to - Record::head_bytes)->bytes = static_cast<std::uint32_t>(first_bytes + body_bytes);
  connection.open->body = static_cast<const std::byte*>(body);
  connection.open->body_bytes = body_bytes;
  connection.open->completion = completion;
  connection.sent += padded(body_bytes);
  flush(held, connection);
}

std::size_t Engine::largest_payload() const noexcept { return (common_.frame_bytes - sizeof(FrameHead) - record_room(0)) & ~std::size_t{7}; }

bool Engine::flush(Held& held) noexcept {
  bool any = waiting_ && send_waiting(held);
  if (dirty_.empty()) {
    if (any) gathered_.store(false, std::memory_order_relaxed);
    return any;
  }
  std::vector<Connection*> connections;
  connections.swap(dirty_);
  for (Connection* connection : connections) {
    connection->dirty = false;
    any |= flush(held, *connection);
  }
  gathered_.store(false, std::memory_order_relaxed);
  if (dirty_.empty()) {  // keep the memory
    connections.clear();
    dirty_.swap(connections);
  }
  return any;
}

}  // namespace heddle::net
