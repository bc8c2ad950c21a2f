// Sessions; MPI_Init is one too. (Contract; the objects engineer owns it.)
#pragma once

#include "core/handle.hpp"

namespace heddle {

struct Session : Object {
  static constexpr Kind object_kind = Kind::session;

  Errhandler* errhandler = nullptr;
  Info* info = nullptr;
  int thread_level = MPI_THREAD_MULTIPLE;

  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return 0; }
};

template <>
struct HandleTraits<Session> {
  using handle = MPI_Session;
  static Session* builtin(std::uintptr_t) noexcept { return nullptr; }
};

}  // namespace heddle
