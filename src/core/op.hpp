// Reduction operations, predefined and user-defined.
#pragma once

#include "core/datatype.hpp"
#include "sys/handle.hpp"

namespace heddle {

/// What a predefined operation does; `user` for those made by MPI_Op_create.
enum class OpCode : std::uint8_t {
  user,
  sum,
  min,
  max,
  prod,
  band,
  bor,
  bxor,
  land,
  lor,
  lxor,
  minloc,
  maxloc,
  replace,
  no_op
};
inline constexpr int op_codes = 15;

/// A reduction operation. Immutable once made. User-defined ones are reference counted, for schedules outlive
/// MPI_Op_free.
struct Op : Object {
  static constexpr Kind object_kind = Kind::op;

  OpCode code = OpCode::user;
  bool commutative = true;
  bool builtin = false;
  bool large = false;  ///< user_c is set instead of user
  MPI_User_function* user = nullptr;
  MPI_User_function_c* user_c = nullptr;
  std::uintptr_t predefined_value = 0;

  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return predefined_value; }
};

/// The predefined operation with this ABI handle value (0x21–0x3d), or nullptr. A table look-up.
Op* builtin_op(std::uintptr_t value) noexcept;

template <>
struct HandleTraits<Op> {
  using handle = MPI_Op;
  static Op* builtin(std::uintptr_t value) noexcept { return builtin_op(value); }
};

/// Reference counting that skips predefined operations.
inline void retain(Op& op) noexcept {
  if (!op.builtin) op.retain();
}
void release(Op& op) noexcept;

/// The standard's name of a predefined operation ("MPI_SUM"), or "a user-defined operation".
const char* op_name(const Op& op) noexcept;

/// MPI_SUCCESS when `op` may be used in a reduction of `type`, else an MPI_ERR_OP code naming both. User-defined
/// operations may be used with every type; predefined ones with the predefined types of their group (and duplicates of
/// these). MPI_REPLACE and MPI_NO_OP are for MPI_Accumulate only. \see MPI-5.0 §6.9.2, §6.9.4
int check_op(const Op& op, const Datatype& type) noexcept;

/// inout[i] = in[i] op inout[i] for `count` elements. The buffers do not overlap. Thread-safe on different `inout`.
/// \pre check_op(op, type) == MPI_SUCCESS
void apply(const Op& op, const void* in, void* inout, MPI_Count count, Datatype& type) noexcept;

/// One predefined operation on one basic type (core/basic_type.hpp): what `apply` calls, for those who look it up once.
/// nullptr when the operation is not defined for the type. Arguments: in, inout, number of elements.
using OpKernel = void (*)(const void*, void*, MPI_Count) noexcept;
OpKernel find_kernel(OpCode code, std::uint8_t basic) noexcept;

}  // namespace heddle
