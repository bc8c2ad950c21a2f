// Reduction operations, predefined and user-defined. (Contract; the collectives engineer owns it.)
#pragma once

#include "core/datatype.hpp"
#include "core/handle.hpp"

namespace heddle {

struct Op : Object {
  static constexpr Kind object_kind = Kind::op;

  bool commutative = true;
  bool builtin = false;
  bool large = false;                     ///< user_c is set instead of user
  MPI_User_function* user = nullptr;
  MPI_User_function_c* user_c = nullptr;
  std::uintptr_t predefined_value = 0;

  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return predefined_value; }
};

Op* builtin_op(std::uintptr_t value) noexcept;

template <>
struct HandleTraits<Op> {
  using handle = MPI_Op;
  static Op* builtin(std::uintptr_t value) noexcept { return builtin_op(value); }
};

void release(Op& op) noexcept;

/// MPI_SUCCESS when `op` is defined for `type`, else an MPI_ERR_OP code naming both. \see MPI-5.0 §6.9.2
int check_op(const Op& op, const Datatype& type) noexcept;

/// inout[i] = in[i] op inout[i] for `count` elements. \pre check_op(op, type) == MPI_SUCCESS
void apply(const Op& op, const void* in, void* inout, MPI_Count count, const Datatype& type) noexcept;

}  // namespace heddle
