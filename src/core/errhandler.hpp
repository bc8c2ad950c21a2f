// Error handlers, and raising an error through the right one. \see MPI-5.0 §9.3
#pragma once

#include <atomic>
#include <mutex>

#include "sys/error.hpp"
#include "sys/handle.hpp"

namespace heddle {

struct Comm;
struct Session;

struct Errhandler : Object {
  static constexpr Kind object_kind = Kind::errhandler;

  enum class Action : unsigned char { fatal, abort, ret, comm_function, win_function, file_function, session_function };
  Action action = Action::fatal;
  void (*function)(void*, int*, ...) = nullptr;  ///< the user's, cast back by `action`
  std::uintptr_t predefined_value = 0;
  /// Of the references, those that the user holds: one for creation, one for each MPI_X_get_errhandler.
  std::atomic<int> user_references{1};

  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return predefined_value; }
};

extern Errhandler errhandler_fatal, errhandler_abort, errhandler_return;

template <>
struct HandleTraits<Errhandler> {
  using handle = MPI_Errhandler;
  static Errhandler* builtin(std::uintptr_t value) noexcept {
    if (value == reinterpret_cast<std::uintptr_t>(MPI_ERRORS_ARE_FATAL)) return &errhandler_fatal;
    if (value == reinterpret_cast<std::uintptr_t>(MPI_ERRORS_ABORT)) return &errhandler_abort;
    if (value == reinterpret_cast<std::uintptr_t>(MPI_ERRORS_RETURN)) return &errhandler_return;
    return nullptr;
  }
};

/// Gives `code` to the error handler of `comm` (nullptr: the default, that of MPI_COMM_SELF; before MPI_Init the initial one) and
/// returns what MPI function `function` returns. A fatal handler prints the text and ends the job. No lock is held while a user's
/// handler runs. \see MPI-5.0 §9.3
[[gnu::cold, gnu::noinline]] int raise(Comm* comm, int code, const char* function) noexcept;
[[gnu::cold, gnu::noinline]] int raise(Session* session, int code, const char* function) noexcept;
[[gnu::cold, gnu::noinline]] int raise(int code, const char* function) noexcept;

/// The same for any other object that has an error handler (windows, files). `handle` is the address of a variable that holds the
/// user's handle, `where` describes the object for a person ("window 'x' of MPI_COMM_WORLD"). The caller keeps `handler` alive.
[[gnu::cold, gnu::noinline]] int raise_through(Errhandler& handler, void* handle, const char* where, int code,
                                               const char* function) noexcept;

/// Where an object keeps its error handler: get and set from any thread. Costs a lock; errors are cold.
class ErrhandlerSlot {
 public:
  ErrhandlerSlot() = default;
  ErrhandlerSlot(const ErrhandlerSlot&) = delete;
  ErrhandlerSlot& operator=(const ErrhandlerSlot&) = delete;
  ~ErrhandlerSlot() { set(nullptr); }

  /// The handler with a reference of the caller's, `fallback` when none was set.
  [[nodiscard]] Errhandler* get(Errhandler& fallback) noexcept;
  void set(Errhandler* handler) noexcept;  ///< takes a reference of its own

 private:
  std::mutex mutex_;
  Errhandler* handler_ = nullptr;
};

/// The handler in force before MPI_Init and for new sessions and MPI_COMM_WORLD (parameter HEDDLE_INITIAL_ERRHANDLER).
Errhandler& initial_errhandler() noexcept;

/// A user's handler with one reference, which is the user's. nullptr when memory is out.
Errhandler* new_errhandler(Errhandler::Action action, void (*function)(void*, int*, ...)) noexcept;
Errhandler* retain_errhandler(Errhandler* handler) noexcept;
void release_errhandler(Errhandler* handler) noexcept;

/// MPI_SUCCESS when `handler` can be attached to objects of which `function_action` handlers are made.
int check_errhandler(const Errhandler& handler, Errhandler::Action function_action) noexcept;

/// What MPI_X_get_errhandler returns: `handler` with its reference becomes the user's.
MPI_Errhandler give_errhandler_to_user(Errhandler* handler) noexcept;
/// MPI_Errhandler_free: drops the user's reference.
int free_user_errhandler(MPI_Errhandler* handle) noexcept;

}  // namespace heddle
