// Operations as objects: the predefined ones, which types they take, and calling the user's.
#include "core/op.hpp"

#include <array>
#include <climits>

#include "core/basic_type.hpp"
#include "sys/error.hpp"

namespace heddle {
namespace {

struct Named {
  MPI_Op handle;
  OpCode code;
  const char* name;
};
const Named predefined[] = {
    {MPI_SUM, OpCode::sum, "MPI_SUM"},
    {MPI_MIN, OpCode::min, "MPI_MIN"},
    {MPI_MAX, OpCode::max, "MPI_MAX"},
    {MPI_PROD, OpCode::prod, "MPI_PROD"},
    {MPI_BAND, OpCode::band, "MPI_BAND"},
    {MPI_BOR, OpCode::bor, "MPI_BOR"},
    {MPI_BXOR, OpCode::bxor, "MPI_BXOR"},
    {MPI_LAND, OpCode::land, "MPI_LAND"},
    {MPI_LOR, OpCode::lor, "MPI_LOR"},
    {MPI_LXOR, OpCode::lxor, "MPI_LXOR"},
    {MPI_MINLOC, OpCode::minloc, "MPI_MINLOC"},
    {MPI_MAXLOC, OpCode::maxloc, "MPI_MAXLOC"},
    {MPI_REPLACE, OpCode::replace, "MPI_REPLACE"},
    {MPI_NO_OP, OpCode::no_op, "MPI_NO_OP"},
};

constexpr std::uintptr_t first_value = 0x20;  // the ABI's range of predefined operations

// Ready before any constructor of the program runs a reduction: built on first use.
struct Table {
  std::array<Op, 0x20> ops;
  Table() noexcept {
    for (const Named& named : predefined) {
      const auto value = reinterpret_cast<std::uintptr_t>(named.handle);
      Op& op = ops[value - first_value];
      op.code = named.code;
      op.builtin = true;
      op.commutative = named.code != OpCode::replace && named.code != OpCode::no_op;
      op.predefined_value = value;
      op.kind.store(Kind::op, std::memory_order_relaxed);
    }
  }
};

// A predefined type, or a duplicate of one: the same bytes in the same place.
bool is_basic(const Datatype& type) noexcept {
  if (type.basic == 0) return false;
  const BasicInfo& info = basic_info(type.basic);
  return type.builtin || (type.size == info.size && type.extent == info.extent && type.true_lb == 0 && type.lb == 0);
}

}  // namespace

Op* builtin_op(std::uintptr_t value) noexcept {
  static Table table;
  const std::uintptr_t index = value - first_value;
  if (index >= table.ops.size() || !table.ops[index].builtin) return nullptr;
  return &table.ops[index];
}

void release(Op& op) noexcept {
  if (!op.builtin && op.release()) pool<Op>().destroy(&op);
}

const char* op_name(const Op& op) noexcept {
  for (const Named& named : predefined)
    if (op.builtin && named.code == op.code) return named.name;
  return "a user-defined operation";
}

int check_op(const Op& op, const Datatype& type) noexcept {
  if (!op.builtin || (is_basic(type) && find_kernel(op.code, type.basic))) [[likely]]
    return MPI_SUCCESS;
  if (op.code == OpCode::replace || op.code == OpCode::no_op)
    return error(MPI_ERR_OP, "%s is for one-sided communication and not for reductions", op_name(op));
  if (!is_basic(type))
    return error(
        MPI_ERR_OP,
        "%s is not defined for a derived datatype: use a predefined datatype, or make an operation for this one "
        "with MPI_Op_create",
        op_name(op));
  return error(MPI_ERR_OP, "%s is not defined for %s", op_name(op), basic_info(type.basic).name);
}

void apply(const Op& op, const void* in, void* inout, MPI_Count count, Datatype& type) noexcept {
  if (op.builtin) [[likely]]
    return find_kernel(op.code, type.basic)(in, inout, count);
  MPI_Datatype handle = to_handle(&type);
  if (op.large) return op.user_c(const_cast<void*>(in), inout, &count, &handle);
  const auto* from = static_cast<const char*>(in);
  auto* to = static_cast<char*>(inout);
  while (count > 0) {  // the function takes an int
    int part = count > INT_MAX ? INT_MAX : static_cast<int>(count);
    const MPI_Count done = part;
    op.user(const_cast<char*>(from), to, &part, &handle);
    from += done * type.extent;
    to += done * type.extent;
    count -= done;
  }
}

}  // namespace heddle
