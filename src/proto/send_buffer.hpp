// Buffered sends: the memory that users attach, and the messages that wait in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "proto/p2p.hpp"
#include "sync/intrusive.hpp"

namespace heddle {

/// Memory attached for MPI_Bsend to a process, a communicator or a session. \see MPI-5.0 §3.6
///
/// A message occupies a piece from MPI_Bsend until its send completes; the piece then goes back by itself, from the progress
/// engine. `mutex` guards everything and is never held while a VCI is taken (continuations take it holding one).
class SendBuffer {
 public:
  /// Attaches [base, base+size), or with MPI_BUFFER_AUTOMATIC memory that the library allocates message by message.
  int attach(void* base, MPI_Count size) noexcept;
  /// Waits until every message has left, then gives the memory back.
  int detach(void* base_address, MPI_Count* size) noexcept;
  void flush() noexcept;
  /// A request that completes when the messages now inside have left.
  Request* flush_later() noexcept;
  /// Copies a message in and starts its send.
  int send(const Leg& leg, Comm& comm) noexcept;
  [[nodiscard]] bool attached() noexcept;
  [[nodiscard]] bool busy() const noexcept { return inside_.load(std::memory_order_acquire) != 0; }

 private:
  struct Piece;
  struct Flush;
  Piece* reserve(std::size_t bytes) noexcept;
  void give_back(Piece& piece, VciGuard& guard) noexcept;

  std::mutex mutex_;
  bool attached_ = false, automatic_ = false;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
  Piece* first_ = nullptr;  ///< in order of address
  Flush* flushes_ = nullptr;
  std::uint64_t messages_ = 0;  ///< that came in so far
  std::atomic<int> inside_{0};
};

/// The buffer of `owner` (a session; nullptr: the process), or of a communicator; made on first use.
SendBuffer& send_buffer_of(const void* owner) noexcept;
SendBuffer& send_buffer_of(Comm& comm) noexcept;
/// The buffer that a buffered send on `comm` uses: the communicator's if one is attached, else its session's, else the process's.
SendBuffer& send_buffer_for(const Comm& comm) noexcept;
/// Forgets the buffer of an owner that goes away and whose user waits: the memory is the user's again on return.
void end_send_buffer(const void* owner) noexcept;
/// Whether messages are inside any buffer of this process.
bool has_buffered_sends() noexcept;

}  // namespace heddle
