// ranks: 1 2
// timeout: 30
// Info objects may be made, read, copied and freed at any time; MPI_INFO_ENV describes the program once MPI runs.
#include <unistd.h>

#include "../support.hpp"

using namespace test;

namespace {

std::string get(MPI_Info info, const char* key) {
  char text[MPI_MAX_INFO_VAL] = "";
  int length = sizeof text, flag = 0;
  CHECK_OK(MPI_Info_get_string(info, key, &length, text, &flag));
  if (flag) CHECK_EQ(static_cast<std::size_t>(length), std::strlen(text) + 1);
  return flag ? text : "(none)";
}

void exercise() {
  MPI_Info info, copy;
  CHECK_OK(MPI_Info_create(&info));
  CHECK_OK(MPI_Info_set(info, "b", "1"));
  CHECK_OK(MPI_Info_set(info, "a", "two words "));
  CHECK_OK(MPI_Info_set(info, "b", "3"));
  CHECK_OK(MPI_Info_dup(info, &copy));
  CHECK_OK(MPI_Info_delete(info, "b"));
  int count = -1;
  MPI_Info_get_nkeys(copy, &count);
  CHECK_EQ(count, 2);
  char key[MPI_MAX_INFO_KEY];
  MPI_Info_get_nthkey(copy, 0, key);
  CHECK_STR(key, "b");
  CHECK_EQ(get(copy, "b"), std::string("3"));
  CHECK_EQ(get(copy, "a"), std::string("two words "));
  CHECK_EQ(get(info, "b"), std::string("(none)"));
  MPI_Info_get_nkeys(info, &count);
  CHECK_EQ(count, 1);
  CHECK_OK(MPI_Info_free(&info));
  CHECK(info == MPI_INFO_NULL);
  CHECK_OK(MPI_Info_free(&copy));
}

}  // namespace

int main(int argc, char** argv) {
  exercise();
  MPI_Info env;
  CHECK_OK(MPI_Info_create_env(argc, argv, &env));
  if (!library_is_mpich()) CHECK_EQ(get(env, "command"), std::string(argv[0]));
  MPI_Info_free(&env);
  init();
  exercise();
  char directory[4096];
  CHECK(getcwd(directory, sizeof directory) != nullptr);
  if (!library_is_mpich()) {  // MPICH fills it from its own mpiexec only
    CHECK_EQ(get(MPI_INFO_ENV, "command"), std::string(argv[0]));
    CHECK_EQ(get(MPI_INFO_ENV, "wdir"), std::string(directory).substr(0, MPI_MAX_INFO_VAL - 1));
    CHECK_EQ(get(MPI_INFO_ENV, "thread_level"), std::string("MPI_THREAD_SINGLE"));
    CHECK(get(MPI_INFO_ENV, "mpi_memory_alloc_kinds").find("system") != std::string::npos);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Info stays = MPI_INFO_ENV, info;
    CHECK_CLASS(MPI_Info_free(&stays), MPI_ERR_INFO);
    MPI_Info_create(&info);
    CHECK_CLASS(MPI_Info_delete(info, "absent"), MPI_ERR_INFO_NOKEY);
    const std::string long_key(MPI_MAX_INFO_KEY, 'k'), long_value(MPI_MAX_INFO_VAL, 'v');
    CHECK_CLASS(MPI_Info_set(info, long_key.c_str(), "v"), MPI_ERR_INFO_KEY);
    CHECK_CLASS(MPI_Info_set(info, "k", long_value.c_str()), MPI_ERR_INFO_VALUE);
    MPI_Info_free(&info);
  }
  MPI_Finalize();
  exercise();
  return 0;
}
