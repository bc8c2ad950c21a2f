#include "proto/send_buffer.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <unordered_map>
#include <vector>

#include "sys/error.hpp"
#include "sys/log.hpp"
#include "vci/wait.hpp"

namespace heddle {

/// A message inside: the continuation of its send gives it back.
struct SendBuffer::Piece : Continuation {
  SendBuffer* owner;
  std::byte* memory;
  std::size_t bytes;
  std::uint64_t number;  ///< of the message, in the order in which they came
  Piece *prev = nullptr, *next = nullptr;
};

/// A flush under way: it waits for the messages that came before it, so a later one neither delays nor ends it.
struct SendBuffer::Flush {
  Request* request;
  std::uint64_t last;  ///< number of the newest message that it waits for
  int waits_for;       ///< how many up to that one are still inside
  Flush* next;
};

int SendBuffer::attach(void* base, MPI_Count size) noexcept {
  std::lock_guard lock(mutex_);
  if (attached_) return error(MPI_ERR_BUFFER, "a buffer is attached already; detach it first (there is one per process, communicator and session)");
  if (size < 0) return error(MPI_ERR_ARG, "the size of the buffer is negative: %lld", static_cast<long long>(size));
  automatic_ = base == MPI_BUFFER_AUTOMATIC;
  if (!base && size > 0) return error(MPI_ERR_BUFFER, "the buffer is null");
  base_ = static_cast<std::byte*>(base);
  size_ = static_cast<std::size_t>(size);
  attached_ = true;
  return MPI_SUCCESS;
}

bool SendBuffer::attached() noexcept {
  std::lock_guard lock(mutex_);
  return attached_;
}

void SendBuffer::flush() noexcept {
  wait_until(nullptr, [this] { return inside_.load(std::memory_order_acquire) == 0; });
}

int SendBuffer::detach(void* base_address, MPI_Count* size) noexcept {
  std::unique_lock lock(mutex_);
  while (busy()) {  // again, when another thread put a message in meanwhile
    lock.unlock();
    flush();
    lock.lock();
  }
  if (!attached_) return error(MPI_ERR_BUFFER, "no buffer is attached");
  void* base = base_;
  std::memcpy(base_address, &base, sizeof base);
  *size = automatic_ ? 0 : static_cast<MPI_Count>(size_);
  attached_ = automatic_ = false;
  base_ = nullptr;
  size_ = 0;
  return MPI_SUCCESS;
}

Request* SendBuffer::flush_later() noexcept {
  return submit(vci_of_lane(Lane{}), [&](VciGuard& guard) {
    Request* request = new_request(guard.vci(), Request::Type::collective, nullptr);
    std::lock_guard lock(mutex_);
    const int inside = inside_.load(std::memory_order_relaxed);
    auto* flush = inside ? new (std::nothrow) Flush{request, messages_, inside, flushes_} : nullptr;
    if (flush) flushes_ = flush;
    else if (inside) sys::fatal("no memory for a flush of the send buffer");
    else complete(*request, guard);
    return request;
  });
}

SendBuffer::Piece* SendBuffer::reserve(std::size_t bytes) noexcept {
  std::unique_ptr<Piece> piece(new (std::nothrow) Piece{});
  if (!piece) return nullptr;
  piece->owner = this;
  piece->bytes = bytes;
  piece->run = [](Continuation& self, Request& done, VciGuard& guard) {
    auto& mine = static_cast<Piece&>(self);
    free_request(&done, guard);
    mine.owner->give_back(mine, guard);
  };
  std::lock_guard lock(mutex_);
  if (!attached_) return nullptr;
  if (automatic_) {
    piece->memory = static_cast<std::byte*>(std::malloc(bytes + 1));
    if (!piece->memory) return nullptr;
    piece->number = ++messages_;
    inside_.fetch_add(1, std::memory_order_relaxed);
    return piece.release();
  }
  // First fit between the pieces in use; there are as many as messages under way.
  std::byte* at = base_;
  Piece *before = nullptr, *after = first_;
  while (after && static_cast<std::size_t>(after->memory - at) < bytes) {
    at = after->memory + after->bytes;
    before = after;
    after = after->next;
  }
  if (!after && static_cast<std::size_t>(base_ + size_ - at) < bytes) return nullptr;
  piece->memory = at;
  piece->prev = before;
  piece->next = after;
  (before ? before->next : first_) = piece.get();
  if (after) after->prev = piece.get();
  piece->number = ++messages_;
  inside_.fetch_add(1, std::memory_order_relaxed);
  return piece.release();
}

void SendBuffer::give_back(Piece& piece, VciGuard& guard) noexcept {
  {
    std::lock_guard lock(mutex_);
    if (automatic_) {
      std::free(piece.memory);
    } else {
      (piece.prev ? piece.prev->next : first_) = piece.next;
      if (piece.next) piece.next->prev = piece.prev;
    }
    for (Flush** link = &flushes_; *link;) {
      Flush* flush = *link;
      if (piece.number > flush->last || --flush->waits_for) {
        link = &flush->next;
        continue;
      }
      *link = flush->next;
      if (flush->request->vci == &guard.vci()) complete(*flush->request, guard);
      else complete_elsewhere(*flush->request);
      delete flush;
    }
    inside_.fetch_sub(1, std::memory_order_release);  // pairs with the acquire in flush
  }
  delete &piece;
  wake_all_sleepers();
}

int SendBuffer::send(const Leg& leg, Comm& comm) noexcept {
  if (leg.peer == MPI_PROC_NULL) return MPI_SUCCESS;
  const std::size_t bytes = leg.buffer.bytes();
  Piece* piece = reserve(bytes);
  for (int tries = 0; !piece && tries < 3; ++tries) {  // messages may have left and only wait to be seen
    progress_all();
    piece = reserve(bytes);
  }
  if (!piece && !attached())
    return error(MPI_ERR_BUFFER, "a buffered send of %zu bytes to rank %d, but no buffer is attached; attach one (MPI_Buffer_attach), or "
                 "MPI_BUFFER_AUTOMATIC", bytes, leg.peer);
  if (!piece)
    return error(MPI_ERR_BUFFER, "a buffered send of %zu bytes to rank %d does not fit: the attached buffer has %zu bytes, and %d messages are inside; "
                 "attach a larger one (MPI_Buffer_attach, MPI_BSEND_OVERHEAD for each message), or MPI_BUFFER_AUTOMATIC",
                 bytes, leg.peer, size_, inside_.load(std::memory_order_relaxed));
  leg.buffer.pack(0, piece->memory, bytes);
  return submit(vci_of_lane(comm.send_lane(leg.tag)), [&](VciGuard& guard) {
    const Buffer packed(piece->memory, static_cast<MPI_Count>(bytes), *resolve<Datatype>(MPI_PACKED));
    Request* started = isend(guard, packed, leg.peer, leg.tag, comm, Space::user);
    if (!started->is_done()) {
      started->then(*piece);
      return MPI_SUCCESS;
    }
    const int code = started->error;
    free_request(started, guard);
    give_back(*piece, guard);
    return code;
  });
}

namespace {

std::mutex table_mutex;
std::atomic<int> owned{0};  ///< buffers of communicators and sessions; usually none

auto& table() noexcept {
  static auto& map = *new std::unordered_map<const void*, std::unique_ptr<SendBuffer>>;
  return map;
}

/// Buffers of owners that went away with messages inside: they stay.
auto& orphans() noexcept {
  static auto& list = *new std::vector<std::unique_ptr<SendBuffer>>;
  return list;
}

SendBuffer& process_buffer() noexcept {
  static SendBuffer& buffer = *new SendBuffer;
  return buffer;
}

/// Forgets the buffer of an owner that goes away.
void drop_buffer(const void* owner) noexcept {
  if (!owned.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(table_mutex);
  const auto found = table().find(owner);
  if (found == table().end()) return;
  // Messages still inside point to it: it outlives its owner then, and we may be in the progress engine and must not wait.
  if (found->second->busy()) orphans().push_back(std::move(found->second));
  table().erase(found);
  owned.fetch_sub(1, std::memory_order_relaxed);
}

/// With a communicator that had a buffer, the buffer goes.
CommExtension with_comm{[](CommExtension&, Comm& comm) noexcept { drop_buffer(&comm); }};

}  // namespace

SendBuffer& send_buffer_of(const void* owner) noexcept {
  if (!owner) return process_buffer();
  std::lock_guard lock(table_mutex);
  auto& slot = table()[owner];
  if (!slot) {
    slot = std::make_unique<SendBuffer>();
    owned.fetch_add(1, std::memory_order_relaxed);
  }
  return *slot;
}

SendBuffer& send_buffer_of(Comm& comm) noexcept {
  comm.send_buffer.store(&with_comm, std::memory_order_relaxed);  // whoever ends the communicator does so after all use of it
  return send_buffer_of(static_cast<const void*>(&comm));
}

SendBuffer& send_buffer_for(const Comm& comm) noexcept {
  if (owned.load(std::memory_order_relaxed)) {
    std::lock_guard lock(table_mutex);
    for (const void* owner : {static_cast<const void*>(&comm), static_cast<const void*>(comm.session)}) {
      const auto found = owner ? table().find(owner) : table().end();
      if (found != table().end() && found->second->attached()) return *found->second;
    }
  }
  return send_buffer_of(nullptr);
}

void end_send_buffer(const void* owner) noexcept {
  if (!owned.load(std::memory_order_relaxed)) return;
  send_buffer_of(owner).flush();
  drop_buffer(owner);
}

bool has_buffered_sends() noexcept {
  std::lock_guard lock(table_mutex);
  const auto busy = [](const std::unique_ptr<SendBuffer>& buffer) { return buffer->busy(); };
  return process_buffer().busy() || std::any_of(orphans().begin(), orphans().end(), busy) ||
         std::any_of(table().begin(), table().end(), [&](const auto& entry) { return busy(entry.second); });
}

}  // namespace heddle
