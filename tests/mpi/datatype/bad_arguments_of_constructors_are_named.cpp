// ranks: 1
// Constructors refuse bad arguments with the right class and a text that names the argument; nothing leaks into the
// result.
#include "../support.hpp"

using namespace test;

namespace {

#define REFUSED(call, error_class, word)  \
  do {                                    \
    t = MPI_DATATYPE_NULL;                \
    const int code_ = (call);             \
    CHECK_CLASS(code_, error_class);      \
    CHECK_NAMES(error_text(code_), word); \
    CHECK(t == MPI_DATATYPE_NULL);        \
  } while (0)

}  // namespace

int main() {
  init();
  if (!library_is_heddle()) return finish();  // MPICH's ABI library is built with fewer checks and other texts
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Datatype t;
  const int good[] = {1, 1}, bad[] = {1, -1};
  const MPI_Aint at[] = {0, 8};
  const MPI_Datatype types[] = {MPI_INT, MPI_DATATYPE_NULL};

  REFUSED(MPI_Type_contiguous(-1, MPI_INT, &t), MPI_ERR_COUNT, "count");
  REFUSED(MPI_Type_contiguous_c(-1, MPI_INT, &t), MPI_ERR_COUNT, "count");
  REFUSED(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t), MPI_ERR_TYPE, "oldtype");
  REFUSED(MPI_Type_contiguous(1, reinterpret_cast<MPI_Datatype>(MPI_COMM_WORLD), &t), MPI_ERR_TYPE, "oldtype");
  CHECK_CLASS(MPI_Type_contiguous(1, MPI_INT, nullptr), MPI_ERR_ARG);
  REFUSED(MPI_Type_vector(-1, 1, 1, MPI_INT, &t), MPI_ERR_COUNT, "count");
  REFUSED(MPI_Type_vector(1, -1, 1, MPI_INT, &t), MPI_ERR_COUNT, "blocklength");
  REFUSED(MPI_Type_create_hvector(1, -1, 1, MPI_INT, &t), MPI_ERR_COUNT, "blocklength");
  REFUSED(MPI_Type_indexed(2, bad, good, MPI_INT, &t), MPI_ERR_COUNT, "array_of_blocklengths[1]");
  REFUSED(MPI_Type_indexed(2, nullptr, good, MPI_INT, &t), MPI_ERR_ARG, "array_of_blocklengths");
  REFUSED(MPI_Type_indexed(2, good, nullptr, MPI_INT, &t), MPI_ERR_ARG, "array_of_displacements");
  REFUSED(MPI_Type_create_hindexed(2, bad, at, MPI_INT, &t), MPI_ERR_COUNT, "array_of_blocklengths[1]");
  REFUSED(MPI_Type_create_indexed_block(2, -3, good, MPI_INT, &t), MPI_ERR_COUNT, "blocklength");
  REFUSED(MPI_Type_create_hindexed_block(2, 1, nullptr, MPI_INT, &t), MPI_ERR_ARG, "array_of_displacements");
  REFUSED(MPI_Type_create_struct(2, bad, at, types, &t), MPI_ERR_TYPE, "array_of_types[1]");
  REFUSED(MPI_Type_create_struct(2, good, at, nullptr, &t), MPI_ERR_ARG, "array_of_types");

  const int sizes[] = {4, 4}, parts[] = {2, 2}, starts[] = {1, 1}, big[] = {2, 5}, none[] = {0, 2}, late[] = {3, 1},
            before[] = {-1, 0};
  REFUSED(MPI_Type_create_subarray(0, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG, "ndims");
  REFUSED(MPI_Type_create_subarray(2, sizes, parts, starts, 99, MPI_INT, &t), MPI_ERR_ARG, "order");
  REFUSED(MPI_Type_create_subarray(2, none, parts, starts, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG, "array_of_sizes[0]");
  REFUSED(MPI_Type_create_subarray(2, sizes, big, starts, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG,
          "array_of_subsizes[1]");
  REFUSED(MPI_Type_create_subarray(2, sizes, none, starts, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG,
          "array_of_subsizes[0]");
  REFUSED(MPI_Type_create_subarray(2, sizes, parts, late, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG, "array_of_starts[0]");
  REFUSED(MPI_Type_create_subarray(2, sizes, parts, before, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG,
          "array_of_starts[0]");
  REFUSED(MPI_Type_create_subarray(2, nullptr, parts, starts, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG, "array_of_sizes");

  const int block[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK}, odd[] = {MPI_DISTRIBUTE_BLOCK, 77},
            kept[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE},
            automatic[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, tight[] = {MPI_DISTRIBUTE_DFLT_DARG, 1},
            zero[] = {0, 2}, grid[] = {2, 3}, wrong[] = {2, 2};
  const auto darray = [&](int size, int rank, const int* d, const int* a, const int* g) {
    return MPI_Type_create_darray(size, rank, 2, sizes, d, a, g, MPI_ORDER_C, MPI_INT, &t);
  };
  REFUSED(darray(6, 6, block, automatic, grid), MPI_ERR_ARG, "rank");
  REFUSED(darray(6, 0, block, automatic, wrong), MPI_ERR_ARG, "array_of_psizes");
  REFUSED(darray(6, 0, odd, automatic, grid), MPI_ERR_ARG, "array_of_distribs[1]");
  REFUSED(darray(6, 0, kept, automatic, grid), MPI_ERR_ARG, "array_of_psizes[1]");
  REFUSED(darray(6, 0, block, tight, grid), MPI_ERR_ARG, "array_of_dargs[1]");
  REFUSED(darray(6, 0, block, zero, grid), MPI_ERR_ARG, "array_of_dargs[0]");

  // Types that are not committed, that were freed, that are predefined.
  int x = 0;
  CHECK_OK(MPI_Type_vector(2, 1, 2, MPI_INT, &t));
  int position = 0;
  CHECK_CLASS(MPI_Pack(&x, 0, t, &x, 4, &position, MPI_COMM_SELF), MPI_ERR_TYPE);
  MPI_Datatype stale = t;
  CHECK_OK(MPI_Type_free(&t));
  CHECK_CLASS(MPI_Type_size(stale, &x), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_free(&stale), MPI_ERR_TYPE);
  t = MPI_INT;
  CHECK_CLASS(MPI_Type_free(&t), MPI_ERR_TYPE);
  CHECK(t == MPI_INT);
  t = MPI_DATATYPE_NULL;
  CHECK_CLASS(MPI_Type_free(&t), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_commit(&t), MPI_ERR_TYPE);

  // Freed by the user, still part of another type: the second free is refused, the other type works.
  MPI_Datatype outer;
  CHECK_OK(MPI_Type_contiguous(2, MPI_INT, &t));
  CHECK_OK(MPI_Type_contiguous(2, t, &outer));
  stale = t;
  CHECK_OK(MPI_Type_free(&t));
  CHECK_CLASS(MPI_Type_free(&stale), MPI_ERR_TYPE);
  CHECK_OK(MPI_Type_size(outer, &x));
  CHECK_EQ(x, 16);
  CHECK_OK(MPI_Type_free(&outer));
  return finish();
}
