// From C handles to objects and back. A handle below 4096 is predefined; any other is the object's address.
#pragma once

#include <mpi.h>

#include "sys/object.hpp"

namespace heddle {

/// The handle type of an object type, and where its predefined objects are.
/// Each object type's header specialises it: `using handle`, `static T* builtin(std::uintptr_t value)`.
template <typename T>
struct HandleTraits;

inline constexpr std::uintptr_t first_user_handle = 4096;

/// The object behind a handle, or nullptr when the handle is null, was freed or is of another kind. No lock.
template <typename T>
[[nodiscard]] inline T* resolve(typename HandleTraits<T>::handle handle) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  if (value < first_user_handle) return HandleTraits<T>::builtin(value);
  T* object = reinterpret_cast<T*>(handle);
  return object->is(T::object_kind) ? object : nullptr;
}

/// The handle of an object: its predefined value or its address.
template <typename T>
[[nodiscard]] inline typename HandleTraits<T>::handle to_handle(T* object) noexcept {
  const std::uintptr_t predefined = object->predefined_handle();
  return reinterpret_cast<typename HandleTraits<T>::handle>(predefined ? predefined
                                                                       : reinterpret_cast<std::uintptr_t>(object));
}

}  // namespace heddle
