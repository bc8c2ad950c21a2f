// ranks: 1 2 4
// timeout: 60
// A program that never calls MPI_Init: sessions, process sets, a communicator of mpi://WORLD that communicates, errors through
// the session's handler, several sessions one after another and at once.
#include "../support.hpp"

using namespace test;

namespace {

int seen = 0;
void on_error(MPI_Session*, int* code, ...) { seen = error_class(*code); }

std::string set_name(MPI_Session session, int n) {
  int length = 0;
  CHECK_OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, nullptr));
  std::string name(static_cast<std::size_t>(length), '\0');
  CHECK_OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, name.data()));
  name.resize(std::strlen(name.c_str()));
  CHECK_EQ(static_cast<int>(name.size()) + 1, length);
  return name;
}

std::string get(MPI_Info info, const char* key) {
  char text[MPI_MAX_INFO_VAL] = "";
  int length = sizeof text, flag = 0;
  MPI_Info_get_string(info, key, &length, text, &flag);
  return flag ? text : "(none)";
}

void use(MPI_Session session, const char* tag) {
  int sets = 0;
  CHECK_OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets));
  CHECK_GE(sets, 2);
  bool world = false, self = false;
  for (int n = 0; n < sets; ++n) {
    world = world || set_name(session, n) == "mpi://WORLD";
    self = self || set_name(session, n) == "mpi://SELF";
  }
  CHECK(world && self);
  MPI_Group group, alone;
  CHECK_OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
  CHECK_OK(MPI_Group_from_session_pset(session, "mpi://SELF", &alone));
  int size = -1, one = -1, rank = -1;
  MPI_Group_size(group, &size);
  MPI_Group_size(alone, &one);
  MPI_Group_rank(group, &rank);
  CHECK_EQ(one, 1);
  MPI_Info info;
  CHECK_OK(MPI_Session_get_pset_info(session, "mpi://WORLD", &info));
  CHECK_EQ(get(info, "mpi_size"), std::to_string(size));
  MPI_Info_free(&info);

  MPI_Comm comm;
  CHECK_OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  int sum = -1;
  CHECK_OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK_EQ(sum, size * (size - 1) / 2);
  CHECK_OK(MPI_Comm_disconnect(&comm));
  MPI_Group_free(&group);
  MPI_Group_free(&alone);
}

}  // namespace

int main() {
  int flag = -1;
  MPI_Info info, used;
  MPI_Session a, b;
  MPI_Errhandler handler;
  CHECK_OK(MPI_Info_create(&info));
  CHECK_OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE"));
  CHECK_OK(MPI_Session_create_errhandler(on_error, &handler));
  CHECK_OK(MPI_Session_init(info, handler, &a));
  MPI_Info_free(&info);
  MPI_Initialized(&flag);
  CHECK_EQ(flag, 0);
  CHECK_OK(MPI_Session_get_info(a, &used));
  CHECK_EQ(get(used, "thread_level"), std::string("MPI_THREAD_MULTIPLE"));
  MPI_Info_free(&used);
  use(a, "org.example/a");

  MPI_Group none;
  const int code = MPI_Group_from_session_pset(a, "mpi://no/such/set", &none);
  CHECK(code != MPI_SUCCESS || none == MPI_GROUP_NULL || library_is_mpich());
  if (!library_is_mpich()) CHECK_EQ(seen, MPI_ERR_ARG);
  seen = 0;
  CHECK_OK(MPI_Session_call_errhandler(a, MPI_ERR_IO));
  CHECK_EQ(seen, MPI_ERR_IO);
  CHECK_OK(MPI_Errhandler_free(&handler));

  CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &b));
  use(b, "org.example/b");
  CHECK_OK(MPI_Session_finalize(&a));
  CHECK(a == MPI_SESSION_NULL);
  use(b, "org.example/b again");
  CHECK_OK(MPI_Session_finalize(&b));

  // What cannot be made has its errors in the handler that it would have got.
  if (!library_is_mpich()) {
    CHECK_OK(MPI_Info_create(&info));
    CHECK_OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_CHAOS"));
    CHECK_CLASS(MPI_Session_init(info, MPI_ERRORS_RETURN, &b), MPI_ERR_INFO_VALUE);
    MPI_Info_free(&info);
    MPI_Comm comm;
    CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &b));
    CHECK_CLASS(MPI_Comm_create_from_group(MPI_GROUP_NULL, "tag", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm), MPI_ERR_GROUP);
    CHECK_OK(MPI_Session_finalize(&b));
  }
  MPI_Finalized(&flag);
  CHECK_EQ(flag, 0);
  return 0;
}
