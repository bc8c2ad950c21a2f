// Info objects: ordered key/value lists. (Contract; the objects engineer owns it.)
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/handle.hpp"

namespace heddle {

struct Info : Object {
  static constexpr Kind object_kind = Kind::info;

  std::mutex mutex;  ///< guards entries: MPI lets threads share an info object
  std::vector<std::pair<std::string, std::string>> entries;  ///< in order of first setting
  std::uintptr_t predefined_value = 0;

  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return predefined_value; }
};

extern Info info_env;

template <>
struct HandleTraits<Info> {
  using handle = MPI_Info;
  static Info* builtin(std::uintptr_t value) noexcept {
    return value == reinterpret_cast<std::uintptr_t>(MPI_INFO_ENV) ? &info_env : nullptr;
  }
};

}  // namespace heddle
