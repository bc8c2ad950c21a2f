// ranks: 1 2
// timeout: 60
// endpoints: none (sessions know processes)
// Communicators of a session have no attributes of the world's but MPI_TAG_UB (MPI-5.0 section 9.1.2), nor have their duplicates; and
// they are not compared with those of another session or of the world.
#include "../support.hpp"

using namespace test;

namespace {

MPI_Comm world_of(MPI_Session session, const char* tag) {
  MPI_Group group;
  MPI_Comm comm;
  CHECK_OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
  CHECK_OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  CHECK_OK(MPI_Group_free(&group));
  return comm;
}

bool has(MPI_Comm comm, int keyval) {
  int *value = nullptr, flag = -1;
  CHECK_OK(MPI_Comm_get_attr(comm, keyval, &value, &flag));
  if (flag) CHECK(value != nullptr);
  return flag != 0;
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Session a, b;
  CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &a));
  CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &b));
  MPI_Comm first = world_of(a, "org.example/first"), second = world_of(a, "org.example/second"), other = world_of(b, "org.example/other");
  MPI_Comm copy, part;
  CHECK_OK(MPI_Comm_dup(first, &copy));
  CHECK_OK(MPI_Comm_split(first, 0, w.rank, &part));

  for (MPI_Comm comm : {first, copy, part}) {
    CHECK(has(comm, MPI_TAG_UB));
    for (int keyval : {MPI_HOST, MPI_IO, MPI_WTIME_IS_GLOBAL, MPI_APPNUM, MPI_UNIVERSE_SIZE, MPI_LASTUSEDCODE})
      CHECK(!has(comm, keyval));
  }
  CHECK(has(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL));

  int result = -1;
  CHECK_OK(MPI_Comm_compare(first, first, &result));
  CHECK_EQ(result, MPI_IDENT);
  for (MPI_Comm comm : {second, copy, part}) {
    CHECK_OK(MPI_Comm_compare(first, comm, &result));
    CHECK_EQ(result, MPI_CONGRUENT);
  }
  CHECK_CLASS(MPI_Comm_compare(first, other, &result), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_compare(copy, MPI_COMM_WORLD, &result), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_compare(MPI_COMM_WORLD, other, &result), MPI_ERR_COMM);

  for (MPI_Comm* comm : {&first, &second, &other, &copy, &part}) CHECK_OK(MPI_Comm_free(comm));
  CHECK_OK(MPI_Session_finalize(&a));
  CHECK_OK(MPI_Session_finalize(&b));
  return finish();
}
