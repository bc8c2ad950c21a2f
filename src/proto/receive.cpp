// Receives: from the arguments to a message that is here already, or to a posted receive.
#include "proto/protocol_state.hpp"
#include "proto/receive_now.hpp"
#include "sys/error.hpp"

namespace heddle {

namespace proto {

void fail_truncated(Request& receive, std::uint64_t bytes, int source, int tag) noexcept {
  receive.bytes = static_cast<MPI_Count>(receive.capacity);
  const Comm* comm = receive.comm && !receive.comm->is(Kind::freed) ? receive.comm : nullptr;
  if (comm && comm->stands_for) comm = comm->stands_for;
  receive.fail(error(
      MPI_ERR_TRUNCATE,
      "message of %llu bytes from rank %d, tag %d, on communicator %s is larger than the receive buffer of %llu bytes",
      static_cast<unsigned long long>(bytes), source, tag, comm && *comm->name ? comm->name : "(unnamed)",
      static_cast<unsigned long long>(receive.capacity)));
}

}  // namespace proto

int refuse_wildcards(const Comm& comm, int source, int tag) noexcept {
  if (!comm.routing || !comm.routing->spread || (source != MPI_ANY_SOURCE && tag != MPI_ANY_TAG)) return MPI_SUCCESS;
  return error(source == MPI_ANY_SOURCE ? MPI_ERR_RANK : MPI_ERR_TAG,
               "%s on communicator %s, which was made with mpi_assert_no_any_source and mpi_assert_no_any_tag: its "
               "messages are spread "
               "over the VCIs by source and tag; name both, or make the communicator without these hints",
               source == MPI_ANY_SOURCE ? "MPI_ANY_SOURCE" : "MPI_ANY_TAG", *comm.name ? comm.name : "(unnamed)");
}

namespace proto {

void match_or_post(VciGuard& guard, Request& receive) noexcept {
  Vci& vci = guard.vci();
  if (vci.matcher.unexpected()) [[unlikely]] {
    if (auto* message = static_cast<Unexpected*>(vci.matcher.find_arrival(receive.pattern))) {
      vci.matcher.remove_arrival(*message);
      return consume(guard, receive, *message);
    }
  }
  vci.matcher.post(receive);
}

int look_at_all() noexcept {
  progress_all();
  return MPI_SUCCESS;
}

int take_held(Vci& vci, const sync::RingLine* line, std::byte* to, MPI_Status* status) noexcept {
  const bool around = take(vci, line, to, status);
  HandOver::release(vci);
  return around ? look_at_all() : MPI_SUCCESS;
}

bool take_unexpected(Vci& vci, Unexpected& message, const Buffer& buffer, MPI_Status* status) noexcept {
  if (message.form != Unexpected::Form::eager || !buffer.contiguous()) return false;
  vci.matcher.remove_arrival(message);
  sys::copy_bytes(buffer.data(), message.payload(), message.bytes);
  fill_status(status, message.key.source, message.key.tag, static_cast<MPI_Count>(message.bytes));
  free_unexpected(vci, &message);
  return true;
}

}  // namespace proto

namespace {

using proto::receive;

CompletedRequest completed_null_receive{Request::Type::recv, Request::done_bit | Request::special_bit, MPI_PROC_NULL, last_index - 1};

/// Where messages spread by source and tag, a receive must name both.
Request* receive_spread(const Buffer& buffer, int source, int tag, Comm& comm) noexcept {
  const int refused = refuse_wildcards(comm, source, tag);
  return submit(vci_of_lane(refused ? comm.lane : comm.receive_lane(source, tag)), [&](VciGuard& guard) {
    if (!refused) return receive<Space::user>(guard, buffer, source, tag, comm);
    Request* failed = new_request(guard.vci(), Request::Type::recv, &comm);
    failed->fail(refused);
    complete(*failed, guard);
    return failed;
  });
}

[[gnu::noinline]] Request* irecv_slowly(const void* buffer, MPI_Count count, Datatype& type, int source, int tag, Comm& comm) noexcept {
  if (source == MPI_PROC_NULL) return &completed_null_receive;
  if (comm.routing && comm.routing->spread) return receive_spread({buffer, count, type}, source, tag, comm);
  return submit(home_vci(comm), [&](VciGuard& guard) { return receive<Space::user>(guard, {buffer, count, type}, source, tag, comm); });
}

/// \pre the home VCI is held; released at the end
[[gnu::noinline]] Request* irecv_held(const void* buffer, MPI_Count count, Datatype& type, int source, int tag, Comm& comm) noexcept {
  HandOver held(home_vci(comm));
  return receive<Space::user>(held.guard(), {buffer, count, type}, source, tag, comm);
}

}  // namespace

// The common receive is posted here without a call, so that no register has to be saved: where one is needed, all is done there.
Request* detail::irecv(void* buffer, MPI_Count count, Datatype& type, int source, int tag, Comm& comm) noexcept {
  Vci* vci = detail::lane_table[number(comm.lane)].load(std::memory_order_acquire);  // pairs with open_lane
  const bool exact = (source | tag) >= 0;  // what is not a rank or a tag is negative
  if (exact && (!comm.routing || !comm.routing->spread) && type.builtin && vci && HandOver::try_hold(*vci)) [[likely]] {
    const match::Pattern pattern{proto::own_context(comm, Space::user), source, tag};
    match::PostedBin* bin = vci->matcher.posted_bin(pattern);
    if (!bin || vci->matcher.unexpected() || !vci->requests.stocked()) [[unlikely]]
      return irecv_held(buffer, count, type, source, tag, comm);
    const HandOver held(*vci);
    Request* r = vci->requests.allocate(vci);
    r->state.store(Request::active, std::memory_order_relaxed);
    r->type = Request::Type::recv;
    r->comm = &comm;
    proto::fill_builtin(*r, {buffer, count, type}, pattern);
    vci->matcher.post_exact(*r, *bin);
    return r;
  }
  return irecv_slowly(buffer, count, type, source, tag, comm);
}

Request* irecv(VciGuard& guard, const Buffer& buffer, int source, int tag, Comm& comm, Space space) noexcept {
  if (source == MPI_PROC_NULL) [[unlikely]]
    return &completed_null_receive;
  return space == Space::user ? receive<Space::user>(guard, buffer, source, tag, comm)
                              : receive<Space::collective>(guard, buffer, source, tag, comm);
}

Request* irecv(const Buffer& buffer, int source, int tag, Comm& comm, Space space) noexcept {
  if (space == Space::user) return irecv(buffer, source, tag, comm);
  return submit(home_vci(comm), [&](VciGuard& guard) { return irecv(guard, buffer, source, tag, comm, space); });
}

void start_receive(VciGuard& guard, Request& receive) noexcept { proto::match_or_post(guard, receive); }

Request* null_receive() noexcept { return &completed_null_receive; }

int detail::recv(void* buffer, MPI_Count count, Datatype& type, int source, int tag, Comm& comm, MPI_Status* status) noexcept {
  return proto::receive_now<Space::user>(buffer, count, type, source, tag, comm, status);
}

int recv(const Buffer& buffer, int source, int tag, Comm& comm, Space space, MPI_Status* status) noexcept {
  return space == Space::user ? detail::recv(buffer.base, buffer.count, *buffer.type, source, tag, comm, status)
                              : proto::receive_now<Space::collective>(buffer.base, buffer.count, *buffer.type, source, tag, comm, status);
}

int sendrecv(const Leg& out, const Leg& in, Comm& comm, Space space, MPI_Status* status) noexcept {
  // A short message leaves at once, mostly, and then what comes may be taken without a request. A long one, or one to the own process, finds
  // its receive posted.
  const bool first = out.peer != MPI_PROC_NULL && comm.address(out.peer).process != runtime.self &&
                     out.buffer.bytes() <= proto::limits.eager.load(std::memory_order_relaxed);
  Request* sending = nullptr;
  if (first) {
    sending = isend(out.buffer, out.peer, out.tag, comm, space);
    if (sending == completed_request()) [[likely]]
      return recv(in.buffer, in.peer, in.tag, comm, space, status);
  }
  Request* receiving = irecv(in.buffer, in.peer, in.tag, comm, space);
  if (!first) sending = isend(out.buffer, out.peer, out.tag, comm, space);
  const int sent = wait(sending);
  const int received = wait(receiving, status);
  return received ? received : sent;
}

}  // namespace heddle
