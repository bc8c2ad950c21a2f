// Streams: VCIs that the program hands to one thread at a time, and the communicators that use them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <mpix.h>

#include "core/comm.hpp"

namespace heddle {

/// A lane of this process and who is using it. Reference counted: by its user's handle and by communicators.
struct Stream : Object {
  static constexpr Kind object_kind = Kind::stream;

  Lane lane{};
  std::atomic<int> attached{0};                  ///< communicators that have it
  std::atomic<std::uint32_t> user{0};            ///< the kernel's number of the thread inside a call; 0: none
  std::atomic<const char*> doing{nullptr};       ///< which call that is: for others' errors

  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return 0; }
};

template <>
struct HandleTraits<Stream> {
  using handle = MPIX_Stream;
  static Stream* builtin(std::uintptr_t) noexcept { return nullptr; }
};

Stream* create_stream() noexcept;             ///< nullptr: no memory
int free_stream(Stream& stream) noexcept;

/// Everybody's streams in a communicator. Immutable; shared by its duplicates.
struct StreamTable {
  std::atomic<int> references{1};
  int count = 1;                                 ///< of this rank
  int most = 1;                                  ///< of any rank
  std::unique_ptr<Stream*[]> own;                ///< by place, references; nullptr: none
  std::unique_ptr<int[]> counts;                 ///< by rank
  std::unique_ptr<Lane[]> lanes;        ///< by rank, then by place: `most` for each
  std::uint32_t step = 1;                        ///< message spaces of each place
  ContextId context = 0;                         ///< of the first communicator that has it: where ranks without a stream receive follows from it

  StreamTable() = default;
  [[nodiscard]] std::uint32_t width() const noexcept { return step * static_cast<std::uint32_t>(most); }

  StreamTable(const StreamTable&) = delete;
  StreamTable& operator=(const StreamTable&) = delete;
  ~StreamTable();
};

/// What a stream communicator has beside other communicators.
///
/// Messages to a stream at place k travel in message spaces of their own, so that matching needs no further key. A pair (place here,
/// place there) is a `Comm` like any other, made when first used: space and lanes of the one, home VCI of the other.
struct CommStreams : CommExtension {
  StreamTable* table;
  std::unique_ptr<std::atomic<Comm*>[]> pairs;   ///< count * most; owned

  explicit CommStreams(StreamTable* t) noexcept;
  CommStreams(const CommStreams&) = delete;
  CommStreams& operator=(const CommStreams&) = delete;
  ~CommStreams();
};

/// The streams of a communicator; nullptr: none.
inline CommStreams* streams_of(const Comm& comm) noexcept { return static_cast<CommStreams*>(comm.streams); }

/// MPIX_Stream_comm_create_multiplex. Collective over `parent`.
int create_stream_comm(Comm& parent, int count, Stream* const* streams, Comm** out) noexcept;
/// Makes `twin`, a copy of `parent` but for this, a stream communicator as `parent` is. False: no memory.
bool copy_streams(Comm& twin, const Comm& parent) noexcept;

/// The communicator for messages between the streams at places `here` and `there`. An error code: no such place, no memory.
/// `peer` may be MPI_PROC_NULL or MPI_ANY_SOURCE.
int stream_pair(Comm& comm, int here, int there, int peer, Comm** pair) noexcept;

/// The communicator behind a handle of one with streams, or nullptr. (`resolve<Comm>` does not find it, so that other communicators'
/// fast paths need not ask.)
inline Comm* stream_comm(MPI_Comm handle) noexcept {
  if (reinterpret_cast<std::uintptr_t>(handle) < first_user_handle) return nullptr;
  Comm* comm = reinterpret_cast<Comm*>(handle);
  return comm->is(Kind::stream_comm) ? comm : nullptr;
}

/// A thread's use of a stream, for the time of one call.
class StreamUse {
 public:
  StreamUse() noexcept = default;
  StreamUse(const StreamUse&) = delete;
  StreamUse& operator=(const StreamUse&) = delete;
  ~StreamUse() {
    if (stream_) [[unlikely]] leave();
  }
  /// Fails when another thread is inside a call. A call within a call of the same thread (callbacks) is none of its own. `stream` may
  /// be null. `function`: which outlives the use.
  int enter(Stream* stream, const char* function) noexcept;
  /// The same for what a communicator uses when no place is named.
  int enter(const Comm& comm, const char* function) noexcept;

 private:
  void leave() noexcept;
  Stream* stream_ = nullptr;
};

}  // namespace heddle
