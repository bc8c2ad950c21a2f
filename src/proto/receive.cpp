// Receives: from the arguments to a message that is here already, or to a posted receive.
#include "core/status.hpp"
#include "proto/protocol_state.hpp"
#include "sys/error.hpp"
#include "vci/wait.hpp"

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

namespace {

using proto::fill;
using proto::own_context;
using proto::PointToPoint;
using proto::Unexpected;

proto::CompletedRequest completed_null_receive{Request::Type::recv, MPI_PROC_NULL, last_index - 1};

inline void match_or_post(Vci& vci, VciGuard& guard, Request& receive) noexcept {
  if (vci.matcher.unexpected()) [[unlikely]] {
    if (auto* message = static_cast<Unexpected*>(vci.matcher.find_arrival(receive.pattern))) {
      vci.matcher.remove_arrival(*message);
      return proto::consume(guard, receive, *message);
    }
  }
  vci.matcher.post(receive);
}

template <Space space>
inline Request* receive(VciGuard& guard, void* buffer, MPI_Count count, Datatype& type, int source, int tag,
                        Comm& comm) noexcept {
  Request* r = guard.vci().requests.allocate(&guard.vci());  // its status is set when the message comes
  r->state.store(Request::active, std::memory_order_relaxed);
  fill(*r, Request::Type::recv, buffer, count, type, source, tag, comm, space, SendMode::standard);
  match_or_post(guard.vci(), guard, *r);
  return r;
}

}  // namespace

/// Where messages spread by source and tag, a receive must name both.
[[gnu::noinline]] Request* receive_spread(void* buffer, MPI_Count count, Datatype& type, int source, int tag,
                                          Comm& comm) noexcept {
  const int refused = refuse_wildcards(comm, source, tag);
  VciGuard guard(vci_of_lane(refused ? comm.vci : comm.receive_lane(source, tag)));
  if (!refused) return receive<Space::user>(guard, buffer, count, type, source, tag, comm);
  Request* failed = new_request(guard.vci(), Request::Type::recv, &comm);
  failed->fail(refused);
  complete(*failed, guard);
  return failed;
}

[[gnu::noinline]] static Request* irecv_slowly(void* buffer, MPI_Count count, Datatype& type, int source, int tag,
                                               Comm& comm) noexcept {
  if (source == MPI_PROC_NULL) return &completed_null_receive;
  if (comm.routing && comm.routing->spread) return receive_spread(buffer, count, type, source, tag, comm);
  VciGuard guard(home_vci(comm));
  return receive<Space::user>(guard, buffer, count, type, source, tag, comm);
}

/// \pre the home VCI is held; released at the end
[[gnu::noinline]] static Request* irecv_held(void* buffer, MPI_Count count, Datatype& type, int source, int tag,
                                             Comm& comm) noexcept {
  VciGuard guard(home_vci(comm), VciGuard::Adopt{});
  return receive<Space::user>(guard, buffer, count, type, source, tag, comm);
}

// The common receive is posted here without a call, so that nothing has to be saved: where one would be needed, all is
// done there.
Request* irecv(void* buffer, MPI_Count count, Datatype& type, int source, int tag, Comm& comm) noexcept {
  Vci* vci = detail::lane_table[comm.vci].load(std::memory_order_acquire);  // pairs with open_lane
  if (source != MPI_PROC_NULL && (!comm.routing || !comm.routing->spread) && type.builtin && vci &&
      VciGuard::try_hold(*vci)) [[likely]] {
    match::PostedBin* bin = vci->matcher.posted_bin({own_context(comm, Space::user), source, tag});
    if (!bin || vci->matcher.unexpected() || !vci->requests.stocked()) [[unlikely]]
      return irecv_held(buffer, count, type, source, tag, comm);
    VciGuard guard(*vci, VciGuard::Adopt{});
    Request* r = vci->requests.allocate(vci);
    r->state.store(Request::active, std::memory_order_relaxed);
    fill(*r, Request::Type::recv, buffer, count, type, source, tag, comm, Space::user, SendMode::standard);
    vci->matcher.post(*r, *bin);
    return r;
  }
  return irecv_slowly(buffer, count, type, source, tag, comm);
}

Request* irecv(VciGuard& guard, void* buffer, MPI_Count count, Datatype& type, int source, int tag, Comm& comm,
               Space space) noexcept {
  if (source == MPI_PROC_NULL) [[unlikely]]
    return &completed_null_receive;
  return space == Space::user ? receive<Space::user>(guard, buffer, count, type, source, tag, comm)
                              : receive<Space::collective>(guard, buffer, count, type, source, tag, comm);
}

Request* irecv(void* buffer, MPI_Count count, Datatype& type, int source, int tag, Comm& comm, Space space) noexcept {
  if (space == Space::user) return irecv(buffer, count, type, source, tag, comm);
  VciGuard guard(home_vci(comm));
  return irecv(guard, buffer, count, type, source, tag, comm, space);
}

void start_receive(VciGuard& guard, Request& receive) noexcept { match_or_post(guard.vci(), guard, receive); }

Request* null_receive() noexcept { return &completed_null_receive; }

// --- the blocking receive, mostly without a request -----------------------------------------------------------------
namespace {

inline void describe(int source, int tag, std::uint64_t bytes, MPI_Status* status) noexcept {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = source;
  status->MPI_TAG = tag;
  set_status_bytes(*status, static_cast<MPI_Count>(bytes));
  set_status_cancelled(*status, false);
}

/// Gives an unexpected message that is whole, to be told nobody of and fits, to a contiguous buffer of `capacity`
/// bytes, and frees it; false: the message is something else, and left alone.
bool take_at_once(VciGuard& guard, Unexpected& message, void* buffer, std::uint64_t capacity, const Datatype& type,
                  MPI_Status* status) noexcept {
  if (message.form != Unexpected::Form::eager || message.bytes > capacity || !type.contiguous) return false;
  Vci& vci = guard.vci();
  vci.matcher.remove_arrival(message);
  sys::copy_bytes(static_cast<std::byte*>(buffer) + type.true_lb, message.payload(), message.bytes);
  describe(message.key.source, message.key.tag, message.bytes, status);
  proto::free_unexpected(vci, &message);
  return true;
}

/// The same for the oldest record in the ring, which no posted receive waits for: a whole message on the way to this
/// one, taken without a request. The caller has seen that no unexpected message matches.
inline bool take_from_ring(VciGuard& guard, match::Pattern pattern, void* buffer, std::uint64_t capacity,
                           const Datatype& type, MPI_Status* status) noexcept {
  Vci& vci = guard.vci();
  sync::RingLine* line = vci.ring.front();
  if (!line) return false;
  const auto& record = *reinterpret_cast<const Record*>(line);
  if (record.kind != PointToPoint::eager || record.context != pattern.context ||
      (record.source != pattern.source && pattern.source != MPI_ANY_SOURCE) ||
      (record.tag != pattern.tag && pattern.tag != MPI_ANY_TAG) || record.bytes > capacity || !type.contiguous ||
      vci.matcher.awaits({record.context, record.source, record.tag}))
    return false;
  sys::copy_bytes(static_cast<std::byte*>(buffer) + type.true_lb, record.payload, record.bytes);
  describe(record.source, record.tag, record.bytes, status);
  vci.ring.pop();
  return true;
}

/// A message that was waited for is often answered at once: the line that the answer will be written to is asked for
/// now.
inline void expect_answer(Vci& vci, const Comm& comm) noexcept {
  const sync::RingLine* line = vci.ring.front();
  if (!line) return;
  const int source = reinterpret_cast<const Record*>(line)->source;
  // A record of another communicator only costs a line.
  if (static_cast<unsigned>(source) >= static_cast<unsigned>(comm.peer_size())) return;
  const Address to = comm.plain ? Address{comm.peers->process(source), comm.vci, 0} : comm.address(source);
  const shm::Peer* peer = shm::find(to.process);
  const shm::Port* port = peer ? peer->port(to.vci) : nullptr;
  if (port) port->ring.expect();
}

/// Whether another thread of this process may hand the message over in the VCI itself, where looks at the ring do not see it.
inline bool may_come_from_here(const Vci& vci, const Comm& comm, int source) noexcept {
  if (!runtime.threads.load(std::memory_order_relaxed)) return false;
  if (source == MPI_ANY_SOURCE) return true;
  const Address from = comm.address(source);
  return from.process == runtime.self && &vci_of_lane(from.vci) == &vci;
}

/// Looks for the next record before a blocking receive becomes a request: for about as long as an answer takes to come from
/// another core, less where cores are scarce.
unsigned first_looks() noexcept { return 4 * idle_looks(); }

template <Space space>
inline int receive_now(void* buffer, MPI_Count count, Datatype& type, int source, int tag, Comm& comm,
                       MPI_Status* status) noexcept {
  if (source == MPI_PROC_NULL || (space == Space::user && comm.routing && comm.routing->spread)) [[unlikely]]
    return wait(irecv(buffer, count, type, source, tag, comm, space), status);
  const match::Pattern pattern{own_context(comm, space), source, tag};
  const std::uint64_t capacity = static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(type.size);
  Vci& vci = home_vci(comm);
  Request* request;
  bool reaped = false, around = false;
  for (bool looked = false;; looked = true) {
    {
      VciGuard guard(vci);
      if (looked) expect_answer(vci, comm);
      Unexpected* message = nullptr;
      if (vci.matcher.unexpected()) message = static_cast<Unexpected*>(vci.matcher.find_arrival(pattern));
      if (message) {
        if (take_at_once(guard, *message, buffer, capacity, type, status)) return MPI_SUCCESS;
      } else if (take_from_ring(guard, pattern, buffer, capacity, type, status)) {
        if (!look_around(vci)) [[likely]]
          return MPI_SUCCESS;
        reaped = around = true;
        break;
      }
      if (looked || message || vci.has_work()) {
        request = receive<space>(guard, buffer, count, type, source, tag, comm);
        if (vci.ring.pending() && progress(guard, request)) {  // it may be among the next in the ring
          reaped = reap(guard, *request, status);
          around = look_around(vci);
        }
        break;
      }
    }
    if (may_come_from_here(vci, comm, source)) continue;
    for (unsigned looks = first_looks(); looks && !vci.ring.pending(); --looks) sync::one_look();
  }
  if (around) [[unlikely]]
    progress_all();
  return reaped ? MPI_SUCCESS : wait(request, status);
}

}  // namespace

int recv(void* buffer, MPI_Count count, Datatype& type, int source, int tag, Comm& comm, MPI_Status* status) noexcept {
  return receive_now<Space::user>(buffer, count, type, source, tag, comm, status);
}

int recv(void* buffer, MPI_Count count, Datatype& type, int source, int tag, Comm& comm, Space space,
         MPI_Status* status) noexcept {
  if (space == Space::user) return recv(buffer, count, type, source, tag, comm, status);
  return receive_now<Space::collective>(buffer, count, type, source, tag, comm, status);
}

int sendrecv(const void* send_buffer, MPI_Count send_count, Datatype& send_type, int to, int send_tag,
             void* recv_buffer, MPI_Count recv_count, Datatype& recv_type, int from, int recv_tag, Comm& comm,
             Space space, MPI_Status* status) noexcept {
  // A short message leaves at once, mostly, and then what comes may be taken without a request. A long one, or one to
  // the own process, finds its receive posted.
  const bool first = to != MPI_PROC_NULL && comm.address(to).process != runtime.self &&
                     static_cast<std::uint64_t>(send_count) * static_cast<std::uint64_t>(send_type.size) <=
                         proto::limits.eager.load(std::memory_order_relaxed);
  Request* sending = nullptr;
  if (first) {
    sending = isend(send_buffer, send_count, send_type, to, send_tag, comm, space);
    if (sending == completed_request()) [[likely]]
      return recv(recv_buffer, recv_count, recv_type, from, recv_tag, comm, space, status);
  }
  Request* receiving = irecv(recv_buffer, recv_count, recv_type, from, recv_tag, comm, space);
  if (!first) sending = isend(send_buffer, send_count, send_type, to, send_tag, comm, space);
  const int sent = wait(sending);
  const int received = wait(receiving, status);
  return received ? received : sent;
}

}  // namespace heddle
