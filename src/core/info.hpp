// Info objects: ordered key/value lists. \see MPI-5.0 §10
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sys/handle.hpp"

namespace heddle {

struct Info : Object {
  static constexpr Kind object_kind = Kind::info;

  std::mutex mutex;  ///< guards entries: MPI lets threads share an info object
  std::vector<std::pair<std::string, std::string>> entries;  ///< in order of first setting
  std::uintptr_t predefined_value = 0;

  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return predefined_value; }

  /// The value of `key`; false when it is not there. Takes the lock.
  [[nodiscard]] bool find(std::string_view key, std::string* value) noexcept;
  /// Sets or replaces. Takes the lock; no checks.
  void put(std::string_view key, std::string_view value) noexcept;
};

extern Info info_env;

template <>
struct HandleTraits<Info> {
  using handle = MPI_Info;
  static Info* builtin(std::uintptr_t value) noexcept {
    return value == reinterpret_cast<std::uintptr_t>(MPI_INFO_ENV) ? &info_env : nullptr;
  }
};

/// A new info object with one reference, nullptr when memory is out; `release_info` ends its life.
Info* new_info() noexcept;
Info* clone_info(Info& info) noexcept;
void release_info(Info* info) noexcept;

/// True when `info` (may be nullptr: MPI_INFO_NULL) has `key` with a value that means yes: "true", "yes", "1", "on".
bool info_flag(Info* info, std::string_view key, bool fallback) noexcept;

/// The functions of the chapter. Thread-safe. Return an error code.
int info_set(Info& info, const char* key, const char* value) noexcept;
int info_delete(Info& info, const char* key) noexcept;
/// `*buffer_length` includes the terminator, as MPI_Info_get_string has it; 0 asks for the length only.
int info_get_string(Info& info, const char* key, int* buffer_length, char* value, int* flag) noexcept;
/// MPI_Info_get: at most `value_length` characters and a terminator.
int info_get(Info& info, const char* key, int value_length, char* value, int* flag) noexcept;
int info_get_value_length(Info& info, const char* key, int* length, int* flag) noexcept;
int info_get_nth_key(Info& info, int n, char* key) noexcept;
int info_count(Info& info) noexcept;

/// What MPI_INFO_ENV would say of a program started as `argv` (nullptr: read from the system): command, argv, wdir, host,
/// arch, thread_level, maxprocs where the launcher told it. \see MPI-5.0 §11.2.1
void fill_environment(Info& info, int argc, char** argv) noexcept;

/// The memory kinds that this library supports, for `mpi_memory_alloc_kinds` (MPI-5.0 §11.4.3).
inline constexpr const char* memory_alloc_kinds = "mpi,system";

}  // namespace heddle
