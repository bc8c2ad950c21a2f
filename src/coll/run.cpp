// Requests of collectives, and the collectives that the library itself calls.
#include "coll/run.hpp"

#include "coll/algorithms.hpp"
#include "sys/error.hpp"
#include "vci/vci.hpp"

namespace heddle::coll {
namespace {

void release_request_comm(Request& request) {
  if (!request.comm->predefined) release_comm(request.comm);
}

Schedule& schedule_of(Request& request) noexcept { return *static_cast<Schedule*>(request.data); }

int start_persistent(Request& request) {
  submit(*request.vci, [&](VciGuard& guard) {
    request.error = MPI_SUCCESS;
    request.state.store(Request::active, std::memory_order_relaxed);
    schedule_of(request).start(guard);
  });
  return MPI_SUCCESS;
}

void free_persistent(Request& request) {
  Schedule::destroy(&schedule_of(request));
  release_request_comm(request);
}

constexpr RequestOps once_ops{nullptr, nullptr, nullptr, release_request_comm};
constexpr RequestOps persistent_ops{start_persistent, nullptr, nullptr, free_persistent};

// The communicator outlives the operation though its handle may be freed meanwhile.
Request* make_request(VciGuard& guard, Schedule& schedule, Request::Type type, const RequestOps& ops) noexcept {
  Comm& comm = schedule.comm();
  Request* request = new_request(guard.vci(), type, &comm);
  if (!comm.predefined) comm.retain();
  request->ops = &ops;
  request->special = true;
  request->data = &schedule;
  schedule.set_request(request);
  return request;
}

}  // namespace

int Turn::taken(const Comm& comm, const char* name) noexcept {
  const char* other = comm.collective_name.load(std::memory_order_relaxed);
  return error(MPI_ERR_OTHER,
               "%s while another thread is in %s of the same communicator: the collectives of a communicator take "
               "turns; give each thread a communicator of its own (MPI_Comm_dup)",
               name, other ? other : "a collective");
}

int no_schedule_memory(const char* name) noexcept {
  return error(MPI_ERR_NO_MEM, "%s: no memory for its schedule", name);
}

int launch(Schedule* schedule, int error, Finish finish, Request** request) noexcept {
  if (error != MPI_SUCCESS) return Schedule::destroy(schedule), error;
  submit(home_vci(schedule->comm()), [&](VciGuard& guard) {
    *request = make_request(guard, *schedule, Request::Type::collective, once_ops);
    schedule->set_finish(finish);
    schedule->start(guard);
  });
  return MPI_SUCCESS;
}

int make_persistent(Schedule* schedule, int error, Request** request) noexcept {
  if (error != MPI_SUCCESS) return Schedule::destroy(schedule), error;
  *request = submit(home_vci(schedule->comm()), [&](VciGuard& guard) {
    Request* made = make_request(guard, *schedule, Request::Type::persistent_coll, persistent_ops);
    made->special = made->persistent = true;
    made->state.store(Request::done_bit | Request::inactive_bit, std::memory_order_relaxed);
    return made;
  });
  return MPI_SUCCESS;
}

int barrier(Comm& comm) noexcept {
  return run_blocking(comm, "barrier", [](Steps& s) { barrier(s); });
}

int bcast(void* buffer, MPI_Count count, Datatype& type, int root, Comm& comm) noexcept {
  return run_blocking(comm, "bcast", [&](Steps& s) { bcast(s, buffer, count, type, root); });
}

int gather(const void* send, MPI_Count send_count, Datatype& send_type, void* recv, MPI_Count recv_count,
           Datatype& recv_type, int root, Comm& comm) noexcept {
  return run_blocking(comm, "gather",
                      [&](Steps& s) { gather(s, send, send_count, &send_type, recv, recv_count, &recv_type, root); });
}

int allgather(const void* send, MPI_Count send_count, Datatype& send_type, void* recv, MPI_Count recv_count,
              Datatype& recv_type, Comm& comm) noexcept {
  return run_blocking(comm, "allgather",
                      [&](Steps& s) { allgather(s, send, send_count, &send_type, recv, recv_count, recv_type); });
}

int allreduce(const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op, Comm& comm) noexcept {
  return run_blocking(comm, "allreduce", [&](Steps& s) { allreduce(s, send, recv, count, type, op); });
}

int ibarrier(Comm& comm, Request** request, Finish finish) noexcept {
  return run_nonblocking(comm, "ibarrier", request, finish, [](Steps& s) { barrier(s); });
}

int ibcast(void* buffer, MPI_Count count, Datatype& type, int root, Comm& comm, Request** request,
           Finish finish) noexcept {
  return run_nonblocking(comm, "ibcast", request, finish, [&](Steps& s) { bcast(s, buffer, count, type, root); });
}

int iallgather(const void* send, MPI_Count send_count, Datatype& send_type, void* recv, MPI_Count recv_count,
               Datatype& recv_type, Comm& comm, Request** request, Finish finish) noexcept {
  return run_nonblocking(comm, "iallgather", request, finish,
                         [&](Steps& s) { allgather(s, send, send_count, &send_type, recv, recv_count, recv_type); });
}

int iallreduce(const void* send, void* recv, MPI_Count count, Datatype& type, const Op& op, Comm& comm,
               Request** request, Finish finish) noexcept {
  return run_nonblocking(comm, "iallreduce", request, finish,
                         [&](Steps& s) { allreduce(s, send, recv, count, type, op); });
}

}  // namespace heddle::coll
