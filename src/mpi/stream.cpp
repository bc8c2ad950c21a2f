// Streams: functions of mpix.h.
#include "comm/stream.hpp"

#include <memory>
#include <new>

#include "comm/create.hpp"
#include "core/info.hpp"
#include "generated/impl.hpp"
#include "mpi/check.hpp"
#include "proto/p2p.hpp"
#include "vci/poll.hpp"

namespace heddle::mpi {
namespace {

/// The communicator of two streams, and the use of the own one.
int choose(Comm& comm, int here, int there, int peer, const char* function, StreamUse& use, Comm** pair) noexcept {
  if (const int code = stream_pair(comm, here, there, peer, pair)) return code;
  return use.enter(streams_of(comm)->table->own[static_cast<std::size_t>(here)], function);
}

/// The same for a receive, whose source's stream is only looked at.
int choose_receive(Comm& comm, int theirs, int here, int source, const char* function, StreamUse& use, Comm** pair) noexcept {
  if (theirs != MPIX_ANY_INDEX && comm.streams) {
    const StreamTable& table = *streams_of(comm)->table;
    const int count = source >= 0 ? table.counts[static_cast<std::size_t>(source)] : table.most;
    if (theirs < 0 || theirs >= count)
      return error(MPI_ERR_ARG, "argument source_stream_index is %d; use 0 to %d or MPIX_ANY_INDEX", theirs, count - 1);
  }
  return choose(comm, here, here, MPI_ANY_SOURCE, function, use, pair);
}

}  // namespace

int Stream_create(Info* info, MPIX_Stream* stream) {
  if (info) {
    if (std::string type; info->find("type", &type))
      return error(MPI_ERR_ARG, "streams of the type \"%s\" are not supported; leave the hint \"type\" away", type.c_str());
  }
  Stream* made = create_stream();
  if (!made) return error(MPI_ERR_NO_MEM, "no memory for a stream");
  *stream = to_handle(made);
  return MPI_SUCCESS;
}

int Stream_free(MPIX_Stream* handle) {
  Stream* stream = resolve<Stream>(*handle);
  if (!stream) return check::bad_stream(*handle, "stream");
  if (const int code = free_stream(*stream)) return code;
  *handle = MPIX_STREAM_NULL;
  return MPI_SUCCESS;
}

int Stream_comm_create(Comm& comm, Stream* stream, MPI_Comm* newcomm) {
  Comm* made = nullptr;
  if (const int code = create_stream_comm(comm, 1, &stream, &made)) return code;
  *newcomm = give_comm(*made);
  return MPI_SUCCESS;
}

int Stream_comm_create_multiplex(Comm& comm, int count, const MPIX_Stream handles[], MPI_Comm* newcomm) {
  const std::unique_ptr<Stream*[]> streams(new (std::nothrow) Stream*[static_cast<std::size_t>(count) + 1]);
  if (!streams) return error(MPI_ERR_NO_MEM, "no memory for %d streams", count);
  for (int i = 0; i < count; ++i) {
    streams[static_cast<std::size_t>(i)] = resolve<Stream>(handles[i]);
    if (!streams[static_cast<std::size_t>(i)] && handles[i] != MPIX_STREAM_NULL) return check::bad_stream(handles[i], "array_of_streams");
  }
  Comm* made = nullptr;
  if (const int code = create_stream_comm(comm, count, streams.get(), &made)) return code;
  *newcomm = give_comm(*made);
  return MPI_SUCCESS;
}

int Comm_get_stream(Comm& comm, int idx, MPIX_Stream* stream) {
  const int count = comm.streams ? streams_of(comm)->table->count : 1;
  if (idx < 0 || idx >= count) return error(MPI_ERR_ARG, "argument idx is %d; use 0 to %d", idx, count - 1);
  Stream* found = comm.streams ? streams_of(comm)->table->own[static_cast<std::size_t>(idx)] : nullptr;
  *stream = found ? to_handle(found) : MPIX_STREAM_NULL;
  return MPI_SUCCESS;
}

int Stream_progress(Stream* stream) {
  if (!stream) {
    progress_all();
    return MPI_SUCCESS;
  }
  StreamUse use;
  if (const int code = use.enter(stream, "MPIX_Stream_progress")) return code;
  poll(vci_of_lane(stream->lane));
  return MPI_SUCCESS;
}

int Stream_send(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm, int from, int to) {
  StreamUse use;
  Comm* pair = nullptr;
  if (const int code = choose(comm, from, to, dest, "MPIX_Stream_send", use, &pair)) return code;
  return wait(isend({buf, count, datatype}, dest, tag, *pair));
}

int Stream_isend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm, int from, int to,
                 MPI_Request* request) {
  StreamUse use;
  Comm* pair = nullptr;
  if (const int code = choose(comm, from, to, dest, "MPIX_Stream_isend", use, &pair)) return code;
  *request = to_handle(isend({buf, count, datatype}, dest, tag, *pair));
  return MPI_SUCCESS;
}

int Stream_recv(void* buf, MPI_Count count, Datatype& datatype, int source, int tag, Comm& comm, int from, int to, MPI_Status* status) {
  StreamUse use;
  Comm* pair = nullptr;
  if (const int code = choose_receive(comm, from, to, source, "MPIX_Stream_recv", use, &pair)) return code;
  return recv({buf, count, datatype}, source, tag, *pair, Space::user, status);
}

int Stream_irecv(void* buf, MPI_Count count, Datatype& datatype, int source, int tag, Comm& comm, int from, int to,
                 MPI_Request* request) {
  StreamUse use;
  Comm* pair = nullptr;
  if (const int code = choose_receive(comm, from, to, source, "MPIX_Stream_irecv", use, &pair)) return code;
  *request = to_handle(irecv({buf, count, datatype}, source, tag, *pair));
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
