// ranks: 1 2
// timeout: 60
// A window's own attributes with the callbacks that delete them, also as it is freed; its name; its error handlers, which get the window
// and the code, are set and read, called by hand, and outlive MPI_Errhandler_free.
#include "windows.hpp"

using namespace test;

namespace {

thread_local struct {
  int deleted = 0, keyval = 0;
  void *value = nullptr, *extra = nullptr;
  MPI_Win win = MPI_WIN_NULL;
  int result = MPI_SUCCESS;
} last;

int on_delete(MPI_Win win, int keyval, void* value, void* extra) {
  ++last.deleted;
  last.win = win, last.keyval = keyval, last.value = value, last.extra = extra;
  return last.result;
}

thread_local struct {
  int calls = 0, code = 0;
  MPI_Win win = MPI_WIN_NULL;
} seen;

void on_error_of_comm(MPI_Comm*, int*, ...) {}
void on_error(MPI_Win* win, int* code, ...) { seen = {seen.calls + 1, *code, *win}; }

void check_attributes(MPI_Comm comm) {
  MPI_Win win, second;
  CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
  CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &second));
  CHECK_OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  int extra = 1, a = 2, b = 3, key = MPI_KEYVAL_INVALID, other = MPI_KEYVAL_INVALID, flag = 1;
  void* got = nullptr;
  CHECK_OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &key, &extra));
  CHECK_OK(MPI_Win_create_keyval(MPI_WIN_DUP_FN, MPI_WIN_NULL_DELETE_FN, &other, nullptr));
  CHECK_OK(MPI_Win_get_attr(win, key, &got, &flag));
  CHECK(!flag);
  CHECK_OK(MPI_Win_set_attr(win, key, &a));
  CHECK_OK(MPI_Win_set_attr(win, other, &b));
  CHECK_OK(MPI_Win_set_attr(second, key, &b));
  CHECK_OK(MPI_Win_get_attr(win, key, &got, &flag));
  CHECK(flag && got == &a);
  CHECK_OK(MPI_Win_get_attr(second, key, &got, &flag));
  CHECK(flag && got == &b);
  CHECK_OK(MPI_Win_get_attr(second, other, &got, &flag));
  CHECK(!flag);
  // Set again: the value before is deleted.
  CHECK_EQ(last.deleted, 0);
  CHECK_OK(MPI_Win_set_attr(win, key, &b));
  CHECK(last.deleted == 1 && last.win == win && last.keyval == key && last.value == &a && last.extra == &extra);
  CHECK_OK(MPI_Win_delete_attr(win, key));
  CHECK(last.deleted == 2 && last.value == &b);
  CHECK_OK(MPI_Win_get_attr(win, key, &got, &flag));
  CHECK(!flag);
  CHECK_OK(MPI_Win_set_attr(win, key, nullptr));
  CHECK_OK(MPI_Win_get_attr(win, key, &got, &flag));
  CHECK(flag && got == nullptr);
  // A callback that fails keeps the attribute, and the window.
  last.result = MPI_ERR_OTHER;
  CHECK_NE(MPI_Win_delete_attr(win, key), MPI_SUCCESS);
  last.result = MPI_SUCCESS;
  CHECK_OK(MPI_Win_get_attr(win, key, &got, &flag));
  CHECK(flag);
  // Predefined ones cannot be changed; keys of other objects are none of windows.
  if (!library_is_mpich()) CHECK_CLASS(MPI_Win_set_attr(win, MPI_WIN_BASE, &a), MPI_ERR_KEYVAL);
  CHECK_NE(MPI_Win_set_attr(win, MPI_WIN_SIZE, &a), MPI_SUCCESS);
  CHECK_NE(MPI_Win_delete_attr(win, MPI_WIN_DISP_UNIT), MPI_SUCCESS);
  int of_comm = MPI_KEYVAL_INVALID;
  CHECK_OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &of_comm, nullptr));
  CHECK_CLASS(MPI_Win_set_attr(win, of_comm, &a), MPI_ERR_KEYVAL);
  CHECK_OK(MPI_Comm_free_keyval(&of_comm));
  // A key that is given back lives on in the windows that have it; they give it back themselves.
  const int freed = key, deleted = last.deleted;
  CHECK_OK(MPI_Win_free_keyval(&key));
  CHECK_EQ(key, MPI_KEYVAL_INVALID);
  MPI_Win handle = second;
  CHECK_OK(MPI_Win_free(&second));
  CHECK(last.deleted == deleted + 1 && last.win == handle && last.keyval == freed && last.value == &b);
  CHECK_OK(MPI_Win_free(&win));
  CHECK_EQ(last.deleted, deleted + 2);
  CHECK_OK(MPI_Win_free_keyval(&other));
}

void check_names(MPI_Comm comm) {
  MPI_Win win;
  CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
  char name[MPI_MAX_OBJECT_NAME] = "x";
  int length = -1;
  CHECK_OK(MPI_Win_get_name(win, name, &length));
  CHECK_STR(name, "");
  CHECK_EQ(length, 0);
  CHECK_OK(MPI_Win_set_name(win, "halo"));
  CHECK_OK(MPI_Win_get_name(win, name, &length));
  CHECK_STR(name, "halo");
  CHECK_EQ(length, 4);
  CHECK_OK(MPI_Win_set_name(win, ""));
  CHECK_OK(MPI_Win_get_name(win, name, &length));
  CHECK_STR(name, "");
  const std::string most(MPI_MAX_OBJECT_NAME - 1, 'n');
  CHECK_OK(MPI_Win_set_name(win, most.c_str()));
  CHECK_OK(MPI_Win_get_name(win, name, &length));
  CHECK_STR(name, most.c_str());
  CHECK_OK(MPI_Win_free(&win));
}

void check_handlers(MPI_Comm comm) {
  const int n = size_in(comm);
  MPI_Win win;
  long* base = nullptr;
  CHECK_OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &base, &win));
  MPI_Errhandler own, got;
  CHECK_OK(MPI_Win_create_errhandler(on_error, &own));
  CHECK_OK(MPI_Win_set_errhandler(win, own));
  CHECK_OK(MPI_Win_get_errhandler(win, &got));
  CHECK(got == own);
  CHECK_OK(MPI_Errhandler_free(&got));
  CHECK_OK(MPI_Errhandler_free(&own));
  CHECK(own == MPI_ERRHANDLER_NULL);
  seen = {};
  int code = MPI_Win_lock(MPI_LOCK_SHARED, n, 0, win);
  CHECK(seen.calls == 1 && seen.win == win && error_class(seen.code) == MPI_ERR_RANK);
  if (!library_is_mpich()) CHECK_EQ(code, seen.code);
  code = MPI_Win_unlock(0, win);
  CHECK(seen.calls == 2 && seen.win == win && error_class(seen.code) == MPI_ERR_RMA_SYNC);
  CHECK_OK(MPI_Win_call_errhandler(win, MPI_ERR_BASE));
  CHECK(seen.calls == 3 && seen.win == win && seen.code == MPI_ERR_BASE);
  MPI_Errhandler of_comm;
  CHECK_OK(MPI_Comm_create_errhandler(on_error_of_comm, &of_comm));
  code = MPI_Win_set_errhandler(win, of_comm);
  CHECK_NE(seen.calls, 3);
  CHECK_OK(MPI_Errhandler_free(&of_comm));
  // A window does not take its communicator's handler, and that not the window's.
  CHECK_CLASS(MPI_Comm_set_name(MPI_COMM_NULL, ""), MPI_ERR_COMM);
  const int calls = seen.calls;
  const int value = 1;
  CHECK_CLASS(MPI_Send(&value, 1, MPI_INT, n, 0, comm), MPI_ERR_RANK);
  CHECK_EQ(seen.calls, calls);
  CHECK_OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  CHECK_CLASS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
  CHECK_EQ(seen.calls, calls);
  CHECK_OK(MPI_Win_get_errhandler(win, &got));
  CHECK(got == MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&got);
  CHECK_OK(MPI_Win_free(&win));
}

}  // namespace

int main() {
  init();
  MPI_Comm comm = returning_world();
  CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  check_attributes(comm);
  check_names(comm);
  check_handlers(comm);
  MPI_Comm_free(&comm);
  return finish();
}
