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
  return submit(vci_of_lane(comm.receive_lane(source, tag)),
                [&](VciGuard& guard) { return find(guard, source, tag, comm, envelope) != nullptr; });
}

Message* take_message(int source, int tag, Comm& comm, Envelope& envelope) noexcept {
  return submit(vci_of_lane(comm.receive_lane(source, tag)), [&](VciGuard& guard) -> Message* {
    proto::Unexpected* found = find(guard, source, tag, comm, envelope);
    if (!found) return nullptr;
    Message* message = pool<Message>().create();
    if (!message) sys::fatal("no memory for a message handle");
    guard.vci().matcher.remove_arrival(*found);
    message->message = found;
    message->vci = &guard.vci();
    message->comm = &comm;
    retain_comm(comm);
    return message;
  });
}

Request* receive_message(Message& message, const Buffer& buffer) noexcept {
  Comm* comm = message.comm;
  Request* receive = submit(*message.vci, [&](VciGuard& guard) {
    Request* request = new_request(guard.vci(), Request::Type::recv, comm);
    proto::fill(*request, buffer, message.message->key);
    proto::consume(guard, *request, *message.message);
    // A communicator that is freed from now on finds the request; one that was before is handed on to it.
    if (comm->user_freed.load(std::memory_order_acquire) && !request->is_done()) {
      request->special = request->holds_comm = true;
      comm = nullptr;
    }
    return request;
  });
  if (comm) release_comm(comm);
  pool<Message>().destroy(&message);
  return receive;
}

}  // namespace heddle
