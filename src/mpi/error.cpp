// Error handlers, error classes and codes. MPI-5.0 §9.3–9.5
#include <cstring>

#include "comm/session.hpp"
#include "core/comm.hpp"
#include "core/errhandler.hpp"
#include "generated/impl.hpp"

namespace heddle::mpi {
namespace {

using Action = Errhandler::Action;

int create(Action action, void (*function)(), MPI_Errhandler* handle) noexcept {
  if (!function) return error(MPI_ERR_ARG, "the error handler function is a null pointer");
  Errhandler* handler = new_errhandler(action, reinterpret_cast<void (*)(void*, int*, ...)>(function));
  if (!handler) return error(MPI_ERR_NO_MEM, "no memory for an error handler");
  *handle = to_handle(handler);
  return MPI_SUCCESS;
}

int set(ErrhandlerSlot& slot, Errhandler& handler, Action action) noexcept {
  if (const int code = check_errhandler(handler, action)) return code;
  slot.set(&handler);
  return MPI_SUCCESS;
}

/// What MPI_X_call_errhandler returns: success, whatever the handler did, if it came back. \see MPI-5.0 §9.5
int call(int) noexcept { return MPI_SUCCESS; }

}  // namespace

int Comm_create_errhandler(MPI_Comm_errhandler_function* function, MPI_Errhandler* errhandler) {
  return create(Action::comm_function, reinterpret_cast<void (*)()>(function), errhandler);
}

int Comm_set_errhandler(Comm& comm, Errhandler& errhandler) {
  return set(comm.errhandler, errhandler, Action::comm_function);
}

int Comm_get_errhandler(Comm& comm, MPI_Errhandler* errhandler) {
  *errhandler = give_errhandler_to_user(comm.errhandler.get(errhandler_fatal));
  return MPI_SUCCESS;
}

int Comm_call_errhandler(Comm& comm, int errorcode) {
  return call(raise(&comm, errorcode, "MPI_Comm_call_errhandler"));
}

int Session_create_errhandler(MPI_Session_errhandler_function* function, MPI_Errhandler* errhandler) {
  return create(Action::session_function, reinterpret_cast<void (*)()>(function), errhandler);
}

int Session_set_errhandler(Session& session, Errhandler& errhandler) {
  return set(session.errhandler, errhandler, Action::session_function);
}

int Session_get_errhandler(Session& session, MPI_Errhandler* errhandler) {
  *errhandler = give_errhandler_to_user(session.errhandler.get(errhandler_fatal));
  return MPI_SUCCESS;
}

int Session_call_errhandler(Session& session, int errorcode) {
  return call(raise(&session, errorcode, "MPI_Session_call_errhandler"));
}

// Handlers for windows and files can be made before those chapters are built: making one needs neither.
int Win_create_errhandler(MPI_Win_errhandler_function* function, MPI_Errhandler* errhandler) {
  return create(Action::win_function, reinterpret_cast<void (*)()>(function), errhandler);
}

int File_create_errhandler(MPI_File_errhandler_function* function, MPI_Errhandler* errhandler) {
  return create(Action::file_function, reinterpret_cast<void (*)()>(function), errhandler);
}

int Errhandler_free(MPI_Errhandler* errhandler) { return free_user_errhandler(errhandler); }

int Error_string(int errorcode, char* string, int* resultlen) {
  char text[MPI_MAX_ERROR_STRING];
  error_text(errorcode, text);
  *resultlen = static_cast<int>(std::strlen(text));
  std::memcpy(string, text, static_cast<std::size_t>(*resultlen) + 1);
  if (!is_error_code(errorcode)) return error(MPI_ERR_ARG, "%d is no error code", errorcode);
  return MPI_SUCCESS;
}

int Error_class(int errorcode, int* errorclass) {
  if (!is_error_code(errorcode)) return error(MPI_ERR_ARG, "%d is no error code", errorcode);
  *errorclass = error_class(errorcode);
  return MPI_SUCCESS;
}

int Add_error_class(int* errorclass) { return add_error_class(errorclass); }
int Add_error_code(int errorclass, int* errorcode) { return add_error_code(errorclass, errorcode); }
int Add_error_string(int errorcode, const char* string) { return add_error_string(errorcode, string); }
int Remove_error_class(int errorclass) { return remove_error_class(errorclass); }
int Remove_error_code(int errorcode) { return remove_error_code(errorcode); }
int Remove_error_string(int errorcode) { return remove_error_string(errorcode); }

}  // namespace heddle::mpi
