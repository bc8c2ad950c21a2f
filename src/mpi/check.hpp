// Argument checks of the generated bindings: a compare and a branch each, everything that fails out of line.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <iterator>

#include "comm/session.hpp"
#include "comm/stream.hpp"
#include "comm/threadcomm.hpp"
#include "core/comm.hpp"
#include "core/count_array.hpp"
#include "core/datatype.hpp"
#include "core/errhandler.hpp"
#include "core/info.hpp"
#include "core/op.hpp"
#include "core/runtime.hpp"
#include "rma/window.hpp"
#include "sys/error.hpp"
#include "vci/request.hpp"

/// Every check returns MPI_SUCCESS or an error code whose text names the argument, its value and the remedy. `argument` is the
/// parameter's name in the standard. Implementations use the same functions for what only they can judge: arguments that
/// are significant at the root only, or not with MPI_IN_PLACE.
namespace heddle::check {

/// False with HEDDLE_CHECK=0. Handles are resolved and found invalid all the same.
[[gnu::visibility("hidden")]] extern bool enabled;
/// Takes HEDDLE_CHECK's value again, after MPI_T has set it.
void read_parameters() noexcept;

// --- the failing halves --------------------------------------------------------------------------------------------
[[gnu::cold, gnu::noinline]] int bad_count(MPI_Count count, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int bad_length(int length, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int null_pointer(const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int null_array(MPI_Count length, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int no_buffer(const void* p, MPI_Count count, const Datatype& type, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int not_committed(const Datatype& type, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int odd_rank(int rank, const Comm& comm, bool any_source, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int bad_rank(int rank, int size, const Comm& comm, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int odd_root(int root, const Comm& comm, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int bad_tag(int tag, bool any_tag, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int too_large(MPI_Count value, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int bad_comm(MPI_Comm comm, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int bad_type(MPI_Datatype type, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int bad_op(MPI_Op op, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int bad_group(MPI_Group group, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int bad_info(MPI_Info info, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int bad_errhandler(MPI_Errhandler errhandler, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int bad_session(MPI_Session session, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int bad_window(MPI_Win win, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int odd_target(int rank, const Window& window, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int bad_stream(MPIX_Stream stream, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int bad_threadcomm(MPI_Comm comm, const char* argument) noexcept;
[[gnu::cold, gnu::noinline]] int not_running() noexcept;

// --- the checks ----------------------------------------------------------------------------------------------------
/// A number of elements or bytes: not negative.
inline int count(MPI_Count n, const char* argument) noexcept {
  if (n < 0) [[unlikely]] return bad_count(n, argument);
  return MPI_SUCCESS;
}

/// A number of array elements, dimensions or the like: not negative.
inline int length(int n, const char* argument) noexcept {
  if (n < 0) [[unlikely]] return bad_length(n, argument);
  return MPI_SUCCESS;
}

inline int pointer(const void* p, const char* argument) noexcept {
  if (p == nullptr) [[unlikely]] return null_pointer(argument);
  return MPI_SUCCESS;
}

/// An array of `length` elements: not null unless it is empty.
inline int array(const void* p, MPI_Count length, const char* argument) noexcept {
  if (p == nullptr && length > 0) [[unlikely]] return null_array(length, argument);
  return MPI_SUCCESS;
}

/// A datatype for communication.
inline int committed(const Datatype& type, const char* argument) noexcept {
  if (!type.committed) [[unlikely]] return not_committed(type, argument);
  return MPI_SUCCESS;
}

/// Neither null (MPI_BOTTOM) nor MPI_IN_PLACE, in one comparison.
inline bool is_memory(const void* p) noexcept {
  return reinterpret_cast<std::uintptr_t>(p) > reinterpret_cast<std::uintptr_t>(MPI_IN_PLACE);
}
/// `count` elements of `type`: not null unless there is no data, or the datatype holds absolute addresses (MPI_BOTTOM). And not
/// MPI_IN_PLACE: where that is allowed, the buffer is not checked.
inline int buffer(const void* p, MPI_Count count, const Datatype& type, const char* argument) noexcept {
  if (!is_memory(p) && count > 0) [[unlikely]] return no_buffer(p, count, type, argument);
  return MPI_SUCCESS;
}

/// A rank to send to: in the peer group, or MPI_PROC_NULL.
inline int dest(int rank, const Comm& comm, const char* argument) noexcept {
  if (static_cast<unsigned>(rank) >= static_cast<unsigned>(comm.peer_size())) [[unlikely]]
    return odd_rank(rank, comm, false, argument);
  return MPI_SUCCESS;
}

/// A rank to receive from: in the peer group, MPI_PROC_NULL or MPI_ANY_SOURCE.
inline int source(int rank, const Comm& comm, const char* argument) noexcept {
  if (static_cast<unsigned>(rank) >= static_cast<unsigned>(comm.peer_size())) [[unlikely]]
    return odd_rank(rank, comm, true, argument);
  return MPI_SUCCESS;
}

/// A rank of the local group.
inline int rank(int value, const Comm& comm, const char* argument) noexcept {
  if (static_cast<unsigned>(value) >= static_cast<unsigned>(comm.size)) [[unlikely]]
    return bad_rank(value, comm.size, comm, argument);
  return MPI_SUCCESS;
}

/// The root of a collective; on an intercommunicator also MPI_ROOT and MPI_PROC_NULL.
inline int root(int value, const Comm& comm, const char* argument) noexcept {
  if (static_cast<unsigned>(value) >= static_cast<unsigned>(comm.size) || comm.inter) [[unlikely]]
    return odd_root(value, comm, argument);
  return MPI_SUCCESS;
}

/// A rank of the window, or MPI_PROC_NULL.
inline int target(int value, const Window& window, const char* argument) noexcept {
  if (static_cast<unsigned>(value) >= static_cast<unsigned>(window.size)) [[unlikely]]
    return odd_target(value, window, argument);
  return MPI_SUCCESS;
}

/// True where the root's own arguments of a rooted collective are significant.
inline bool at_root(int value, const Comm& comm) noexcept { return value == (comm.inter ? MPI_ROOT : comm.rank); }

/// True where the arguments of those who send to or receive from the root are significant.
inline bool at_leaf(const void* buffer, int value, const Comm& comm) noexcept {
  return comm.inter ? value >= 0 : buffer != MPI_IN_PLACE;
}

/// A tag to send with. Every non-negative int is one: MPI_TAG_UB is INT_MAX.
inline int tag(int value, const char* argument) noexcept {
  if (value < 0) [[unlikely]] return bad_tag(value, false, argument);
  return MPI_SUCCESS;
}

/// A tag to receive with: also MPI_ANY_TAG.
inline int rtag(int value, const char* argument) noexcept {
  if (value < 0 && value != MPI_ANY_TAG) [[unlikely]] return bad_tag(value, true, argument);
  return MPI_SUCCESS;
}

// --- the same as yes or no, for the functions on the path of a message ---------------------------------------------
// True: all is well. False: something unusual, which the checks above judge. No calls, so that nothing has to be saved.
/// Keeps the compiler from computing two of these into one flag: that takes registers, and they have to be saved first.
inline bool alone(bool test) noexcept {
  asm volatile("");
  return test;
}
/// The datatype, if there is one and it is ready for communication.
inline Datatype* usable_type(MPI_Datatype handle) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  Datatype* type = reinterpret_cast<Datatype*>(handle);
  if (value < first_user_handle) {
    const std::uintptr_t index = value - first_builtin_datatype;
    if (index >= std::size(builtin_datatypes)) return nullptr;
    type = &builtin_datatypes[index];
  } else if (!type->is(Kind::datatype)) {
    return nullptr;
  }
  return type->committed ? type : nullptr;
}
inline bool is_count(MPI_Count n) noexcept { return alone(n >= 0); }
inline bool is_length(int n) noexcept { return alone(n >= 0); }
inline bool is_pointer(const void* p) noexcept { return alone(p != nullptr); }
inline bool is_array(const void* p, MPI_Count length) noexcept { return alone(p != nullptr || length <= 0); }
inline bool is_buffer(const void* p, MPI_Count, const Datatype&) noexcept { return alone(is_memory(p)); }
inline bool is_dest(int rank, const Comm& comm) noexcept {
  return alone(static_cast<unsigned>(rank) < static_cast<unsigned>(comm.peer_size()));
}
inline bool is_target(int rank, const Window& window) noexcept {
  return alone(static_cast<unsigned>(rank) < static_cast<unsigned>(window.size));
}
inline bool is_source(int rank, const Comm& comm) noexcept {
  return alone(static_cast<unsigned>(rank) < static_cast<unsigned>(comm.peer_size())) || rank == MPI_ANY_SOURCE;
}
inline bool is_tag(int value) noexcept { return alone(value >= 0); }
inline bool is_rtag(int value) noexcept { return alone(value >= 0 || value == MPI_ANY_TAG); }

/// One side of a message whose datatype may be missing: all that `committed`, `count` and `buffer` check. For implementations,
/// where the arguments turn out to be significant.
inline int message(const void* p, MPI_Count n, const Datatype* type, const char* buffer_argument,
                   const char* count_argument, const char* type_argument) noexcept {
  if (!enabled && type) return MPI_SUCCESS;
  if (type == nullptr) [[unlikely]] return bad_type(MPI_DATATYPE_NULL, type_argument);
  int code = count(n, count_argument);
  if (code == MPI_SUCCESS) code = committed(*type, type_argument);
  if (code == MPI_SUCCESS) code = buffer(p, n, *type, buffer_argument);
  return code;
}

// --- for the bindings ----------------------------------------------------------------------------------------------
/// The communicator whose handle this is, or nullptr: not what it stands for in this thread only.
inline Comm* object_of(MPI_Comm handle) noexcept {
  Comm* const found = resolve<Comm>(handle);
  return found ? found : stream_comm(handle);
}
/// The communicator that a handle stands for where `resolve` finds none: one with streams, or a thread's rank of a thread communicator.
[[gnu::cold, gnu::noinline]] Comm* comm_behind(MPI_Comm comm) noexcept;
/// The communicator that a handle stands for in this thread, or nullptr.
inline Comm* comm(MPI_Comm handle) noexcept {
  Comm* const found = resolve<Comm>(handle);
  if (!found) [[unlikely]] return comm_behind(handle);
  return found;
}
/// The communicator behind `*comm`, for its error handler; nullptr when there is none.
[[gnu::cold, gnu::noinline]] Comm* pointee(MPI_Comm* comm) noexcept;
inline Window* pointee(MPI_Win* win) noexcept { return win ? resolve<Window>(*win) : nullptr; }
inline Session* pointee(MPI_Session* session) noexcept { return session ? resolve<Session>(*session) : nullptr; }

/// Stores a 64-bit result in the `int` of the plain function; what does not fit becomes MPI_UNDEFINED. \see MPI-5.0 §2.5.8
inline void narrow_or_undefined(MPI_Count value, int* out) noexcept {
  *out = value == static_cast<int>(value) ? static_cast<int>(value) : MPI_UNDEFINED;
}

/// The same; what does not fit is MPI_ERR_VALUE_TOO_LARGE.
inline int narrow(MPI_Count value, int* out, const char* argument) noexcept {
  if (value != static_cast<int>(value)) [[unlikely]] return too_large(value, argument);
  *out = static_cast<int>(value);
  return MPI_SUCCESS;
}

/// Raises `code` on the communicator that an implementation named with `blame`, else on the default handler.
[[gnu::cold, gnu::noinline]] int raise_blamed(int code, const char* function) noexcept;
/// The same for files, whose error handlers are not built: they return.
[[gnu::cold, gnu::noinline]] int raise(MPI_File file, int code, const char* function) noexcept;
/// For functions that get the error handler of the object to be made: it also gets their errors, with a null handle.
[[gnu::cold, gnu::noinline]] int raise(MPI_Errhandler handler, int code, const char* function) noexcept;

}  // namespace heddle::check

namespace heddle {

/// For implementations of functions that take requests (MPI_Wait and its family): the error `code` belongs to `comm`, so the
/// binding calls that communicator's error handler. Returns `code`: `return blame(request.comm, code);`. Refers to `comm` until then.
[[gnu::cold, gnu::noinline]] int blame(Comm* comm, int code) noexcept;

}  // namespace heddle
