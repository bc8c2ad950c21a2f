#include "mpi/check.hpp"

#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "sys/params.hpp"

namespace heddle {
namespace {

HEDDLE_PARAM_BOOL(check_arguments, "HEDDLE_CHECK", 1,
                  "check the arguments of MPI functions; 0 saves a few instructions in programs known to be correct");

thread_local Comm* blamed = nullptr;

/// The name of a communicator for a message.
struct CommName {
  char text[MPI_MAX_OBJECT_NAME + 2];

  explicit CommName(const Comm& comm) noexcept {
    // The mutex guards the name only; the communicator is alive because the caller holds its handle.
    std::lock_guard lock(const_cast<Comm&>(comm).mutex);
    if (comm.name[0])
      std::snprintf(text, sizeof text, "'%s'", comm.name);
    else
      std::snprintf(text, sizeof text, "%s",
                    &comm == &comm_world ? "MPI_COMM_WORLD" : &comm == &comm_self ? "MPI_COMM_SELF" : "without a name");
  }
};

/// Why a handle is refused, for all kinds of handles.
int bad_handle(int error_class, const void* handle, const void* null_handle, const char* kind, const char* null_name,
               const char* maker, const char* argument) noexcept {
  if (!is_running() && handle != null_handle) return check::not_running();
  if (handle == null_handle)
    return error(error_class, "argument %s is %s; pass a %s made by %s", argument, null_name, kind, maker);
  if (handle == nullptr)
    return error(error_class, "argument %s is 0, which is never a %s: the variable was not set", argument, kind);
  if (reinterpret_cast<std::uintptr_t>(handle) < first_user_handle)
    return error(error_class, "argument %s (%p) is not a %s but a predefined handle of another kind or none", argument,
                 handle, kind);
  return error(error_class, "argument %s (%p) is not a valid %s: it was freed or never was one", argument, handle, kind);
}

}  // namespace

int blame(Comm* comm, int code) noexcept {
  if (comm) retain_comm(*comm);
  if (Comm* const before = std::exchange(blamed, comm)) release_comm(before);
  return code;
}

namespace check {

bool enabled = check_arguments.value() != 0;

void read_parameters() noexcept { enabled = check_arguments.value() != 0; }

int bad_count(MPI_Count n, const char* argument) noexcept {
  return error(MPI_ERR_COUNT, "argument %s is %lld; it must not be negative", argument, static_cast<long long>(n));
}

int bad_length(int n, const char* argument) noexcept {
  const bool is_count = std::strstr(argument, "count") != nullptr;  // the class for arguments of that name, in every MPI
  return error(is_count ? MPI_ERR_COUNT : MPI_ERR_ARG, "argument %s is %d; it must not be negative", argument, n);
}

int null_pointer(const char* argument) noexcept {
  return error(MPI_ERR_ARG, "argument %s is a null pointer; pass the address of a variable", argument);
}

int null_array(MPI_Count length, const char* argument) noexcept {
  return error(MPI_ERR_ARG, "argument %s is a null pointer; pass an array of %lld elements", argument,
               static_cast<long long>(length));
}

int no_buffer(const void* p, MPI_Count n, const Datatype& type, const char* argument) noexcept {
  if (p == MPI_IN_PLACE)
    return error(MPI_ERR_BUFFER, "argument %s is MPI_IN_PLACE, which it cannot be here; pass a buffer", argument);
  // MPI_BOTTOM is 0: right with a datatype of absolute addresses, and nothing lives in the first page of memory.
  constexpr MPI_Count first_page = 4096;
  if (type.size == 0 || type.true_lb >= first_page || type.true_lb < 0) return MPI_SUCCESS;
  return error(MPI_ERR_BUFFER,
               "argument %s is a null pointer though %lld element(s) of %lld bytes are to be moved; pass a buffer, or "
               "MPI_BOTTOM with a datatype of absolute addresses",
               argument, static_cast<long long>(n), static_cast<long long>(type.size));
}

int not_committed(const Datatype&, const char* argument) noexcept {
  return error(MPI_ERR_TYPE, "the datatype in argument %s has not been committed; call MPI_Type_commit first", argument);
}

int odd_rank(int rank, const Comm& comm, bool any_source, const char* argument) noexcept {
  if (rank == MPI_PROC_NULL || (any_source && rank == MPI_ANY_SOURCE)) return MPI_SUCCESS;
  if (rank == MPI_ANY_SOURCE)
    return error(MPI_ERR_RANK, "argument %s is MPI_ANY_SOURCE; a message needs one destination", argument);
  const CommName name(comm);
  return error(MPI_ERR_RANK, "argument %s is %d, outside %scommunicator %s of size %d; use 0 to %d%s or MPI_PROC_NULL",
               argument, rank, comm.inter ? "the remote group of " : "", name.text, comm.peer_size(), comm.peer_size() - 1,
               any_source ? ", MPI_ANY_SOURCE" : "");
}

int bad_rank(int rank, int size, const Comm& comm, const char* argument) noexcept {
  const CommName name(comm);
  return error(MPI_ERR_RANK, "argument %s is %d, outside communicator %s of size %d; use 0 to %d", argument, rank, name.text,
               size, size - 1);
}

int odd_root(int root, const Comm& comm, const char* argument) noexcept {
  if (comm.inter && (root == MPI_ROOT || root == MPI_PROC_NULL || (root >= 0 && root < comm.remote_size)))
    return MPI_SUCCESS;
  if (comm.inter && comm.remote_size == 0) return MPI_SUCCESS;
  const CommName name(comm);
  if (comm.inter)
    return error(MPI_ERR_ROOT,
                 "argument %s is %d; on intercommunicator %s it must be MPI_ROOT, MPI_PROC_NULL or a rank of the remote "
                 "group, 0 to %d",
                 argument, root, name.text, comm.remote_size - 1);
  return error(MPI_ERR_ROOT, "argument %s is %d, outside communicator %s of size %d; use 0 to %d", argument, root, name.text,
               comm.size, comm.size - 1);
}

int bad_tag(int tag, bool any_tag, const char* argument) noexcept {
  if (tag == MPI_ANY_TAG)
    return error(MPI_ERR_TAG, "argument %s is MPI_ANY_TAG; a message is sent with one tag, 0 to %d", argument, INT_MAX);
  return error(MPI_ERR_TAG, "argument %s is %d; use 0 to %d (MPI_TAG_UB)%s", argument, tag, INT_MAX,
               any_tag ? " or MPI_ANY_TAG" : "");
}

int too_large(MPI_Count value, const char* argument) noexcept {
  return error(MPI_ERR_VALUE_TOO_LARGE, "the value of %s, %lld, does not fit an int; use the function's _c form", argument,
               static_cast<long long>(value));
}

Comm* comm_behind(MPI_Comm comm) noexcept {
  Comm* const found = stream_comm(comm);
  return found ? found : comm_of_thread(comm);
}

int bad_stream(MPIX_Stream stream, const char* argument) noexcept {
  if (stream == MPIX_STREAM_NULL)
    return error(MPI_ERR_ARG, "argument %s is MPIX_STREAM_NULL; pass a stream made by MPIX_Stream_create", argument);
  return error(MPI_ERR_ARG, "argument %s (%p) is not a valid stream: it was freed or never was one", argument,
               static_cast<const void*>(stream));
}

Comm* pointee(MPI_Comm* comm) noexcept {
  if (!comm) return nullptr;
  Comm* const found = check::comm(*comm);
  return found ? found : errors_of(resolve<Threadcomm>(*comm));
}

int bad_threadcomm(MPI_Comm comm, const char* argument) noexcept {
  if (check::comm(comm))
    return error(MPI_ERR_COMM, "argument %s is a communicator, but no thread communicator; pass one made by MPIX_Threadcomm_init",
                 argument);
  return bad_handle(MPI_ERR_COMM, comm, MPI_COMM_NULL, "thread communicator", "MPI_COMM_NULL", "MPIX_Threadcomm_init", argument);
}

int bad_comm(MPI_Comm comm, const char* argument) noexcept {
  if (is_running() && resolve<Threadcomm>(comm))
    return error(MPI_ERR_COMM, "argument %s is a thread communicator in which this thread has no rank; call MPIX_Threadcomm_start",
                 argument);
  return bad_handle(MPI_ERR_COMM, comm, MPI_COMM_NULL, "communicator", "MPI_COMM_NULL",
                    "MPI_Comm_dup or MPI_Comm_split, or MPI_COMM_WORLD", argument);
}
int bad_type(MPI_Datatype type, const char* argument) noexcept {
  return bad_handle(MPI_ERR_TYPE, type, MPI_DATATYPE_NULL, "datatype", "MPI_DATATYPE_NULL",
                    "MPI_Type_vector and its like, or a predefined one", argument);
}
int bad_op(MPI_Op op, const char* argument) noexcept {
  return bad_handle(MPI_ERR_OP, op, MPI_OP_NULL, "reduction operation", "MPI_OP_NULL", "MPI_Op_create, or a predefined one",
                    argument);
}
int bad_group(MPI_Group group, const char* argument) noexcept {
  return bad_handle(MPI_ERR_GROUP, group, MPI_GROUP_NULL, "group", "MPI_GROUP_NULL", "MPI_Comm_group or MPI_Group_incl",
                    argument);
}
int bad_info(MPI_Info info, const char* argument) noexcept {
  if (reinterpret_cast<std::uintptr_t>(info) >= first_user_handle)  // valid before MPI_Init too
    return error(MPI_ERR_INFO, "argument %s (%p) is not a valid info object: it was freed or never was one", argument,
                 static_cast<const void*>(info));
  return error(MPI_ERR_INFO, "argument %s is %s; pass an info object made by MPI_Info_create", argument,
               info == MPI_INFO_NULL ? "MPI_INFO_NULL" : "not an info object");
}
int bad_errhandler(MPI_Errhandler errhandler, const char* argument) noexcept {
  return error(MPI_ERR_ERRHANDLER, "argument %s (%p) is not a valid error handler: %s", argument,
               static_cast<const void*>(errhandler),
               errhandler == MPI_ERRHANDLER_NULL ? "it is MPI_ERRHANDLER_NULL" : "it was freed or never was one");
}
int bad_session(MPI_Session session, const char* argument) noexcept {
  return error(MPI_ERR_SESSION, "argument %s is %s; pass a session opened by MPI_Session_init", argument,
               session == MPI_SESSION_NULL ? "MPI_SESSION_NULL" : "a session that was finalized or never was one");
}

int bad_window(MPI_Win win, const char* argument) noexcept {
  return error(MPI_ERR_WIN, "argument %s is %s; pass a window that MPI_Win_create or one of its kin returned", argument,
               win == MPI_WIN_NULL ? "MPI_WIN_NULL" : "a window that was freed or never was one");
}
int odd_target(int rank, const Window& window, const char* argument) noexcept {
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  return error(MPI_ERR_RANK, "argument %s is %d; the window has ranks 0 to %d (or MPI_PROC_NULL)", argument, rank, window.size - 1);
}

int not_running() noexcept {
  switch (world_phase()) {
    case Phase::before_init:
      return error(MPI_ERR_OTHER, "called before MPI_Init; call MPI_Init, MPI_Init_thread or MPI_Session_init first");
    case Phase::finalized: return error(MPI_ERR_OTHER, "called after MPI_Finalize");
    case Phase::running: break;
  }
  return error(MPI_ERR_INTERN, "called while MPI is not running");
}

int raise_blamed(int code, const char* function) noexcept {
  Comm* const comm = std::exchange(blamed, nullptr);  // the handler may call functions that fail
  if (!comm) return heddle::raise(code, function);
  heddle::raise(comm, code, function);
  release_comm(comm);
  return code;
}

int raise(MPI_File, int code, const char*) noexcept { return code; }

int raise(MPI_Errhandler handle, int code, const char* function) noexcept {
  Errhandler* handler = resolve<Errhandler>(handle);
  if (!handler) return heddle::raise(code, function);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Session session = MPI_SESSION_NULL;
  void* null_handle = &comm;
  if (handler->action == Errhandler::Action::session_function) null_handle = &session;
  return raise_through(*handler, null_handle, "", code, function);
}

}  // namespace check
}  // namespace heddle
