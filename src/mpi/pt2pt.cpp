// MPI-5.0 chapter 3: point-to-point. The bindings have checked the arguments; here a function is a line or a few.
#include <atomic>
#include <cstdlib>
#include <memory>

#include "core/status.hpp"
#include "generated/impl.hpp"
#include "mpi/request.hpp"
#include "proto/message.hpp"
#include "proto/p2p.hpp"
#include "sys/error.hpp"
#include "vci/wait.hpp"

namespace heddle::mpi {
namespace {

void set_status(MPI_Status* status, const Envelope& envelope) noexcept {
  fill_status(status, envelope.source, envelope.tag, envelope.bytes);
}

constexpr Envelope null_envelope{MPI_PROC_NULL, MPI_ANY_TAG, 0};

int blocking_send(const Leg& leg, Comm& comm, SendMode mode) noexcept {
  return wait(isend(leg.buffer, leg.peer, leg.tag, comm, Space::user, mode));
}

int start_send(const Leg& leg, Comm& comm, SendMode mode, MPI_Request* request) noexcept {
  *request = to_handle(isend(leg.buffer, leg.peer, leg.tag, comm, Space::user, mode));
  return MPI_SUCCESS;
}

int init_send(const Leg& leg, Comm& comm, SendMode mode, MPI_Request* request) noexcept {
  *request = to_handle(new_persistent_send(leg, comm, mode));
  return MPI_SUCCESS;
}

struct FreeDeleter {
  void operator()(void* p) const noexcept { std::free(p); }
};
using Bytes = std::unique_ptr<void, FreeDeleter>;

/// The packed content of a buffer, for the functions that receive into the buffer they send from.
Bytes pack_copy(const Buffer& buffer) noexcept {
  Bytes copy(std::malloc(buffer.bytes() + 1));
  if (copy) buffer.pack(0, copy.get(), buffer.bytes());
  return copy;
}

int no_memory_for_copy(const Buffer& buffer) noexcept {
  return error(MPI_ERR_NO_MEM, "no memory for a copy of the %llu bytes to send", static_cast<unsigned long long>(buffer.bytes()));
}

/// What `pack_copy` has made of `buffer`.
Buffer packed(const Bytes& copy, const Buffer& buffer) noexcept {
  return {copy.get(), static_cast<MPI_Count>(buffer.bytes()), *resolve<Datatype>(MPI_PACKED)};
}

/// MPI_Isendrecv: one request for a send and a receive. The parts may belong to different VCIs; whoever ends the last one completes
/// the request, which belongs to the receive's VCI and so is handed to it from elsewhere.
struct Pair {
  struct Part : Continuation {
    Pair* pair;
  };
  Part sending, receiving;
  Request* parent;
  std::atomic<int> open{3};  ///< the two, and the function that starts them
  std::atomic<int> error{MPI_SUCCESS};
  Bytes copy;
};

void end_part(Pair& pair, VciGuard& guard) noexcept {
  // The last to come sees what the others wrote.
  if (pair.open.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  Request& parent = *pair.parent;
  parent.error = pair.error.load(std::memory_order_relaxed);
  if (parent.vci == &guard.vci()) complete_with_error(parent, guard); else complete_elsewhere(parent);
  delete &pair;
}

void part_done(Pair& pair, Request& part, VciGuard& guard) noexcept {
  if (part.error) pair.error.store(part.error, std::memory_order_relaxed);
  if (part.type == Request::Type::recv) {
    Request& parent = *pair.parent;
    parent.source = part.source;
    parent.tag = part.tag;
    parent.bytes = part.bytes;
  }
  free_request(&part, guard);
  end_part(pair, guard);
}

int start_pair(const Leg& out, const Leg& in, Comm& comm, Bytes copy, MPI_Request* request) noexcept {
  if (const int refused = refuse_wildcards(comm, in.peer, in.tag)) return refused;
  auto* pair = new (std::nothrow) Pair{};
  if (!pair) return error(MPI_ERR_NO_MEM, "no memory for a send and receive");
  pair->copy = std::move(copy);
  for (auto* part : {&pair->sending, &pair->receiving}) {
    part->pair = pair;
    part->run = [](Continuation& self, Request& done, VciGuard& guard) { part_done(*static_cast<Pair::Part&>(self).pair, done, guard); };
  }
  submit(vci_of_lane(in.peer < 0 ? comm.lane : comm.receive_lane(in.peer, in.tag)), [&](VciGuard& guard) {
    pair->parent = new_request(guard.vci(), Request::Type::collective, &comm);
    *request = to_handle(pair->parent);
    Request* receiving = irecv(guard, in.buffer, in.peer, in.tag, comm, Space::user);
    if (receiving->is_done()) part_done(*pair, *receiving, guard); else receiving->then(pair->receiving);
  });
  submit(vci_of_lane(comm.send_lane(out.tag)), [&](VciGuard& guard) {
    Request* sending = isend(guard, out.buffer, out.peer, out.tag, comm, Space::user);
    if (sending->is_done()) part_done(*pair, *sending, guard); else sending->then(pair->sending);
    end_part(*pair, guard);
  });
  return MPI_SUCCESS;
}

}  // namespace

int Ssend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm) {
  return blocking_send({{buf, count, datatype}, dest, tag}, comm, SendMode::synchronous);
}
int Rsend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm) {
  return blocking_send({{buf, count, datatype}, dest, tag}, comm, SendMode::ready);
}

int Issend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm, MPI_Request* request) {
  return start_send({{buf, count, datatype}, dest, tag}, comm, SendMode::synchronous, request);
}
int Irsend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm, MPI_Request* request) {
  return start_send({{buf, count, datatype}, dest, tag}, comm, SendMode::ready, request);
}

int Send_init(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm, MPI_Request* request) {
  return init_send({{buf, count, datatype}, dest, tag}, comm, SendMode::standard, request);
}
int Ssend_init(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm, MPI_Request* request) {
  return init_send({{buf, count, datatype}, dest, tag}, comm, SendMode::synchronous, request);
}
int Rsend_init(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm, MPI_Request* request) {
  return init_send({{buf, count, datatype}, dest, tag}, comm, SendMode::ready, request);
}
int Recv_init(void* buf, MPI_Count count, Datatype& datatype, int source, int tag, Comm& comm, MPI_Request* request) {
  if (const int refused = refuse_wildcards(comm, source, tag)) return refused;
  *request = to_handle(new_persistent_receive({{buf, count, datatype}, source, tag}, comm));
  return MPI_SUCCESS;
}

int Sendrecv(const void* sendbuf, MPI_Count sendcount, Datatype& sendtype, int dest, int sendtag, void* recvbuf, MPI_Count recvcount,
             Datatype& recvtype, int source, int recvtag, Comm& comm, MPI_Status* status) {
  return sendrecv({{sendbuf, sendcount, sendtype}, dest, sendtag}, {{recvbuf, recvcount, recvtype}, source, recvtag}, comm, Space::user, status);
}

int Sendrecv_replace(void* buf, MPI_Count count, Datatype& datatype, int dest, int sendtag, int source, int recvtag, Comm& comm,
                     MPI_Status* status) {
  const Buffer buffer(buf, count, datatype);
  const Bytes copy = pack_copy(buffer);
  if (!copy) return no_memory_for_copy(buffer);
  return sendrecv({packed(copy, buffer), dest, sendtag}, {buffer, source, recvtag}, comm, Space::user, status);
}

int Isendrecv(const void* sendbuf, MPI_Count sendcount, Datatype& sendtype, int dest, int sendtag, void* recvbuf, MPI_Count recvcount,
              Datatype& recvtype, int source, int recvtag, Comm& comm, MPI_Request* request) {
  return start_pair({{sendbuf, sendcount, sendtype}, dest, sendtag}, {{recvbuf, recvcount, recvtype}, source, recvtag}, comm, nullptr, request);
}

int Isendrecv_replace(void* buf, MPI_Count count, Datatype& datatype, int dest, int sendtag, int source, int recvtag, Comm& comm,
                      MPI_Request* request) {
  const Buffer buffer(buf, count, datatype);
  Bytes copy = pack_copy(buffer);
  if (!copy) return no_memory_for_copy(buffer);
  const Leg out{packed(copy, buffer), dest, sendtag};
  return start_pair(out, {buffer, source, recvtag}, comm, std::move(copy), request);
}

namespace {
Vci& receive_vci(const Comm& comm, int source, int tag) noexcept { return vci_of_lane(comm.receive_lane(source, tag)); }
}  // namespace

int Iprobe(int source, int tag, Comm& comm, int* flag, MPI_Status* status) {
  Envelope envelope = null_envelope;
  if (const int refused = refuse_wildcards(comm, source, tag)) return refused;
  *flag = source == MPI_PROC_NULL || find_message(source, tag, comm, envelope);
  if (!*flag) {
    poll_for_test(receive_vci(comm, source, tag));
    *flag = find_message(source, tag, comm, envelope);
  }
  if (*flag) set_status(status, envelope);
  return MPI_SUCCESS;
}

int Probe(int source, int tag, Comm& comm, MPI_Status* status) {
  Envelope envelope = null_envelope;
  if (const int refused = refuse_wildcards(comm, source, tag)) return refused;
  if (source != MPI_PROC_NULL)
    wait_until(&receive_vci(comm, source, tag), [&] { return find_message(source, tag, comm, envelope); },
               {.comm = &comm, .rank = source, .tag = tag});
  set_status(status, envelope);
  return MPI_SUCCESS;
}

int Improbe(int source, int tag, Comm& comm, int* flag, MPI_Message* message, MPI_Status* status) {
  Envelope envelope = null_envelope;
  if (const int refused = refuse_wildcards(comm, source, tag)) return refused;
  if (source == MPI_PROC_NULL) {
    *flag = 1;
    *message = MPI_MESSAGE_NO_PROC;
    set_status(status, envelope);
    return MPI_SUCCESS;
  }
  Message* taken = take_message(source, tag, comm, envelope);
  if (!taken) {
    poll_for_test(receive_vci(comm, source, tag));
    taken = take_message(source, tag, comm, envelope);
  }
  *flag = taken != nullptr;
  if (taken) {
    *message = to_handle(taken);
    set_status(status, envelope);
  } else {
    *message = MPI_MESSAGE_NULL;
  }
  return MPI_SUCCESS;
}

int Mprobe(int source, int tag, Comm& comm, MPI_Message* message, MPI_Status* status) {
  Envelope envelope = null_envelope;
  if (const int refused = refuse_wildcards(comm, source, tag)) return refused;
  *message = MPI_MESSAGE_NO_PROC;
  if (source != MPI_PROC_NULL) {
    Message* taken = nullptr;
    wait_until(&receive_vci(comm, source, tag), [&] { return taken || (taken = take_message(source, tag, comm, envelope)); },
               {.comm = &comm, .rank = source, .tag = tag});
    *message = to_handle(taken);
  }
  set_status(status, envelope);
  return MPI_SUCCESS;
}

int Imrecv(void* buf, MPI_Count count, Datatype& datatype, MPI_Message* message, MPI_Request* request) {
  if (*message == MPI_MESSAGE_NO_PROC) {
    *message = MPI_MESSAGE_NULL;
    *request = to_handle(null_receive());
    return MPI_SUCCESS;
  }
  Message* taken = resolve<Message>(*message);
  if (!taken) return error(MPI_ERR_REQUEST, "the message handle is null, was received already, or never came from a matched probe");
  *message = MPI_MESSAGE_NULL;
  *request = to_handle(receive_message(*taken, {buf, count, datatype}));
  return MPI_SUCCESS;
}

int Mrecv(void* buf, MPI_Count count, Datatype& datatype, MPI_Message* message, MPI_Status* status) {
  MPI_Request request = MPI_REQUEST_NULL;
  Message* taken = *message == MPI_MESSAGE_NO_PROC ? nullptr : resolve<Message>(*message);
  Comm* const comm = taken ? taken->comm : nullptr;
  if (comm) retain_comm(*comm);  // which may have been freed, and the receive be the last that it lives for
  int code = Imrecv(buf, count, datatype, message, &request);
  if (!code && (code = wait(resolve<Request>(request), status))) blame_comm(comm, code);
  if (comm) release_comm(comm);
  return code;
}

}  // namespace heddle::mpi
