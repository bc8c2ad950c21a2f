// One-sided communication: operations and synchronization. MPI-5.0 §12.3, §12.5
#include "generated/impl.hpp"
#include "rma/operations.hpp"
#include "rma/synchronize.hpp"
#include "sys/error.hpp"
#include "vci/request.hpp"

namespace heddle::mpi {
namespace {

/// Operations that read only, and so have no origin.
Buffer origin(const void* memory, MPI_Count count, Datatype* type, const Op& op) noexcept {
  return op.code == OpCode::no_op || !type ? Buffer{} : Buffer{memory, count, *type};
}

int give(int code, Request* const& made, MPI_Request* request) noexcept {
  if (!code) *request = to_handle(made);
  return code;
}

}  // namespace

int Put(const void* here, MPI_Count count, Datatype& type, int rank, MPI_Aint displacement, MPI_Count there_count, Datatype& there_type, Window& win) {
  return rma::put(win, {here, count, type}, {rank, displacement, there_count, there_type});
}

int Get(void* here, MPI_Count count, Datatype& type, int rank, MPI_Aint displacement, MPI_Count there_count, Datatype& there_type, Window& win) {
  return rma::get(win, {here, count, type}, {rank, displacement, there_count, there_type});
}

int Accumulate(const void* here, MPI_Count count, Datatype& type, int rank, MPI_Aint displacement, MPI_Count there_count, Datatype& there_type, Op& op, Window& win) {
  return rma::accumulate(win, {here, count, type}, {rank, displacement, there_count, there_type}, op, nullptr, nullptr, "MPI_Accumulate");
}

int Get_accumulate(const void* here, MPI_Count count, Datatype* type, void* result, MPI_Count result_count, Datatype& result_type, int rank, MPI_Aint displacement,
                   MPI_Count there_count, Datatype& there_type, Op& op, Window& win) {
  const Buffer into{result, result_count, result_type};
  return rma::accumulate(win, origin(here, count, type, op), {rank, displacement, there_count, there_type}, op, &into, nullptr, "MPI_Get_accumulate");
}

int Fetch_and_op(const void* here, void* result, Datatype& type, int rank, MPI_Aint displacement, Op& op, Window& win) {
  const Buffer into{result, 1, type};
  return rma::accumulate(win, origin(here, 1, &type, op), {rank, displacement, 1, type}, op, &into, nullptr, "MPI_Fetch_and_op");
}

int Compare_and_swap(const void* here, const void* compare, void* result, Datatype& type, int rank, MPI_Aint displacement, Window& win) {
  return rma::compare_and_swap(win, here, compare, result, {rank, displacement, 1, type});
}

int Rput(const void* here, MPI_Count count, Datatype& type, int rank, MPI_Aint displacement, MPI_Count there_count, Datatype& there_type, Window& win, MPI_Request* request) {
  Request* made = nullptr;
  return give(rma::put_anywhere(win, {here, count, type}, {rank, displacement, there_count, there_type}, &made, "MPI_Rput"), made, request);
}

int Rget(void* here, MPI_Count count, Datatype& type, int rank, MPI_Aint displacement, MPI_Count there_count, Datatype& there_type, Window& win, MPI_Request* request) {
  Request* made = nullptr;
  return give(rma::get_anywhere(win, {here, count, type}, {rank, displacement, there_count, there_type}, &made, "MPI_Rget"), made, request);
}

int Raccumulate(const void* here, MPI_Count count, Datatype& type, int rank, MPI_Aint displacement, MPI_Count there_count, Datatype& there_type, Op& op, Window& win,
                MPI_Request* request) {
  Request* made = nullptr;
  return give(rma::accumulate(win, {here, count, type}, {rank, displacement, there_count, there_type}, op, nullptr, &made, "MPI_Raccumulate"), made, request);
}

int Rget_accumulate(const void* here, MPI_Count count, Datatype* type, void* result, MPI_Count result_count, Datatype& result_type, int rank, MPI_Aint displacement,
                    MPI_Count there_count, Datatype& there_type, Op& op, Window& win, MPI_Request* request) {
  const Buffer into{result, result_count, result_type};
  Request* made = nullptr;
  return give(rma::accumulate(win, origin(here, count, type, op), {rank, displacement, there_count, there_type}, op, &into, &made, "MPI_Rget_accumulate"), made, request);
}

int Win_fence(int assertion, Window& win) { return rma::fence(win, assertion); }
int Win_start(Group& group, int assertion, Window& win) { return rma::start(win, group, assertion); }
int Win_complete(Window& win) { return rma::complete_access(win); }
int Win_post(Group& group, int assertion, Window& win) { return rma::post(win, group, assertion); }
int Win_wait(Window& win) { return rma::wait_exposure(win); }
int Win_test(Window& win, int* flag) { return rma::test_exposure(win, flag); }
int Win_lock(int lock_type, int rank, int assertion, Window& win) { return rma::lock(win, lock_type, rank, assertion); }
int Win_lock_all(int assertion, Window& win) { return rma::lock_all(win, assertion); }
int Win_unlock(int rank, Window& win) { return rma::unlock(win, rank); }
int Win_unlock_all(Window& win) { return rma::unlock_all(win); }
int Win_flush(int rank, Window& win) { return rma::flush(win, rank, false); }
int Win_flush_all(Window& win) { return rma::flush(win, rma::every_target, false); }
int Win_flush_local(int rank, Window& win) { return rma::flush(win, rank, true); }
int Win_flush_local_all(Window& win) { return rma::flush(win, rma::every_target, true); }

int Win_sync(Window&) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
