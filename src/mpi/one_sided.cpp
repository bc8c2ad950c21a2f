// One-sided communication: operations and synchronization. MPI-5.0 §12.3, §12.5
#include <cstring>

#include "generated/impl.hpp"
#include "rma/operations.hpp"
#include "rma/synchronize.hpp"
#include "sys/copy.hpp"
#include "sys/error.hpp"
#include "vci/request.hpp"

namespace heddle::mpi {
namespace {

/// Operations that read only, and so have no origin.
Buffer origin(const void* memory, MPI_Count count, Datatype* type, const Op& op) noexcept {
  return op.code == OpCode::no_op || !type ? Buffer{} : Buffer{memory, count, *type};
}

[[gnu::noinline]] int put(const void* here, MPI_Count count, Datatype& type, int rank, MPI_Aint displacement, MPI_Count there_count, Datatype& there_type, Window& win) noexcept {
  const int code = rma::put_anywhere(win, {here, count, type}, {rank, displacement, there_count, there_type}, nullptr, "MPI_Put");
  return code ? raise(&win, code, "MPI_Put") : code;
}
[[gnu::noinline]] int get(void* here, MPI_Count count, Datatype& type, int rank, MPI_Aint displacement, MPI_Count there_count, Datatype& there_type, Window& win) noexcept {
  const int code = rma::get_anywhere(win, {here, count, type}, {rank, displacement, there_count, there_type}, nullptr, "MPI_Get");
  return code ? raise(&win, code, "MPI_Get") : code;
}
[[gnu::noinline]] int fetch_and_op(const void* here, void* result, Datatype& type, int rank, MPI_Aint displacement, Op& op, Window& win) noexcept {
  const Buffer into{result, 1, type};
  const int code = rma::accumulate(win, origin(here, 1, &type, op), {rank, displacement, 1, type}, op, &into, nullptr, "MPI_Fetch_and_op");
  return code ? raise(&win, code, "MPI_Fetch_and_op") : code;
}

int give(int code, Request* const& made, MPI_Request* request) noexcept {
  if (!code) *request = to_handle(made);
  return code;
}

}  // namespace

// The common case, mapped memory, is here, so that nothing is saved or copied for the others. These raise their errors themselves, so that the
// binding ends in a jump.

int Put(const void* here, MPI_Count count, Datatype& type, int rank, MPI_Aint displacement, MPI_Count there_count, Datatype& there_type, Window& win) {
  const auto bytes = static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(type.size);
  std::byte* const to = type.contiguous ? rma::direct(rma::target_if_known(win, rank), win, displacement, bytes, there_count, there_type) : nullptr;
  if (!to) [[unlikely]] return put(here, count, type, rank, displacement, there_count, there_type, win);
  sys::copy_bytes(to, static_cast<const std::byte*>(here) + type.true_lb, bytes);
  return MPI_SUCCESS;
}

int Get(void* here, MPI_Count count, Datatype& type, int rank, MPI_Aint displacement, MPI_Count there_count, Datatype& there_type, Window& win) {
  const auto bytes = static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(type.size);
  const std::byte* const from = type.contiguous ? rma::direct(rma::target_if_known(win, rank), win, displacement, bytes, there_count, there_type) : nullptr;
  if (!from) [[unlikely]] return get(here, count, type, rank, displacement, there_count, there_type, win);
  sys::copy_bytes(static_cast<std::byte*>(here) + type.true_lb, from, bytes);
  return MPI_SUCCESS;
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
  rma::Target* const target = rma::target_if_known(win, rank);
  const auto bytes = static_cast<std::uint64_t>(type.size);
  std::byte* const to = type.builtin ? rma::direct(target, win, displacement, bytes, 1, type) : nullptr;
  // Elements of one word: they have no holes, and no alignment of their own at the origin.
  if (!to || bytes != sizeof(std::uint64_t) || (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(here)) % sizeof(std::uint64_t)) [[unlikely]]
    return fetch_and_op(here, result, type, rank, displacement, op, win);
  const OpKernel kernel = find_kernel(op.code, type.basic);
  if (!kernel) [[unlikely]] return fetch_and_op(here, result, type, rank, displacement, op, win);
  sync::StripeLock& lock = target->stripes->at(rma::owners_address(*target, to));
  lock.lock();
  std::memcpy(result, to, sizeof(std::uint64_t));
  kernel(here, to, 1);
  lock.unlock();
  return MPI_SUCCESS;
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
  rma::order_own_accesses();
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
