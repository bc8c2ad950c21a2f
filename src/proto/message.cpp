#include "proto/message.hpp"

#include "proto/protocol_state.hpp"
#include "sys/log.hpp"

namespace heddle {
namespace {

proto::Unexpected* find(VciGuard& guard, int source, int tag, Comm& comm, Envelope& envelope) noexcept {
  auto* found = static_cast<proto::Unexpected*>(guard.vci().matcher.find_arrival({comm.inbox, source, tag}));
  if (found) envelope = {found->key.source, found->key.tag, static_cast<MPI_Count>(found->bytes)};
  return found;
}

}  // namespace

bool find_message(int source, int tag, Comm& comm, Envelope& envelope) noexcept {
  VciGuard guard(vci_of_lane(comm.receive_lane(source, tag)));
  return find(guard, source, tag, comm, envelope);
}

Message* take_message(int source, int tag, Comm& comm, Envelope& envelope) noexcept {
  Message* message = nullptr;
  {
    VciGuard guard(vci_of_lane(comm.receive_lane(source, tag)));
    proto::Unexpected* found = find(guard, source, tag, comm, envelope);
    if (!found) return nullptr;
    message = pool<Message>().create();
    if (!message) sys::fatal("no memory for a message handle");
    guard.vci().matcher.remove_arrival(*found);
    message->message = found;
    message->vci = &guard.vci();
    message->comm = &comm;
    retain_comm(comm);
  }
  return message;
}

Request* receive_message(Message& message, void* buffer, MPI_Count count, Datatype& type) noexcept {
  Request* receive;
  Comm* comm = message.comm;
  {
    VciGuard guard(*message.vci);
    receive = new_request(guard.vci(), Request::Type::recv, message.comm);
    receive->buffer = buffer;
    receive->count = count;
    receive->datatype = &type;
    receive->capacity = static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(type.size);
    receive->pattern = message.message->key;
    if (!type.builtin) {
      retain(type);
      receive->special = true;  // so that its end gives the datatype back
    }
    proto::consume(guard, *receive, *message.message);
    // A communicator that is freed from now on finds the request; one that was before is handed on to it.
    if (comm->user_freed.load(std::memory_order_acquire) && !receive->is_done()) {
      receive->special = receive->holds_comm = true;
      comm = nullptr;
    }
  }
  if (comm) release_comm(comm);
  pool<Message>().destroy(&message);
  return receive;
}

}  // namespace heddle
