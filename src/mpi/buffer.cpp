// MPI-5.0 §3.4 and §3.6: buffered sends and the memory for them.
#include "generated/impl.hpp"
#include "proto/send_buffer.hpp"
#include "vci/vci.hpp"

namespace heddle::mpi {
namespace {

/// A persistent buffered send: each start is a buffered send, complete at once.
const RequestOps buffered_ops{
    .start =
        [](Request& r) {
          const int code = send_buffer_for(*r.comm).send({r.buffer, r.peer, r.pattern.tag}, *r.comm);
          submit(*r.vci, [&](VciGuard& guard) {
            r.error = code;
            complete(r, guard);
          });
          return MPI_SUCCESS;
        },
};

}  // namespace

int Bsend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm) {
  return send_buffer_for(comm).send({{buf, count, datatype}, dest, tag}, comm);
}

int Ibsend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm, MPI_Request* request) {
  const int code = send_buffer_for(comm).send({{buf, count, datatype}, dest, tag}, comm);
  if (!code) *request = to_handle(completed_request());
  return code;
}

int Bsend_init(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm, MPI_Request* request) {
  Request* r = new_persistent_send({{buf, count, datatype}, dest, tag}, comm, SendMode::buffered);
  r->ops = &buffered_ops;
  *request = to_handle(r);
  return MPI_SUCCESS;
}

int Buffer_attach(void* buffer, MPI_Count size) { return send_buffer_of(nullptr).attach(buffer, size); }
int Buffer_detach(void* buffer_addr, MPI_Count* size) { return send_buffer_of(nullptr).detach(buffer_addr, size); }
int Buffer_flush() { return send_buffer_of(nullptr).flush(), MPI_SUCCESS; }
int Buffer_iflush(MPI_Request* request) { return *request = to_handle(send_buffer_of(nullptr).flush_later()), MPI_SUCCESS; }

int Comm_attach_buffer(Comm& comm, void* buffer, MPI_Count size) { return send_buffer_of(comm).attach(buffer, size); }
int Comm_detach_buffer(Comm& comm, void* buffer_addr, MPI_Count* size) { return send_buffer_of(comm).detach(buffer_addr, size); }
int Comm_flush_buffer(Comm& comm) { return send_buffer_of(comm).flush(), MPI_SUCCESS; }
int Comm_iflush_buffer(Comm& comm, MPI_Request* request) { return *request = to_handle(send_buffer_of(comm).flush_later()), MPI_SUCCESS; }

int Session_attach_buffer(Session& session, void* buffer, MPI_Count size) { return send_buffer_of(&session).attach(buffer, size); }
int Session_detach_buffer(Session& session, void* buffer_addr, MPI_Count* size) { return send_buffer_of(&session).detach(buffer_addr, size); }
int Session_flush_buffer(Session& session) { return send_buffer_of(&session).flush(), MPI_SUCCESS; }
int Session_iflush_buffer(Session& session, MPI_Request* request) {
  return *request = to_handle(send_buffer_of(&session).flush_later()), MPI_SUCCESS;
}

}  // namespace heddle::mpi
