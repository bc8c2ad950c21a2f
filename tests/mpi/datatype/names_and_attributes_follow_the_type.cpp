// ranks: 1
// Names of types; attributes: set, copied by MPI_Type_dup as the key says, deleted with the type, in MPI_Type_free.
#include "../support.hpp"

using namespace test;

namespace {

int copies = 0, deletes = 0;
long extra = 5;

int copy_plus_one(MPI_Datatype, int, void* state, void* in, void* out, int* flag) {
  CHECK(state == &extra);
  ++copies;
  *static_cast<void**>(out) = static_cast<char*>(in) + 1;
  *flag = 1;
  return MPI_SUCCESS;
}
int copy_not(MPI_Datatype, int, void*, void*, void*, int* flag) {
  ++copies;
  *flag = 0;
  return MPI_SUCCESS;
}
int copy_fails(MPI_Datatype, int, void*, void*, void*, int*) { return MPI_ERR_OTHER; }
int count_delete(MPI_Datatype, int, void*, void* state) {
  CHECK(state == &extra);
  ++deletes;
  return MPI_SUCCESS;
}
int delete_fails(MPI_Datatype, int, void*, void* state) {
  return ++*static_cast<int*>(state) == 1 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

void* get(MPI_Datatype type, int key, int wanted = 1) {
  void* value = nullptr;
  int flag = -1;
  CHECK_OK(MPI_Type_get_attr(type, key, &value, &flag));
  CHECK_EQ(flag, wanted);
  return value;
}

}  // namespace

int main() {
  init();
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Datatype t, u;
  char name[MPI_MAX_OBJECT_NAME], place[4];
  int length = -1;
  CHECK_OK(MPI_Type_vector(2, 1, 2, MPI_INT, &t));
  CHECK_OK(MPI_Type_get_name(t, name, &length));
  CHECK(length == 0 && name[0] == 0);
  CHECK_OK(MPI_Type_set_name(t, "rows of the matrix"));
  CHECK_OK(MPI_Type_get_name(t, name, &length));
  CHECK_STR(name, "rows of the matrix");
  CHECK_EQ(length, 18);
  CHECK_OK(MPI_Type_set_name(t, ""));
  CHECK_OK(MPI_Type_get_name(t, name, &length));
  CHECK_EQ(length, 0);
  const std::string longest(MPI_MAX_OBJECT_NAME - 1, 'x');
  CHECK_OK(MPI_Type_set_name(t, longest.c_str()));
  CHECK_OK(MPI_Type_get_name(t, name, &length));
  CHECK(longest == name);
  CHECK_OK(MPI_Type_dup(t, &u));
  CHECK_OK(MPI_Type_get_name(u, name, &length));
  CHECK_EQ(length, 0);  // a duplicate has its own name
  CHECK_OK(MPI_Type_free(&u));
  CHECK_OK(MPI_Type_set_name(MPI_INT, "whole number"));
  CHECK_OK(MPI_Type_get_name(MPI_INT, name, &length));
  CHECK_STR(name, "whole number");
  CHECK_OK(MPI_Type_set_name(MPI_INT, "MPI_INT"));

  int plus, never, same, gone;
  CHECK_OK(MPI_Type_create_keyval(copy_plus_one, count_delete, &plus, &extra));
  CHECK_OK(MPI_Type_create_keyval(copy_not, count_delete, &never, &extra));
  CHECK_OK(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &same, nullptr));
  CHECK_OK(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, count_delete, &gone, &extra));
  get(t, plus, 0);
  CHECK_OK(MPI_Type_set_attr(t, plus, &place[0]));
  CHECK_OK(MPI_Type_set_attr(t, never, &place[1]));
  CHECK_OK(MPI_Type_set_attr(t, same, &place[2]));
  CHECK_OK(MPI_Type_set_attr(t, gone, &place[3]));
  CHECK(get(t, plus) == &place[0] && get(t, same) == &place[2]);

  CHECK_OK(MPI_Type_dup(t, &u));
  CHECK_EQ(copies, 2);
  CHECK(get(u, plus) == &place[1] && get(u, same) == &place[2]);
  get(u, never, 0);
  get(u, gone, 0);
  CHECK_EQ(deletes, 0);

  CHECK_OK(MPI_Type_set_attr(t, plus, &place[3]));  // the old value is deleted
  CHECK_EQ(deletes, 1);
  CHECK_OK(MPI_Type_delete_attr(t, gone));
  CHECK_EQ(deletes, 2);
  get(t, gone, 0);

  int freed = plus;
  CHECK_OK(MPI_Type_free_keyval(&freed));
  CHECK_EQ(freed, MPI_KEYVAL_INVALID);
  MPI_Datatype inner, outer;
  if (library_is_heddle()) {      // MPICH 5.0.2 deletes the attributes of a type only when no other type is made of it
    CHECK_OK(MPI_Type_free(&t));  // its two counted attributes go, by the callbacks of a freed key too
    CHECK_EQ(deletes, 4);
    CHECK_OK(MPI_Type_free(&u));
    CHECK_EQ(deletes, 5);

    // Attributes belong to the handle the user made: one that MPI_Type_get_contents gives does not delete them early.
    CHECK_OK(MPI_Type_contiguous(2, MPI_INT, &inner));
    CHECK_OK(MPI_Type_set_attr(inner, never, place));
    CHECK_OK(MPI_Type_contiguous(2, inner, &outer));
    CHECK_OK(MPI_Type_get_contents(outer, 1, 0, 1, &length, nullptr, &u));
    CHECK_OK(MPI_Type_free(&u));
    CHECK_EQ(deletes, 5);
    CHECK(get(inner, never) == place);
    CHECK_OK(MPI_Type_free(&inner));
    CHECK_EQ(deletes, 6);
    CHECK_OK(MPI_Type_free(&outer));
    CHECK_EQ(deletes, 6);
  } else {
    CHECK_OK(MPI_Type_free(&u));
    CHECK_OK(MPI_Type_free(&t));
    CHECK_EQ(deletes, 5);
  }

  // A callback that fails: the duplicate is not made, the type is not freed.
  int failing, stubborn, calls = 0;
  CHECK_OK(MPI_Type_create_keyval(copy_fails, MPI_TYPE_NULL_DELETE_FN, &failing, nullptr));
  CHECK_OK(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_fails, &stubborn, &calls));
  CHECK_OK(MPI_Type_contiguous(2, MPI_INT, &t));
  CHECK_OK(MPI_Type_set_attr(t, failing, nullptr));
  CHECK(MPI_Type_dup(t, &u) != MPI_SUCCESS);
  CHECK_OK(MPI_Type_set_attr(t, stubborn, nullptr));
  if (library_is_heddle()) {  // MPICH 5.0.2 frees the type all the same
    CHECK(MPI_Type_free(&t) != MPI_SUCCESS);
    CHECK(t != MPI_DATATYPE_NULL);
    CHECK_OK(MPI_Type_free(&t));
    CHECK_EQ(calls, 2);
  }
  for (int* key : {&never, &same, &gone, &failing, &stubborn}) CHECK_OK(MPI_Type_free_keyval(key));
  return finish();
}
