// The session as an object. What opens and closes it: comm/session.hpp.
#pragma once

#include "core/errhandler.hpp"
#include "sys/handle.hpp"

namespace heddle {

struct Session : Object {
  static constexpr Kind object_kind = Kind::session;

  ErrhandlerSlot errhandler;
  int thread_level = MPI_THREAD_MULTIPLE;

  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return 0; }
};

template <>
struct HandleTraits<Session> {
  using handle = MPI_Session;
  static Session* builtin(std::uintptr_t) noexcept { return nullptr; }
};

}  // namespace heddle
