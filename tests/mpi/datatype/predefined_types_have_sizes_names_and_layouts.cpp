// ranks: 1
// Every predefined datatype of the ABI: size, extent, name, combiner; pairs as C lays them out; types found by size,
// kind and pair.
#include <complex>
#include <cwchar>

#include "../support.hpp"

using namespace test;

namespace {

struct Known {
  MPI_Datatype type;
  const char* name;
  int size;
  int extent;
};

template <typename First, typename Second>
struct Members {
  First first;
  Second second;
};

#define KNOWN(type, size) \
  { type, #type, static_cast<int>(size), static_cast<int>(size) }
#define PAIR(type, first, second) \
  { type, #type, static_cast<int>(sizeof(first) + sizeof(second)), static_cast<int>(sizeof(Members<first, second>)) }

using CFloat = std::complex<float>;
using CDouble = std::complex<double>;
using CLong = std::complex<long double>;

void check(const Known& k) {
  int size = -1, length = -1, a, b, c, combiner = -1;
  MPI_Aint lb = -1, extent = -1;
  char name[MPI_MAX_OBJECT_NAME] = "";
  CHECK_OK(MPI_Type_get_name(k.type, name, &length));
  CHECK_STR(name, k.name);
  CHECK_EQ(length, static_cast<int>(std::strlen(k.name)));
  CHECK_OK(MPI_Type_size(k.type, &size));
  if (size != k.size) fprintf(stderr, "%s\n", k.name);
  CHECK_EQ(size, k.size);
  CHECK_OK(MPI_Type_get_extent(k.type, &lb, &extent));
  if (extent != k.extent) fprintf(stderr, "%s\n", k.name);
  CHECK(lb == 0 && extent == k.extent);
  CHECK_OK(MPI_Type_get_envelope(k.type, &a, &b, &c, &combiner));
  CHECK_EQ(combiner, MPI_COMBINER_NAMED);
  MPI_Datatype same = k.type;
  CHECK_OK(MPI_Type_commit(&same));
  CHECK(same == k.type);
}

std::string name_of(MPI_Datatype type) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = -1;
  CHECK_OK(MPI_Type_get_name(type, name, &length));
  return name;
}

}  // namespace

int main() {
  init();
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const Known all[] = {KNOWN(MPI_AINT, sizeof(MPI_Aint)),
                       KNOWN(MPI_COUNT, 8),
                       KNOWN(MPI_OFFSET, 8),
                       KNOWN(MPI_PACKED, 1),
                       KNOWN(MPI_SHORT, sizeof(short)),
                       KNOWN(MPI_INT, 4),
                       KNOWN(MPI_LONG, sizeof(long)),
                       KNOWN(MPI_LONG_LONG_INT, 8),
                       KNOWN(MPI_UNSIGNED_SHORT, 2),
                       KNOWN(MPI_UNSIGNED, 4),
                       KNOWN(MPI_UNSIGNED_LONG, sizeof(long)),
                       KNOWN(MPI_UNSIGNED_LONG_LONG, 8),
                       KNOWN(MPI_FLOAT, 4),
                       KNOWN(MPI_C_COMPLEX, sizeof(CFloat)),
                       KNOWN(MPI_CXX_FLOAT_COMPLEX, 8),
                       KNOWN(MPI_DOUBLE, 8),
                       KNOWN(MPI_C_DOUBLE_COMPLEX, sizeof(CDouble)),
                       KNOWN(MPI_CXX_DOUBLE_COMPLEX, 16),
                       KNOWN(MPI_LOGICAL, 4),
                       KNOWN(MPI_INTEGER, 4),
                       KNOWN(MPI_REAL, 4),
                       KNOWN(MPI_COMPLEX, 8),
                       KNOWN(MPI_DOUBLE_PRECISION, 8),
                       KNOWN(MPI_DOUBLE_COMPLEX, 16),
                       KNOWN(MPI_CHARACTER, 1),
                       KNOWN(MPI_LONG_DOUBLE, sizeof(long double)),
                       KNOWN(MPI_C_LONG_DOUBLE_COMPLEX, sizeof(CLong)),
                       KNOWN(MPI_CXX_LONG_DOUBLE_COMPLEX, sizeof(CLong)),
                       KNOWN(MPI_C_BOOL, 1),
                       KNOWN(MPI_CXX_BOOL, 1),
                       KNOWN(MPI_WCHAR, sizeof(wchar_t)),
                       KNOWN(MPI_INT8_T, 1),
                       KNOWN(MPI_UINT8_T, 1),
                       KNOWN(MPI_CHAR, 1),
                       KNOWN(MPI_SIGNED_CHAR, 1),
                       KNOWN(MPI_UNSIGNED_CHAR, 1),
                       KNOWN(MPI_BYTE, 1),
                       KNOWN(MPI_INT16_T, 2),
                       KNOWN(MPI_UINT16_T, 2),
                       KNOWN(MPI_INT32_T, 4),
                       KNOWN(MPI_UINT32_T, 4),
                       KNOWN(MPI_INT64_T, 8),
                       KNOWN(MPI_UINT64_T, 8),
                       KNOWN(MPI_LOGICAL1, 1),
                       KNOWN(MPI_INTEGER1, 1),
                       KNOWN(MPI_LOGICAL2, 2),
                       KNOWN(MPI_INTEGER2, 2),
                       KNOWN(MPI_REAL2, 2),
                       KNOWN(MPI_LOGICAL4, 4),
                       KNOWN(MPI_INTEGER4, 4),
                       KNOWN(MPI_REAL4, 4),
                       KNOWN(MPI_COMPLEX4, 4),
                       KNOWN(MPI_LOGICAL8, 8),
                       KNOWN(MPI_INTEGER8, 8),
                       KNOWN(MPI_REAL8, 8),
                       KNOWN(MPI_COMPLEX8, 8),
                       KNOWN(MPI_LOGICAL16, 16),
                       KNOWN(MPI_INTEGER16, 16),
                       KNOWN(MPI_REAL16, 16),
                       KNOWN(MPI_COMPLEX16, 16),
                       KNOWN(MPI_COMPLEX32, 32),
                       PAIR(MPI_FLOAT_INT, float, int),
                       PAIR(MPI_DOUBLE_INT, double, int),
                       PAIR(MPI_LONG_INT, long, int),
                       PAIR(MPI_2INT, int, int),
                       PAIR(MPI_SHORT_INT, short, int),
                       PAIR(MPI_LONG_DOUBLE_INT, long double, int),
                       PAIR(MPI_2REAL, float, float),
                       PAIR(MPI_2DOUBLE_PRECISION, double, double),
                       PAIR(MPI_2INTEGER, int, int)};
  CHECK_EQ(std::size(all), 70u);  // and MPI_DATATYPE_NULL
  for (const Known& k : all) check(k);
  CHECK(name_of(MPI_DATATYPE_NULL) == "MPI_DATATYPE_NULL");

  // A pair moves value and index from where C puts them, and leaves the hole alone.
  struct {
    short value;
    int index;
  } from[2] = {{7, 8}, {9, 10}}, to[2];
  std::memset(&to, 0x55, sizeof to);
  unsigned char packed[12];
  int position = 0;
  CHECK_OK(MPI_Pack(from, 2, MPI_SHORT_INT, packed, sizeof packed, &position, MPI_COMM_SELF));
  CHECK_EQ(position, 12);
  position = 0;
  CHECK_OK(MPI_Unpack(packed, sizeof packed, &position, to, 2, MPI_SHORT_INT, MPI_COMM_SELF));
  CHECK(to[1].value == 9 && to[1].index == 10 && to[0].index == 8);
  CHECK_EQ(reinterpret_cast<unsigned char*>(to)[2], 0x55);

  const struct {
    int typeclass, size;
    MPI_Datatype type;
  } matches[] = {{MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1}, {MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2},
                 {MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4}, {MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8},
                 {MPI_TYPECLASS_REAL, 4, MPI_REAL4},       {MPI_TYPECLASS_REAL, 8, MPI_REAL8},
                 {MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8}, {MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16}};
  MPI_Datatype t;
  for (const auto& m : matches) {
    CHECK_OK(MPI_Type_match_size(m.typeclass, m.size, &t));
    CHECK(t == m.type);
  }
  CHECK_CLASS(MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &t), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Type_match_size(-1, 4, &t), MPI_ERR_ARG);

  // Fortran kinds: the same arguments give the same handle, with the arguments as contents; it cannot be freed.
  MPI_Datatype again;
  int a, b, c, combiner, integers[2], size;
  CHECK_OK(MPI_Type_create_f90_real(6, 30, &t));
  CHECK_OK(MPI_Type_create_f90_real(6, 30, &again));
  CHECK(t == again);
  CHECK_OK(MPI_Type_get_envelope(t, &a, &b, &c, &combiner));
  CHECK(combiner == MPI_COMBINER_F90_REAL && a == 2 && b == 0 && c == 0);
  CHECK_OK(MPI_Type_get_contents(t, 2, 0, 0, integers, nullptr, nullptr));
  CHECK(integers[0] == 6 && integers[1] == 30);
  CHECK_OK(MPI_Type_size(t, &size));
  CHECK_EQ(size, 4);
  if (library_is_heddle()) CHECK_CLASS(MPI_Type_free(&t), MPI_ERR_TYPE);  // MPICH 5.0.2 does
  CHECK_OK(MPI_Type_create_f90_real(15, MPI_UNDEFINED, &t));
  CHECK_OK(MPI_Type_size(t, &size));
  CHECK_EQ(size, 8);
  CHECK_OK(MPI_Type_create_f90_complex(MPI_UNDEFINED, 200, &t));
  CHECK_OK(MPI_Type_size(t, &size));
  CHECK_EQ(size, 16);
  if (library_is_heddle() && sizeof(long double) == 16) {  // REAL(10) of gfortran and flang, not REAL(16)
    CHECK_OK(MPI_Type_create_f90_real(18, MPI_UNDEFINED, &t));
    long double in = 1.25L, inout = 2.5L;
    CHECK_OK(MPI_Reduce_local(&in, &inout, 1, t, MPI_SUM));
    CHECK(inout == 3.75L);
  }
  for (const auto& [range, bytes] : {std::pair{1, 1}, {4, 2}, {9, 4}, {18, 8}}) {
    CHECK_OK(MPI_Type_create_f90_integer(range, &t));
    CHECK_OK(MPI_Type_size(t, &size));
    CHECK_EQ(size, bytes);
    CHECK_OK(MPI_Type_get_envelope(t, &a, &b, &c, &combiner));
    CHECK(combiner == MPI_COMBINER_F90_INTEGER && a == 1);
  }
  if (library_is_heddle()) {
    CHECK_CLASS(MPI_Type_create_f90_real(200, 10, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_f90_integer(400, &t), MPI_ERR_ARG);
  }

  const struct {
    MPI_Datatype value, index, pair;
  } pairs[] = {{MPI_FLOAT, MPI_INT, MPI_FLOAT_INT},
               {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
               {MPI_INT, MPI_INT, MPI_2INT},
               {MPI_SHORT, MPI_INT, MPI_SHORT_INT},
               {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
               {MPI_LONG, MPI_INT, MPI_LONG_INT}};
  for (const auto& p : pairs) {
    CHECK_OK(MPI_Type_get_value_index(p.value, p.index, &t));
    CHECK(t == p.pair);
  }
  CHECK_OK(MPI_Type_get_value_index(MPI_C_BOOL, MPI_C_BOOL, &t));
  CHECK(t == MPI_DATATYPE_NULL);
  return finish();
}
