// ranks: 2
// timeout: 30
// Count and elements of what arrived by several types, partial elements, MPI_ERROR left alone by single completions,
// MPI_Status_set_* and the MPI-4.1 getters and setters, cancelled flag.
#include "../support.hpp"

using namespace test;

namespace {

void counts(const World& w) {
  struct Pair {
    int i;
    double d;
  };
  MPI_Datatype pair, triple;
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {0, offsetof(Pair, d)};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
  MPI_Type_create_struct(2, lengths, places, types, &pair);
  MPI_Type_commit(&pair);
  MPI_Type_contiguous(3, MPI_SHORT, &triple);
  MPI_Type_commit(&triple);

  if (w.rank == 0) {
    // 7 shorts: two triples and one third.
    const short shorts[7] = {1, 2, 3, 4, 5, 6, 7};
    MPI_Send(shorts, 7, MPI_SHORT, 1, 1, MPI_COMM_WORLD);
    // Two whole pairs, and then one int more: three elements in all but not a whole number of pairs.
    Pair pairs[2] = {{1, 1.5}, {2, 2.5}};
    MPI_Send(pairs, 2, pair, 1, 2, MPI_COMM_WORLD);
    const int one = 1;
    MPI_Send(&one, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    MPI_Send(nullptr, 0, MPI_INT, 1, 4, MPI_COMM_WORLD);
  } else {
    short shorts[12] = {};
    Pair pairs[4] = {};
    MPI_Status status = dirty_status();
    int count = 0;
    MPI_Count big = 0;
    MPI_Recv(shorts, 4, triple, 0, 1, MPI_COMM_WORLD, &status);
    CHECK_EQ(status.MPI_ERROR, 779);  // a single completion does not write it
    CHECK_EQ(shorts[6], 7);
    MPI_Get_count(&status, triple, &count);
    CHECK_EQ(count, MPI_UNDEFINED);
    MPI_Get_count(&status, MPI_SHORT, &count);
    CHECK_EQ(count, 7);
    MPI_Get_elements(&status, triple, &count);
    CHECK_EQ(count, 7);
    MPI_Get_elements_c(&status, triple, &big);
    CHECK_EQ(big, 7);
    MPI_Get_elements_x(&status, triple, &big);
    CHECK_EQ(big, 7);
    MPI_Get_count_c(&status, MPI_BYTE, &big);
    CHECK_EQ(big, 14);

    MPI_Recv(pairs, 4, pair, 0, 2, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, pair, &count);
    CHECK_EQ(count, 2);
    MPI_Get_elements(&status, pair, &count);
    CHECK_EQ(count, 4);
    CHECK_EQ(pairs[1].i, 2);
    CHECK(pairs[1].d == 2.5);

    MPI_Recv(pairs, 4, pair, 0, 3, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, pair, &count);
    CHECK_EQ(count, MPI_UNDEFINED);
    MPI_Get_elements(&status, pair, &count);
    CHECK_EQ(count, 1);

    MPI_Recv(pairs, 4, pair, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, pair, &count);
    CHECK_EQ(count, 0);
    MPI_Get_elements(&status, pair, &count);
    CHECK_EQ(count, 0);
    CHECK_EQ(status.MPI_SOURCE, 0);
    CHECK_EQ(status.MPI_TAG, 4);
  }
  MPI_Type_free(&pair);
  MPI_Type_free(&triple);
}

void error_field_is_left_alone(const World& w) {
  const int out = 3;
  int in = 0, flag = 0, index = 0;
  for (int how = 0; how < 4; ++how) {
    MPI_Request request;
    MPI_Irecv(&in, 1, MPI_INT, w.rank, how, MPI_COMM_WORLD, &request);
    MPI_Send(&out, 1, MPI_INT, w.rank, how, MPI_COMM_WORLD);
    MPI_Status status = dirty_status();
    switch (how) {
      case 0: MPI_Wait(&request, &status); break;
      case 1: MPI_Waitany(1, &request, &index, &status); break;
      case 2:
        CHECK(eventually([&] { return MPI_Test(&request, &flag, &status), flag != 0; }));
        break;
      default:
        CHECK(eventually([&] { return MPI_Testany(1, &request, &index, &flag, &status), flag != 0; }));
        break;
    }
    CHECK_EQ(status.MPI_ERROR, 779);
    CHECK_EQ(status.MPI_TAG, how);
  }
}

void accessors() {
  MPI_Status status = dirty_status();
  MPI_Status_set_source(&status, 12);
  MPI_Status_set_tag(&status, 34);
  MPI_Status_set_error(&status, MPI_ERR_OTHER);
  int value = 0, flag = -1;
  MPI_Status_get_source(&status, &value);
  CHECK_EQ(value, 12);
  MPI_Status_get_tag(&status, &value);
  CHECK_EQ(value, 34);
  MPI_Status_get_error(&status, &value);
  CHECK_EQ(value, MPI_ERR_OTHER);
  CHECK_EQ(status.MPI_SOURCE, 12);
  CHECK_EQ(status.MPI_TAG, 34);

  MPI_Status_set_elements(&status, MPI_INT, 5);
  CHECK_EQ(count_of(status, MPI_INT), 5);
  CHECK_EQ(count_of(status, MPI_BYTE), 20);
  const MPI_Count huge = (MPI_Count{1} << 40) + 1;
  MPI_Status_set_elements_c(&status, MPI_SHORT, huge);
  CHECK_EQ(count_of(status, MPI_SHORT), huge);
  MPI_Status_set_elements_x(&status, MPI_BYTE, huge);
  CHECK_EQ(count_of(status, MPI_BYTE), huge);
  int small = 0;
  MPI_Get_count(&status, MPI_BYTE, &small);
  CHECK_EQ(small, MPI_UNDEFINED);
  MPI_Get_elements(&status, MPI_BYTE, &small);
  CHECK_EQ(small, MPI_UNDEFINED);

  MPI_Status_set_cancelled(&status, 1);
  MPI_Test_cancelled(&status, &flag);
  CHECK_EQ(flag, 1);
  CHECK_EQ(count_of(status, MPI_BYTE), huge);
  MPI_Status_set_cancelled(&status, 0);
  MPI_Test_cancelled(&status, &flag);
  CHECK_EQ(flag, 0);
  CHECK_EQ(count_of(status, MPI_BYTE), huge);
}

}  // namespace

int main() {
  const World w = init();
  counts(w);
  error_field_is_left_alone(w);
  accessors();
  return finish();
}
