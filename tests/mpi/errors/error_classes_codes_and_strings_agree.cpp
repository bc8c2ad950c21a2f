// ranks: 1
// timeout: 30
// Every predefined class is its own class and has a text of its own; user classes, codes and strings behave as the
// standard says, MPI_LASTUSEDCODE follows, and MPI-4.1's removals take them away.
#include <set>

#include "../support.hpp"

using namespace test;

namespace {

int seen = 0;
void on_error(MPI_Comm*, int* code, ...) { seen = *code; }

int last_used_code() {
  int *value = nullptr, flag = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
  CHECK_EQ(flag, 1);
  return *value;
}

}  // namespace

int main() {
  init();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  std::set<std::string> texts;
  const int classes[] = {
      MPI_ERR_BUFFER,     MPI_ERR_COUNT,    MPI_ERR_TYPE,        MPI_ERR_TAG,           MPI_ERR_COMM,
      MPI_ERR_RANK,       MPI_ERR_REQUEST,  MPI_ERR_ROOT,        MPI_ERR_GROUP,         MPI_ERR_OP,
      MPI_ERR_TOPOLOGY,   MPI_ERR_DIMS,     MPI_ERR_ARG,         MPI_ERR_UNKNOWN,       MPI_ERR_TRUNCATE,
      MPI_ERR_OTHER,      MPI_ERR_INTERN,   MPI_ERR_IN_STATUS,   MPI_ERR_PENDING,       MPI_ERR_KEYVAL,
      MPI_ERR_NO_MEM,     MPI_ERR_BASE,     MPI_ERR_INFO_KEY,    MPI_ERR_INFO_VALUE,    MPI_ERR_INFO_NOKEY,
      MPI_ERR_SPAWN,      MPI_ERR_PORT,     MPI_ERR_SERVICE,     MPI_ERR_NAME,          MPI_ERR_WIN,
      MPI_ERR_SIZE,       MPI_ERR_DISP,     MPI_ERR_INFO,        MPI_ERR_LOCKTYPE,      MPI_ERR_ASSERT,
      MPI_ERR_RMA_SYNC,   MPI_ERR_FILE,     MPI_ERR_AMODE,       MPI_ERR_IO,            MPI_ERR_NO_SUCH_FILE,
      MPI_ERR_RMA_SHARED, MPI_ERR_SESSION,  MPI_ERR_PROC_ABORTED, MPI_ERR_VALUE_TOO_LARGE, MPI_ERR_UNSUPPORTED_OPERATION};
  for (const int cls : classes) {
    CHECK_EQ(error_class(cls), cls);
    const std::string text = error_text(cls);
    CHECK(!text.empty());
    if (library_is_heddle()) CHECK(texts.insert(text).second);  // each says something of its own
  }
  CHECK_EQ(error_class(MPI_SUCCESS), MPI_SUCCESS);
  CHECK(!error_text(MPI_SUCCESS).empty());

  CHECK_EQ(last_used_code(), MPI_ERR_LASTCODE);
  int cls = 0, code = 0, other = 0;
  CHECK_OK(MPI_Add_error_class(&cls));
  CHECK(cls > MPI_ERR_LASTCODE);
  CHECK(last_used_code() >= cls);
  CHECK_OK(MPI_Add_error_code(cls, &code));
  CHECK_OK(MPI_Add_error_code(MPI_ERR_IO, &other));
  CHECK(code != cls && other != code);
  if (!library_is_mpich()) CHECK(last_used_code() >= other);  // MPICH 5.0.2 counts codes of its own classes apart
  CHECK_EQ(error_class(code), cls);
  CHECK_EQ(error_class(cls), cls);
  CHECK_EQ(error_class(other), MPI_ERR_IO);
  CHECK_EQ(error_text(code), std::string());  // none yet
  CHECK_OK(MPI_Add_error_string(cls, "the warp broke"));
  CHECK_OK(MPI_Add_error_string(code, "thread 12 of the warp broke"));
  CHECK_EQ(error_text(cls), std::string("the warp broke"));
  CHECK_EQ(error_text(code), std::string("thread 12 of the warp broke"));
  if (!library_is_mpich()) {  // MPICH 5.0.2 cannot remove a code whose text was replaced
    CHECK_OK(MPI_Add_error_string(code, "mended"));
    CHECK_EQ(error_text(code), std::string("mended"));
  }
  if (!library_is_mpich()) CHECK(MPI_Add_error_string(MPI_ERR_RANK, "not yours") != MPI_SUCCESS);  // those texts stay

  CHECK(MPI_Remove_error_code(code) != MPI_SUCCESS);  // its text is left
  CHECK_OK(MPI_Remove_error_string(code));
  CHECK_EQ(error_text(code), std::string());
  CHECK_OK(MPI_Remove_error_string(cls));
  CHECK(MPI_Remove_error_class(cls) != MPI_SUCCESS);  // a code of it is left
  CHECK_OK(MPI_Remove_error_code(code));
  CHECK_OK(MPI_Add_error_string(cls, "the warp broke again"));
  CHECK(MPI_Remove_error_class(cls) != MPI_SUCCESS);  // its text is left
  CHECK_OK(MPI_Remove_error_string(cls));
  CHECK_OK(MPI_Remove_error_class(cls));
  CHECK_OK(MPI_Remove_error_code(other));

  // A handler called with a user's code sees it unchanged.
  CHECK_OK(MPI_Add_error_class(&cls));
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_call_errhandler(MPI_COMM_WORLD, cls);
  CHECK_EQ(seen, cls);
  MPI_Errhandler_free(&handler);
  return finish();
}
