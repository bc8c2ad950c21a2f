// ranks: 1 2 3
// timeout: 60
// A duplicate has the same group and its own messages: the same source and tag on two communicators never mix. Hints, name
// and topology follow the standard: the name and the hints stay behind, MPI_Comm_dup_with_info brings new ones.
#include "../support.hpp"

using namespace test;

namespace {

bool hint(MPI_Comm comm, const char* key, std::string* value) {
  MPI_Info info;
  CHECK_OK(MPI_Comm_get_info(comm, &info));
  char text[MPI_MAX_INFO_VAL] = "";
  int length = sizeof text, flag = 0;
  CHECK_OK(MPI_Info_get_string(info, key, &length, text, &flag));
  MPI_Info_free(&info);
  *value = text;
  return flag != 0;
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm a, b, c;
  CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
  CHECK_OK(MPI_Comm_set_name(a, "the first"));
  CHECK_OK(MPI_Comm_dup(a, &b));
  int result = -1;
  MPI_Comm_compare(a, a, &result);
  CHECK_EQ(result, MPI_IDENT);
  MPI_Comm_compare(a, b, &result);
  CHECK_EQ(result, MPI_CONGRUENT);
  MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_SELF, &result);
  CHECK_EQ(result, w.size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL);
  MPI_Comm_split(a, 0, -w.rank, &c);
  MPI_Comm_compare(a, c, &result);
  CHECK_EQ(result, w.size == 1 ? MPI_CONGRUENT : MPI_SIMILAR);
  MPI_Comm_free(&c);

  char name[MPI_MAX_OBJECT_NAME] = "?";
  int length = -1;
  MPI_Comm_get_name(a, name, &length);
  CHECK_STR(name, "the first");
  CHECK_EQ(length, 9);
  MPI_Comm_get_name(b, name, &length);
  CHECK_STR(name, "");
  CHECK_EQ(length, 0);
  MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
  CHECK_STR(name, "MPI_COMM_WORLD");
  CHECK_OK(MPI_Comm_get_name(MPI_COMM_NULL, name, &length));
  CHECK_STR(name, "MPI_COMM_NULL");
  CHECK_EQ(length, 13);

  // Sent first on a, then on b; received first from b.
  const int to = (w.rank + 1) % w.size, from = (w.rank + w.size - 1) % w.size;
  int on_a = 100 + w.rank, on_b = 200 + w.rank, got_a = 0, got_b = 0;
  MPI_Request requests[2];
  MPI_Isend(&on_a, 1, MPI_INT, to, 3, a, &requests[0]);
  MPI_Isend(&on_b, 1, MPI_INT, to, 3, b, &requests[1]);
  MPI_Recv(&got_b, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, b, MPI_STATUS_IGNORE);
  MPI_Recv(&got_a, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, a, MPI_STATUS_IGNORE);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK_EQ(got_a, 100 + from);
  CHECK_EQ(got_b, 200 + from);

  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_exact_length", "true");
  MPI_Info_set(info, "no_library_knows_this", "true");
  CHECK_OK(MPI_Comm_dup_with_info(a, info, &c));
  std::string value;
  CHECK(hint(c, "mpi_assert_exact_length", &value));
  CHECK_EQ(value, std::string("true"));
  if (!library_is_mpich()) CHECK(!hint(c, "no_library_knows_this", &value));  // MPICH keeps what it ignores
  MPI_Comm d;
  CHECK_OK(MPI_Comm_dup(c, &d));
  if (hint(d, "mpi_assert_exact_length", &value)) CHECK_EQ(value, std::string("false"));
  MPI_Info_set(info, "mpi_assert_exact_length", "false");
  CHECK_OK(MPI_Comm_set_info(c, info));
  CHECK(hint(c, "mpi_assert_exact_length", &value));
  CHECK_EQ(value, std::string("false"));
  MPI_Info_free(&info);
  for (MPI_Comm* comm : {&a, &b, &c, &d}) CHECK_OK(MPI_Comm_free(comm));
  return finish();
}
