#include "core/errhandler.hpp"

#include <cstdio>
#include <cstring>

#include "core/comm.hpp"
#include "core/runtime.hpp"
#include "core/session.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"

namespace heddle {
namespace {

HEDDLE_PARAM_CHOICE(initial, "HEDDLE_INITIAL_ERRHANDLER",
                    "error handler before MPI_Init and of MPI_COMM_WORLD at first: mpi_errors_are_fatal, mpi_errors_abort "
                    "or mpi_errors_return",
                    "mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return");

void make_predefined(Errhandler& handler, Errhandler::Action action, MPI_Errhandler value) noexcept {
  handler.kind.store(Kind::errhandler, std::memory_order_relaxed);
  handler.action = action;
  handler.predefined_value = reinterpret_cast<std::uintptr_t>(value);
}

/// Prints the one message that the user will see and ends the job.
[[noreturn]] void die(const char* where, int code, const char* function) noexcept {
  char text[MPI_MAX_ERROR_STRING];
  error_text(code, text);
  if (*where)
    sys::fatal("%s on %s: %s", function, where, text);
  sys::fatal("%s: %s", function, text);
}

/// "MPI_COMM_WORLD (rank 1 of 4)".
void describe(Comm& comm, char* text, std::size_t room) noexcept {
  char name[MPI_MAX_OBJECT_NAME];
  {
    std::lock_guard lock(comm.mutex);
    std::memcpy(name, comm.name, sizeof name);
  }
  if (*name)
    std::snprintf(text, room, "%s%s%s (rank %d of %d)", comm.predefined ? "" : "communicator \"", name,
                  comm.predefined ? "" : "\"", comm.rank, comm.size);
  else
    std::snprintf(text, room, "an unnamed communicator (rank %d of %d)", comm.rank, comm.size);
}

}  // namespace

Errhandler errhandler_fatal, errhandler_abort, errhandler_return;

namespace {
[[maybe_unused]] const bool predefined_ready = [] {
  make_predefined(errhandler_fatal, Errhandler::Action::fatal, MPI_ERRORS_ARE_FATAL);
  make_predefined(errhandler_abort, Errhandler::Action::abort, MPI_ERRORS_ABORT);
  make_predefined(errhandler_return, Errhandler::Action::ret, MPI_ERRORS_RETURN);
  return true;
}();
}  // namespace

Errhandler& initial_errhandler() noexcept {
  Errhandler* const handlers[] = {&errhandler_fatal, &errhandler_abort, &errhandler_return};  // as in the declaration
  return *handlers[initial.value()];
}

Errhandler* new_errhandler(Errhandler::Action action, void (*function)(void*, int*, ...)) noexcept {
  Errhandler* handler = pool<Errhandler>().create();
  if (!handler) return nullptr;
  handler->action = action;
  handler->function = function;
  return handler;
}

Errhandler* retain_errhandler(Errhandler* handler) noexcept {
  if (handler && !handler->predefined_value) handler->retain();
  return handler;
}

void release_errhandler(Errhandler* handler) noexcept {
  if (handler && !handler->predefined_value && handler->release()) pool<Errhandler>().destroy(handler);
}

Errhandler* ErrhandlerSlot::get(Errhandler& fallback) noexcept {
  std::lock_guard lock(mutex_);
  return retain_errhandler(handler_ ? handler_ : &fallback);
}

void ErrhandlerSlot::set(Errhandler* handler) noexcept {
  retain_errhandler(handler);
  Errhandler* old;
  {
    std::lock_guard lock(mutex_);
    old = std::exchange(handler_, handler);
  }
  release_errhandler(old);
}

int check_errhandler(const Errhandler& handler, Errhandler::Action function_action) noexcept {
  using Action = Errhandler::Action;
  if (handler.predefined_value || handler.action == function_action) return MPI_SUCCESS;
  const auto name = [](Action action) {
    switch (action) {
      case Action::comm_function: return "communicators";
      case Action::win_function: return "windows";
      case Action::file_function: return "files";
      default: return "sessions";
    }
  };
  return error(MPI_ERR_ERRHANDLER, "the error handler was made for %s, not for %s", name(handler.action),
               name(function_action));
}

MPI_Errhandler give_errhandler_to_user(Errhandler* handler) noexcept {
  if (!handler->predefined_value) handler->user_references.fetch_add(1, std::memory_order_relaxed);
  return to_handle(handler);
}

int free_user_errhandler(MPI_Errhandler* handle) noexcept {
  Errhandler* handler = resolve<Errhandler>(*handle);
  if (!handler) return error(MPI_ERR_ERRHANDLER, "the handle is null or was freed before");
  // A predefined one may be freed: MPI_Comm_get_errhandler asks the user to free whatever it returns.
  if (!handler->predefined_value) {
    int held = handler->user_references.load(std::memory_order_relaxed);
    do {
      if (held == 0) return error(MPI_ERR_ERRHANDLER, "the error handler was freed before");
    } while (!handler->user_references.compare_exchange_weak(held, held - 1, std::memory_order_relaxed));
    release_errhandler(handler);
  }
  *handle = MPI_ERRHANDLER_NULL;
  return MPI_SUCCESS;
}

int raise_through(Errhandler& handler, void* handle, const char* where, int code, const char* function) noexcept {
  using Action = Errhandler::Action;
  int passed = code;
  switch (handler.action) {
    case Action::ret: return code;
    case Action::fatal:
    case Action::abort: die(where, code, function);
    case Action::comm_function:
      reinterpret_cast<MPI_Comm_errhandler_function*>(handler.function)(static_cast<MPI_Comm*>(handle), &passed, function);
      return code;
    case Action::win_function:
      reinterpret_cast<MPI_Win_errhandler_function*>(handler.function)(static_cast<MPI_Win*>(handle), &passed, function);
      return code;
    case Action::file_function:
      reinterpret_cast<MPI_File_errhandler_function*>(handler.function)(static_cast<MPI_File*>(handle), &passed, function);
      return code;
    case Action::session_function:
      reinterpret_cast<MPI_Session_errhandler_function*>(handler.function)(static_cast<MPI_Session*>(handle), &passed,
                                                                          function);
      return code;
  }
  return code;
}

int raise(Comm* comm, int code, const char* function) noexcept {
  if (!comm) {
    if (world_phase() != Phase::running) return raise_through(initial_errhandler(), nullptr, "", code, function);
    Errhandler* handler = comm_self.errhandler.get(initial_errhandler());
    MPI_Comm self = MPI_COMM_SELF;
    raise_through(*handler, &self, "", code, function);
    release_errhandler(handler);
    return code;
  }
  if (comm->stands_for) comm = comm->stands_for;
  char where[MPI_MAX_OBJECT_NAME + 64];
  describe(*comm, where, sizeof where);
  Errhandler* handler = comm->errhandler.get(errhandler_fatal);
  MPI_Comm handle = to_handle(comm);
  raise_through(*handler, &handle, where, code, function);
  release_errhandler(handler);
  return code;
}

int raise(Session* session, int code, const char* function) noexcept {
  if (!session) return raise(code, function);
  Errhandler* handler = session->errhandler.get(errhandler_fatal);
  MPI_Session handle = to_handle(session);
  raise_through(*handler, &handle, "a session", code, function);
  release_errhandler(handler);
  return code;
}

int raise(int code, const char* function) noexcept { return raise(static_cast<Comm*>(nullptr), code, function); }

}  // namespace heddle
