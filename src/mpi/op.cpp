// MPI-5.0 §6.9: operations and local reductions.
#include "core/op.hpp"

#include "generated/impl.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {

int Reduce_local(const void* inbuf, void* inoutbuf, MPI_Count count, Datatype& datatype, Op& op) {
  if (const int code = check_op(op, datatype); code != MPI_SUCCESS) return code;
  if (count == 0) return MPI_SUCCESS;
  if (inbuf == inoutbuf && inbuf != nullptr)
    return error(MPI_ERR_BUFFER, "inbuf and inoutbuf are the same: a local reduction needs two buffers");
  apply(op, inbuf, inoutbuf, count, datatype);
  return MPI_SUCCESS;
}

int Op_create(MPI_User_function* user_fn, MPI_User_function_c* user_fn_c, int commute, MPI_Op* op) {
  if (!user_fn && !user_fn_c) return error(MPI_ERR_ARG, "user_fn is a null pointer");
  Op* made = pool<Op>().create();
  if (!made) return error(MPI_ERR_NO_MEM, "no memory for an operation");
  made->commutative = commute != 0;
  made->user = user_fn;
  made->user_c = user_fn_c;
  made->large = user_fn == nullptr;
  *op = to_handle(made);
  return MPI_SUCCESS;
}

int Op_free(MPI_Op* op) {
  Op* freed = resolve<Op>(*op);
  if (!freed) return error(MPI_ERR_OP, "no operation to free: the handle is null or was freed before");
  if (freed->builtin) return error(MPI_ERR_OP, "%s is predefined and cannot be freed", op_name(*freed));
  *op = MPI_OP_NULL;
  release(*freed);
  return MPI_SUCCESS;
}

int Op_commutative(Op& op, int* commute) {
  *commute = op.commutative;
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
