/* A program that leans on what the standard ABI fixes: handle constants, the status, sentinels, callbacks, sizes.
 * Its output does not depend on the library, except for the first line, so two libraries can be compared. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define EXPECT(condition)                                              \
  do {                                                                 \
    if (!(condition)) {                                                \
      fprintf(stderr, "abi_program.c:%d: %s\n", __LINE__, #condition); \
      ++failures;                                                      \
    }                                                                  \
  } while (0)

static void absolute_maximum(void* in, void* inout, int* count, MPI_Datatype* type) {
  EXPECT(*type == MPI_LONG);
  for (int i = 0; i < *count; ++i) {
    long a = labs(((long*)in)[i]), b = labs(((long*)inout)[i]);
    ((long*)inout)[i] = a > b ? a : b;
  }
}

static int copied, deleted;
static int copy_attribute(MPI_Comm comm, int key, void* extra, void* value, void* out, int* flag) {
  (void)comm, (void)key;
  EXPECT(extra == (void*)&copied);
  ++copied;
  *(void**)out = value;
  *flag = 1;
  return MPI_SUCCESS;
}
static int delete_attribute(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)extra;
  EXPECT(value == (void*)&deleted);
  ++deleted;
  return MPI_SUCCESS;
}

static int handled_class;
static void handle_error(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  MPI_Error_class(*code, &handled_class);
}

static void point_to_point(int rank, int size) {
  int right = (rank + 1) % size, left = (rank + size - 1) % size, count, flag, got[3] = {0};
  int mine[3] = {rank, 10 * rank, 100 * rank};
  MPI_Request requests[3];
  MPI_Status statuses[3], status;
  requests[2] = MPI_REQUEST_NULL;
  MPI_Irecv(got, 3, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(mine, 3, MPI_INT, right, 7, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(3, requests, statuses);
  MPI_Get_count(&statuses[0], MPI_INT, &count);
  EXPECT(count == 3 && statuses[0].MPI_SOURCE == left && statuses[0].MPI_TAG == 7 && got[2] == 100 * left);
  EXPECT(statuses[2].MPI_SOURCE == MPI_ANY_SOURCE && statuses[2].MPI_TAG == MPI_ANY_TAG);
  EXPECT(requests[0] == MPI_REQUEST_NULL);

  MPI_Sendrecv_replace(mine, 3, MPI_INT, right, 8, left, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT(mine[1] == 10 * left);
  MPI_Recv(got, 3, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
  EXPECT(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  EXPECT(!flag);
}

static void collectives(int rank, int size) {
  long value = rank % 2 ? -rank : rank, largest = 0;
  MPI_Op op;
  MPI_Op_create(absolute_maximum, 1, &op);
  MPI_Allreduce(&value, &largest, 1, MPI_LONG, op, MPI_COMM_WORLD);
  EXPECT(largest == size - 1);
  MPI_Op_free(&op);
  EXPECT(op == MPI_OP_NULL);

  double sum = rank;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(sum == size * (size - 1) / 2);
  struct {
    double value;
    int index;
  } pair = {-rank, rank}, best;
  MPI_Allreduce(&pair, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  EXPECT(best.value == 0 && best.index == 0);
  MPI_Request request;
  int root_value = rank == 0 ? 42 : 0;
  MPI_Ibcast(&root_value, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(root_value == 42);
}

static void datatypes(int rank, int size) {
  double matrix[4][4], column[4];
  for (int i = 0; i < 16; ++i) matrix[i / 4][i % 4] = 100 * rank + i;
  MPI_Datatype vector;
  MPI_Type_vector(4, 1, 4, MPI_DOUBLE, &vector);
  MPI_Type_commit(&vector);
  MPI_Sendrecv(&matrix[0][1], 1, vector, (rank + 1) % size, 1, column, 4, MPI_DOUBLE, (rank + size - 1) % size, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT(column[3] == 100 * ((rank + size - 1) % size) + 13);
  MPI_Aint lower, extent;
  MPI_Type_get_extent(vector, &lower, &extent);
  int bytes, integers, addresses, types, combiner;
  MPI_Type_size(vector, &bytes);
  MPI_Type_get_envelope(vector, &integers, &addresses, &types, &combiner);
  EXPECT(lower == 0 && extent == 13 * 8 && bytes == 32 && combiner == MPI_COMBINER_VECTOR);
  MPI_Type_free(&vector);
  EXPECT(vector == MPI_DATATYPE_NULL);
  MPI_Count large;
  MPI_Type_size_c(MPI_INT64_T, &large);
  EXPECT(large == 8);
}

static void objects(int rank, int size) {
  int key, flag, *tag_limit, compared, class;
  void* found;
  MPI_Comm copy, half;
  MPI_Comm_create_keyval(copy_attribute, delete_attribute, &key, &copied);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, &deleted);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_get_attr(copy, key, &found, &flag);
  EXPECT(flag && found == (void*)&deleted && copied == 1);
  MPI_Comm_compare(MPI_COMM_WORLD, copy, &compared);
  EXPECT(compared == MPI_CONGRUENT);
  MPI_Comm_free(&copy);
  EXPECT(deleted == 1 && copy == MPI_COMM_NULL);
  MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
  MPI_Comm_free_keyval(&key);
  EXPECT(key == MPI_KEYVAL_INVALID);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_limit, &flag);
  EXPECT(flag && *tag_limit >= 32767);

  MPI_Comm_split(MPI_COMM_WORLD, rank % 2 ? MPI_UNDEFINED : 0, -rank, &half);
  EXPECT((half == MPI_COMM_NULL) == (rank % 2 == 1));
  if (half != MPI_COMM_NULL) {
    int new_rank, new_size;
    MPI_Comm_rank(half, &new_rank);
    MPI_Comm_size(half, &new_size);
    EXPECT(new_size == (size + 1) / 2 && new_rank == new_size - 1 - rank / 2);
    MPI_Comm_free(&half);
  }

  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(handle_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_call_errhandler(MPI_COMM_WORLD,
                           MPI_ERR_RANK); /* not by a wrong call: a library may be built without checks */
  MPI_Error_class(MPI_ERR_RANK, &class);
  EXPECT(handled_class == MPI_ERR_RANK && class == MPI_ERR_RANK);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);

  MPI_Info info;
  char value[16];
  int room = sizeof value;
  MPI_Info_create(&info);
  MPI_Info_set(info, "key", "value");
  MPI_Info_get_string(info, "key", &room, value, &flag);
  EXPECT(flag && room == 6 && strcmp(value, "value") == 0);
  MPI_Info_free(&info);

  EXPECT(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_SELF)) == MPI_COMM_SELF);
}

int main(int argc, char** argv) {
  int rank, size, length, major, minor, total;
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_library_version(version, &length);
  MPI_Abi_get_version(&major, &minor);
  EXPECT(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);

#ifdef ABI_PROGRAM_MUST_FAIL
  EXPECT(sizeof(MPI_Status) == 24); /* it has 32 bytes */
#endif

  point_to_point(rank, size);
  collectives(rank, size);
  datatypes(rank, size);
  objects(rank, size);

  MPI_Reduce(&failures, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    version[strcspn(version, "\n")] = '\0';
    printf("library: %s\n", version);
    printf("%d ranks, %d failures, status of %d bytes, ABI %d.%d\n", size, total, (int)sizeof(MPI_Status), major,
           minor);
  }
  MPI_Finalize();
  return failures != 0;
}
