// Error handlers, and raising an error through the right one. (Contract; the objects engineer owns it.)
#pragma once

#include "core/handle.hpp"
#include "sys/error.hpp"

namespace heddle {

struct Errhandler : Object {
  static constexpr Kind object_kind = Kind::errhandler;

  enum class Action : unsigned char { fatal, abort, ret, comm_function, win_function, file_function, session_function };
  Action action = Action::fatal;
  void (*function)(void*, int*, ...) = nullptr;  ///< the user's, cast back by `action`
  std::uintptr_t predefined_value = 0;

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
/// returns what MPI function `function` returns. A fatal handler prints the text and ends the job. \see MPI-5.0 §9.3
[[gnu::cold, gnu::noinline]] int raise(Comm* comm, int code, const char* function) noexcept;
[[gnu::cold, gnu::noinline]] int raise(Session* session, int code, const char* function) noexcept;
[[gnu::cold, gnu::noinline]] int raise(int code, const char* function) noexcept;

}  // namespace heddle
