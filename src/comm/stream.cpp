#include "comm/stream.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <new>

#include "coll/internal.hpp"
#include "coll/steps.hpp"
#include "comm/create.hpp"
#include "comm/routing.hpp"
#include "sys/error.hpp"
#include "vci/vci.hpp"

namespace heddle {
namespace {

std::mutex lanes_mutex;
int streams_on[64] = {};  ///< by VCI; guarded by lanes_mutex

int out_of_memory() noexcept { return error(MPI_ERR_NO_MEM, "no memory for a communicator with streams"); }

std::uint32_t this_thread() noexcept {
  static thread_local const auto number = static_cast<std::uint32_t>(syscall(SYS_gettid));
  return number;
}

void release_stream(Stream* stream) noexcept {
  if (!stream->release()) return;
  {
    const std::lock_guard lock(lanes_mutex);
    --streams_on[number(stream->lane)];
  }
  pool<Stream>().destroy(stream);
}

void release_table(StreamTable* table) noexcept {
  if (table->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete table;
}

ContextId context_of_place(const StreamTable& table, ContextId context, int place) noexcept {
  return context + 2 * std::uint64_t{table.step} * unsigned(place);
}

/// Makes messages on `comm` go to the streams that the ranks have at place `place`; without one, to where the table's context says: the
/// same for a communicator, its duplicates and their pairs.
int route_to_place(Comm& comm, const StreamTable& table, int place) noexcept {
  std::unique_ptr<Lane[]> lanes(new (std::nothrow) Lane[std::size_t(comm.size)]);
  if (!lanes) return out_of_memory();
  for (int r = 0; r < comm.size; ++r) {
    const Lane given = table.lanes[std::size_t(r) * std::size_t(table.most) + std::size_t(place)];
    lanes[r] = given != no_lane ? given : comm.group->address(r, context_of_place(table, table.context, place)).lane;
  }
  return set_lanes(comm, std::move(lanes));
}

bool attach(Comm& comm, StreamTable* table) noexcept {
  const std::size_t pairs = std::size_t(table->count) * std::size_t(table->most);
  auto* streams = new (std::nothrow) CommStreams(table);
  if (streams) streams->pairs.reset(new (std::nothrow) std::atomic<Comm*>[pairs]());
  if (!streams || !streams->pairs) {
    if (streams) delete streams;  // with its reference to the table
    else release_table(table);
    return false;
  }
  comm.streams = streams;
  comm.stream_width = table->width();
  comm.kind.store(Kind::stream_comm, std::memory_order_release);
  return true;
}

Comm* make_pair(Comm& comm, int here, int there) noexcept {
  const StreamTable& table = *streams_of(comm)->table;
  Comm* pair = make_comm(context_of_place(table, comm.context, there), retain_group(comm.group), comm.rank);
  if (!pair) return nullptr;
  if (route_to_place(*pair, table, there)) return release_comm(pair), nullptr;
  if (const Stream* stream = table.own[std::size_t(here)]) pair->lane = stream->lane;
  pair->stands_for = &comm;
  return pair;
}

}  // namespace

Stream* create_stream() noexcept {
  Stream* stream = pool<Stream>().create();
  if (!stream) return nullptr;
  // The VCI with the fewest; of those the last, for communicators begin with the first.
  const std::lock_guard lock(lanes_mutex);
  const auto vcis = static_cast<int>(configured_vcis());
  int best = vcis - 1;
  for (int i = vcis - 2; i >= 0; --i)
    if (streams_on[i] < streams_on[best]) best = i;
  ++streams_on[best];
  stream->lane = lane_to(vci_at(static_cast<unsigned>(best)));
  return stream;
}

int free_stream(Stream& stream) noexcept {
  if (const int users = stream.attached.load(std::memory_order_acquire))
    return error(MPI_ERR_PENDING, "the stream is still that of %d communicator%s; free %s first", users, users == 1 ? "" : "s",
                 users == 1 ? "it" : "them");
  StreamUse use;
  if (const int code = use.enter(&stream, "MPIX_Stream_free")) return code;
  release_stream(&stream);  // the last reference: no communicator has it
  return MPI_SUCCESS;
}

StreamTable::~StreamTable() {
  for (int i = 0; own && i < count; ++i)
    if (Stream* stream = own[std::size_t(i)]) stream->attached.fetch_sub(1, std::memory_order_release);
}

CommStreams::CommStreams(StreamTable* t) noexcept
    : CommExtension{[](CommExtension& streams, Comm&) noexcept { delete static_cast<CommStreams*>(&streams); }}, table(t) {}

CommStreams::~CommStreams() {
  const std::size_t n = pairs ? std::size_t(table->count) * std::size_t(table->most) : 0;
  for (std::size_t i = 0; i < n; ++i)
    if (Comm* pair = pairs[i].load(std::memory_order_acquire)) release_comm(pair);
  release_table(table);
}

int create_stream_comm(Comm& parent, int count, Stream* const* streams, Comm** out) noexcept {
  *out = nullptr;
  if (parent.inter) return error(MPI_ERR_COMM, "streams are given to an intracommunicator");
  const auto n = std::size_t(parent.size);
  Stream* const none = nullptr;
  if (count == 0) count = 1, streams = &none;
  std::unique_ptr<StreamTable> table(new (std::nothrow) StreamTable);
  if (!table) return out_of_memory();
  table->counts.reset(new (std::nothrow) int[n]);
  Datatype& bytes = coll::byte_type();
  if (!table->counts) return out_of_memory();
  if (const int code = coll::allgather(&count, sizeof count, bytes, table->counts.get(), sizeof count, bytes, parent)) return code;
  for (int r = 0; r < parent.size; ++r)
    if (table->counts[std::size_t(r)] > table->most) table->most = table->counts[std::size_t(r)];
  const auto most = std::size_t(table->most);
  const std::unique_ptr<Lane[]> own(new (std::nothrow) Lane[most]);
  table->lanes.reset(new (std::nothrow) Lane[n * most]);
  if (!own || !table->lanes) return out_of_memory();
  for (std::size_t i = 0; i < most; ++i) own[i] = i < std::size_t(count) && streams[i] ? streams[i]->lane : no_lane;
  const MPI_Count size = static_cast<MPI_Count>(most * sizeof(Lane));
  if (const int code = coll::allgather(own.get(), size, bytes, table->lanes.get(), size, bytes, parent)) return code;
  table->step = parent.width();
  ContextId id = parent.rank == 0 ? new_context_id(table->width()) : 0;
  if (const int code = coll::bcast(&id, sizeof id, bytes, 0, parent)) return code;
  if (!id) return out_of_contexts();
  table->context = id;

  table->own.reset(new (std::nothrow) Stream*[std::size_t(count)]());
  if (!table->own) return out_of_memory();
  table->count = count;
  for (int i = 0; i < count; ++i) {
    table->own[std::size_t(i)] = streams[i];
    if (streams[i]) streams[i]->attached.fetch_add(1, std::memory_order_relaxed);
  }
  Comm* made = nullptr;
  if (const int code = make_child(parent, id, retain_group(parent.group), &made)) return code;
  int code = route_to_place(*made, *table, 0);
  if (!code && !attach(*made, table.release())) code = out_of_memory();
  if (code) release_comm(made);
  else *out = made;
  return code;
}

bool copy_streams(Comm& twin, const Comm& parent) noexcept {
  StreamTable* table = streams_of(parent)->table;
  if (route_to_place(twin, *table, 0)) return false;
  table->references.fetch_add(1, std::memory_order_relaxed);
  return attach(twin, table);
}

int stream_pair(Comm& comm, int here, int there, int peer, Comm** pair) noexcept {
  if (!comm.streams)
    return error(MPI_ERR_COMM, "the communicator has no streams; pass one made by MPIX_Stream_comm_create_multiplex");
  const StreamTable& table = *streams_of(comm)->table;
  if (here < 0 || here >= table.count)
    return error(MPI_ERR_ARG, "stream %d is none of this rank's %d streams in the communicator", here, table.count);
  const int theirs = peer >= 0 ? table.counts[std::size_t(peer)] : table.most;
  if (there < 0 || there >= theirs)
    return error(MPI_ERR_ARG, "stream %d is none of the %d streams of rank %d in the communicator", there, theirs, peer);
  std::atomic<Comm*>& slot = streams_of(comm)->pairs[std::size_t(here) * std::size_t(table.most) + std::size_t(there)];
  *pair = slot.load(std::memory_order_acquire);  // pairs with the release of whoever made it
  if (*pair) return MPI_SUCCESS;
  Comm* made = make_pair(comm, here, there);
  if (!made) return out_of_memory();
  if (!slot.compare_exchange_strong(*pair, made, std::memory_order_acq_rel, std::memory_order_acquire)) release_comm(made);
  else *pair = made;
  return MPI_SUCCESS;
}

int StreamUse::enter(Stream* stream, const char* function) noexcept {
  if (!stream) return MPI_SUCCESS;
  const std::uint32_t self = this_thread();
  std::uint32_t user = 0;
  // Acquire pairs with `leave`: what the last user did is seen.
  if (stream->user.compare_exchange_strong(user, self, std::memory_order_acquire, std::memory_order_relaxed)) {
    stream->doing.store(function, std::memory_order_relaxed);
    stream_ = stream;
    return MPI_SUCCESS;
  }
  if (user == self) return MPI_SUCCESS;
  const char* doing = stream->doing.load(std::memory_order_relaxed);
  return error(MPI_ERR_OTHER, "the stream is in use by thread %u of this process (%s); a stream serves one thread at a time", user,
               doing ? doing : "between calls");
}

int StreamUse::enter(const Comm& comm, const char* function) noexcept {
  return comm.streams ? enter(streams_of(comm)->table->own[0], function) : MPI_SUCCESS;
}

void StreamUse::leave() noexcept { stream_->user.store(0, std::memory_order_release); }

}  // namespace heddle
