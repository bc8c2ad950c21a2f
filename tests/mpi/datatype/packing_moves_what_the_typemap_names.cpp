// ranks: 1
// MPI_Pack and MPI_Unpack of every kind of layout against loops written out by hand; positions, sizes, room.
#include <functional>
#include <numeric>

#include "../support.hpp"

using namespace test;

namespace {

// `places`: the index of each int that the type names, in order, from the buffer's beginning.
void expect(MPI_Datatype type, int count, const std::vector<int>& places) {
  CHECK_OK(MPI_Type_commit(&type));
  int size = -1;
  CHECK_OK(MPI_Pack_size(count, type, MPI_COMM_SELF, &size));
  CHECK(size >= static_cast<int>(places.size() * sizeof(int)));
  int span = 1;
  for (int p : places) span = std::max(span, p + 1);
  std::vector<int> user(static_cast<std::size_t>(span)), packed(static_cast<std::size_t>(size) / sizeof(int) + 2, -7);
  std::iota(user.begin(), user.end(), 1000);

  int position = static_cast<int>(sizeof(int));  // not at the beginning
  CHECK_OK(MPI_Pack(user.data(), count, type, packed.data(), static_cast<int>(packed.size() * sizeof(int)), &position,
                    MPI_COMM_SELF));
  CHECK_EQ(position, static_cast<int>((1 + places.size()) * sizeof(int)));
  CHECK_EQ(packed[0], -7);
  for (std::size_t i = 0; i < places.size(); ++i) CHECK_EQ(packed[i + 1], 1000 + places[i]);
  CHECK_EQ(packed[places.size() + 1], -7);

  std::vector<int> back(user.size(), -1);
  const int end = position;
  position = static_cast<int>(sizeof(int));
  CHECK_OK(MPI_Unpack(packed.data(), end, &position, back.data(), count, type, MPI_COMM_SELF));
  CHECK_EQ(position, end);
  std::vector<int> wanted(user.size(), -1);
  for (int p : places) wanted[static_cast<std::size_t>(p)] = 1000 + p;
  CHECK(back == wanted);
  CHECK_OK(MPI_Type_free(&type));
}

}  // namespace

int main() {
  init();
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Datatype t, u;
  std::vector<int> places;

  for (int block : {1, 2, 3, 4, 5, 8, 16, 33}) {  // every kernel: 4 to 132 bytes
    for (int stride : {block, block + 1, 3 * block}) {
      places.clear();
      CHECK_OK(MPI_Type_vector(50, block, stride, MPI_INT, &t));
      const int extent = 49 * stride + block;
      for (int k = 0; k < 3; ++k)
        for (int i = 0; i < 50; ++i)
          for (int j = 0; j < block; ++j) places.push_back(k * extent + i * stride + j);
      expect(t, 3, places);
    }
  }

  // A matrix column by column (transposition): the type of a column, resized to one element, once per column.
  places.clear();
  CHECK_OK(MPI_Type_vector(7, 1, 9, MPI_INT, &u));
  CHECK_OK(MPI_Type_create_resized(u, 0, sizeof(int), &t));
  CHECK_OK(MPI_Type_free(&u));
  for (int c = 0; c < 9; ++c)
    for (int r = 0; r < 7; ++r) places.push_back(r * 9 + c);
  expect(t, 9, places);

  // Three loops deep, short inside and long outside, so that loops are turned inside out.
  places.clear();
  CHECK_OK(MPI_Type_vector(2, 1, 3, MPI_INT, &u));     // 0 3, extent 4 ints
  CHECK_OK(MPI_Type_create_hvector(3, 1, 40, u, &t));  // + 0 10 20
  CHECK_OK(MPI_Type_free(&u));
  CHECK_OK(MPI_Type_create_hvector(500, 1, 120, t, &u));  // + 30 i
  CHECK_OK(MPI_Type_free(&t));
  for (int i = 0; i < 500; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 2; ++k) places.push_back(30 * i + 10 * j + 3 * k);
  expect(u, 1, places);

  // Indexed: equal, unequal, backwards, overlapping in the source.
  for (int kind = 0; kind < 4; ++kind) {
    std::vector<int> lengths, starts;
    places.clear();
    for (int i = 0; i < 100; ++i) {
      lengths.push_back(kind == 0 ? 2 : 1 + (i * 7) % 5);
      starts.push_back(kind == 2 ? 10 * (99 - i) : kind == 3 ? 3 * i : 10 * i + i % 3);
      for (int j = 0; j < lengths.back(); ++j) places.push_back(starts.back() + j);
    }
    CHECK_OK(MPI_Type_indexed(100, lengths.data(), starts.data(), MPI_INT, &t));
    expect(t, 1, places);
  }

  // An array of C structures with holes, four thousand of them, and a struct of such arrays.
  struct Particle {
    double x[3];
    int id;
    char kind;
    float weight;
  };
  const int lengths[] = {3, 1, 1, 1};
  const MPI_Aint at[] = {offsetof(Particle, x), offsetof(Particle, id), offsetof(Particle, kind),
                         offsetof(Particle, weight)};
  const MPI_Datatype members[] = {MPI_DOUBLE, MPI_INT, MPI_CHAR, MPI_FLOAT};
  CHECK_OK(MPI_Type_create_struct(4, lengths, at, members, &t));
  CHECK_OK(MPI_Type_commit(&t));
  std::vector<Particle> some(4000), back(4000);
  std::memset(static_cast<void*>(some.data()), 0, some.size() * sizeof(Particle));
  std::memset(static_cast<void*>(back.data()), 0, back.size() * sizeof(Particle));
  std::vector<char> wanted;
  for (int i = 0; i < 4000; ++i) {
    Particle& p = some[static_cast<std::size_t>(i)];
    p = {{i + 0.25, i + 0.5, i + 0.75}, i, static_cast<char>(i), i * 0.125f};
    for (int m = 0; m < 4; ++m) {
      const char* from = reinterpret_cast<const char*>(&p) + at[m];
      const std::size_t bytes = m == 0 ? 24 : m == 2 ? 1 : 4;
      wanted.insert(wanted.end(), from, from + bytes);
    }
  }
  std::vector<char> packed(wanted.size());
  int position = 0;
  CHECK_OK(MPI_Pack(some.data(), 4000, t, packed.data(), static_cast<int>(packed.size()), &position, MPI_COMM_SELF));
  CHECK(packed == wanted);
  position = 0;
  CHECK_OK(MPI_Unpack(packed.data(), static_cast<int>(packed.size()), &position, back.data(), 4000, t, MPI_COMM_SELF));
  for (std::size_t i = 0; i < 4000; ++i) {
    CHECK(back[i].x[2] == some[i].x[2] && back[i].id == some[i].id && back[i].kind == some[i].kind);
    CHECK(back[i].weight == some[i].weight);
  }
  CHECK_OK(MPI_Type_free(&t));

  // Absolute addresses from MPI_BOTTOM.
  int first = 17, second = 42, got[2] = {0, 0};
  MPI_Aint addresses[2];
  const int ones[] = {1, 1};
  MPI_Get_address(&first, &addresses[0]);
  MPI_Get_address(&second, &addresses[1]);
  CHECK_OK(MPI_Type_create_hindexed(2, ones, addresses, MPI_INT, &t));
  CHECK_OK(MPI_Type_commit(&t));
  position = 0;
  CHECK_OK(MPI_Pack(MPI_BOTTOM, 1, t, got, sizeof got, &position, MPI_COMM_SELF));
  CHECK(got[0] == 17 && got[1] == 42);
  CHECK_OK(MPI_Type_free(&t));

  // Nothing at all.
  CHECK_OK(MPI_Type_contiguous(0, MPI_INT, &t));
  CHECK_OK(MPI_Type_commit(&t));
  position = 0;
  CHECK_OK(MPI_Pack(got, 5, t, got, sizeof got, &position, MPI_COMM_SELF));
  CHECK_EQ(position, 0);
  CHECK_OK(MPI_Type_free(&t));

  if (library_is_heddle()) {  // MPICH's ABI library is built without these checks
    position = 4;
    CHECK_CLASS(MPI_Pack(&first, 2, MPI_INT, got, sizeof got, &position, MPI_COMM_SELF), MPI_ERR_TRUNCATE);
    CHECK_EQ(position, 4);
    CHECK_CLASS(MPI_Unpack(got, sizeof got, &position, &first, 2, MPI_INT, MPI_COMM_SELF), MPI_ERR_TRUNCATE);
    position = -1;
    CHECK_CLASS(MPI_Pack(&first, 1, MPI_INT, got, sizeof got, &position, MPI_COMM_SELF), MPI_ERR_ARG);
  }
  return finish();
}
