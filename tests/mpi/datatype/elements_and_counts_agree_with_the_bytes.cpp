// ranks: 1
// MPI_Get_count, MPI_Get_elements and MPI_Status_set_elements: whole and partial elements, mixed types, pairs, empty
// types.
#include "../support.hpp"

using namespace test;

namespace {

struct Answer {
  int count, elements;
};

Answer ask(MPI_Count bytes, MPI_Datatype type) {
  MPI_Status status = dirty_status();
  MPI_Count big = -1;
  Answer a{-1, -1};
  CHECK_OK(MPI_Status_set_elements_c(&status, MPI_BYTE, bytes));
  CHECK_OK(MPI_Get_count(&status, type, &a.count));
  CHECK_OK(MPI_Get_elements(&status, type, &a.elements));
  CHECK_OK(MPI_Get_count_c(&status, type, &big));
  CHECK_EQ(big, a.count);
  CHECK_OK(MPI_Get_elements_c(&status, type, &big));
  CHECK_EQ(big, a.elements);
  big = -1;
  CHECK_OK(MPI_Get_elements_x(&status, type, &big));
  CHECK_EQ(big, a.elements);
  CHECK(status.MPI_SOURCE == -777 && status.MPI_TAG == -778 && status.MPI_ERROR == 779);
  return a;
}

void expect(MPI_Count bytes, MPI_Datatype type, int count, int elements) {
  const Answer a = ask(bytes, type);
  CHECK_EQ(a.count, count);
  CHECK_EQ(a.elements, elements);
}

}  // namespace

int main() {
  init();
  const int no = MPI_UNDEFINED;
  expect(12, MPI_INT, 3, 3);
  expect(13, MPI_INT, no, no);
  expect(0, MPI_INT, 0, 0);
  expect(16, MPI_C_DOUBLE_COMPLEX, 1, 1);

  // {char, int, double} without holes in the message: 13 bytes.
  const int lengths[] = {1, 1, 1};
  const MPI_Aint at[] = {0, 4, 8};
  const MPI_Datatype members[] = {MPI_CHAR, MPI_INT, MPI_DOUBLE};
  MPI_Datatype record, four, empty;
  CHECK_OK(MPI_Type_create_struct(3, lengths, at, members, &record));
  CHECK_OK(MPI_Type_commit(&record));
  expect(13, record, 1, 3);
  expect(26, record, 2, 6);
  expect(14, record, no, 4);
  expect(18, record, no, 5);
  expect(15, record, no, no);
  CHECK_OK(MPI_Type_vector(2, 2, 3, record, &four));
  CHECK_OK(MPI_Type_commit(&four));
  expect(52, four, 1, 12);
  expect(26 + 5, four, no, 8);
  expect(104 + 1, four, no, 25);
  CHECK_OK(MPI_Type_contiguous(0, MPI_INT, &empty));
  CHECK_OK(MPI_Type_commit(&empty));
  expect(0, empty, 0, 0);
  expect(4, empty, no, no);

  expect(12, MPI_LONG_INT, 1, 2);  // the value and the index are two elements
  expect(8, MPI_LONG_INT, no, 1);
  expect(20, MPI_LONG_INT, no, 3);
  expect(16, MPI_2INT, 2, 4);
  if (library_is_heddle()) expect(4, MPI_2INT, no, 1);  // MPICH 5.0.2 says MPI_UNDEFINED

  // Set, then asked: the same number of basic elements, whatever fraction of the type that is.
  MPI_Status status = dirty_status();
  int n = -1;
  CHECK_OK(MPI_Status_set_elements(&status, MPI_INT, 10));
  CHECK_OK(MPI_Get_elements(&status, MPI_INT, &n));
  CHECK_EQ(n, 10);
  CHECK_OK(MPI_Get_count(&status, MPI_BYTE, &n));
  CHECK_EQ(n, 40);
  if (library_is_heddle()) {  // MPICH 5.0.2 takes the number of whole elements of the type
    for (int k = 0; k < 30; ++k) {
      CHECK_OK(MPI_Status_set_elements_x(&status, four, k));
      CHECK_OK(MPI_Get_elements(&status, four, &n));
      CHECK_EQ(n, k);
      CHECK_OK(MPI_Get_count(&status, four, &n));
      CHECK_EQ(n, k % 12 ? no : k / 12);
    }
  }
  CHECK_OK(MPI_Type_free(&four));
  CHECK_OK(MPI_Type_free(&record));
  CHECK_OK(MPI_Type_free(&empty));
  return finish();
}
