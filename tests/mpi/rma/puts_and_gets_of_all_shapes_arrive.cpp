// ranks: 1 2 3
// timeout: 120
// MPI_Put, MPI_Get and their large forms in every flavour and kind of epoch: all sizes about the boundaries of protocols, derived types
// at either end (strided, backwards, indexed, structures, subarrays, resized, of no bytes), displacements in units that differ per rank,
// MPI_PROC_NULL; with more than two ranks a choice of those. What an operation does not name keeps its bytes, at both ends.
#include "windows.hpp"

using namespace test;

namespace {

// A datatype of whole ints and the ints that it names, in order, from the address that is given as its buffer.
struct Shape {
  const char* what;
  MPI_Datatype type;  // `count` of them
  int count;
  std::vector<int> places;
  int lowest() const { return places.empty() ? 0 : *std::min_element(places.begin(), places.end()); }
  int highest() const { return places.empty() ? 0 : *std::max_element(places.begin(), places.end()); }
};

class Shapes {
 public:
  std::vector<Shape> all;  // each of the same number of ints

  static constexpr int ints = 24;

  Shapes() {
    add("ints", MPI_INT, ints, [](int i) { return i; });
    MPI_Datatype type;
    MPI_Type_contiguous(ints, MPI_INT, &type);
    add("one contiguous type", keep(type), 1, [](int i) { return i; });
    MPI_Type_vector(ints / 4, 4, 7, MPI_INT, &type);
    add("vector", keep(type), 1, [](int i) { return i / 4 * 7 + i % 4; });
    MPI_Type_vector(ints / 2, 2, -5, MPI_INT, &type);
    add("vector backwards", keep(type), 1, [](int i) { return i / 2 * -5 + i % 2; });
    MPI_Type_create_hvector(ints, 1, -8, MPI_INT, &type);
    add("hvector backwards", keep(type), 1, [](int i) { return -2 * i; });
    const int lengths[] = {5, 0, 1, 6}, starts[] = {20, 3, -2, 2};
    MPI_Type_indexed(4, lengths, starts, MPI_INT, &type);
    MPI_Datatype wide;
    MPI_Type_create_resized(type, 0, 28 * sizeof(int), &wide);
    MPI_Type_free(&type);
    add("indexed twice", keep(wide), 2, [](int i) {
      const int k = i % 12;
      return i / 12 * 28 + (k < 5 ? 20 + k : k == 5 ? -2 : 2 + k - 6);
    });
    const int blocks[] = {8, 4, 12};
    const MPI_Aint at[] = {160, 0, 32};
    const MPI_Datatype types[] = {MPI_INT, MPI_UNSIGNED, MPI_INT};
    MPI_Type_create_struct(3, blocks, at, types, &type);
    add("structure", keep(type), 1, [](int i) { return i < 8 ? 40 + i : i < 12 ? i - 8 : 8 + i - 12; });
    const int sizes[] = {5, 6, 7}, part[] = {2, 3, 4}, corner[] = {1, 2, 0};
    MPI_Type_create_subarray(3, sizes, part, corner, MPI_ORDER_C, MPI_INT, &type);
    add("subarray", keep(type), 1, [](int i) { return (i / 12 + 1) * 42 + (i / 4 % 3 + 2) * 7 + i % 4; });
    MPI_Type_create_resized(MPI_INT, -4, 12, &type);
    add("resized with gaps", keep(type), ints, [](int i) { return 3 * i; });
    MPI_Type_create_resized(MPI_INT, 0, -8, &type);
    add("negative extent", keep(type), ints, [](int i) { return -2 * i; });
  }
  ~Shapes() {
    for (MPI_Datatype& type : made_) MPI_Type_free(&type);
  }

 private:
  MPI_Datatype keep(MPI_Datatype type) {
    MPI_Type_commit(&type);
    made_.push_back(type);
    return type;
  }
  template <typename Place>
  void add(const char* what, MPI_Datatype type, int count, Place place) {
    Shape shape{what, type, count, {}};
    for (int i = 0; i < ints; ++i) shape.places.push_back(place(i));
    all.push_back(shape);
  }
  std::vector<MPI_Datatype> made_;
};

constexpr int span = 512, middle = 128;  // ints of a buffer, and where the address given is: no shape reaches further

void check_shapes(Flavour flavour, Epoch epoch, bool large) {
  MPI_Comm comm = MPI_COMM_WORLD;
  const World w = world();
  const Shapes shapes;
  Memory memory(flavour, span * sizeof(int), comm, 1 << w.rank % 3);
  const int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size;
  const auto pattern = [](int rank, int i) { return rank * 100000 + i; };
  std::vector<int> buffer(span);
  int* const own = memory.as<int>();
  for (const Shape& origin : shapes.all)
    for (const Shape& target : shapes.all) {
      if (w.size > 2 && &target != &shapes.all[static_cast<std::size_t>(&origin - shapes.all.data() + 1) % shapes.all.size()]) continue;
      for (int i = 0; i < span; ++i) own[i] = -i, buffer[static_cast<std::size_t>(i)] = pattern(w.rank, i);
      const MPI_Aint disp = memory.at(next, middle * sizeof(int));
      in_epoch(epoch, memory.win, comm, [&] {
        CHECK_OK(large ? MPI_Put_c(&buffer[middle], origin.count, origin.type, next, disp, target.count, target.type, memory.win)
                       : MPI_Put(&buffer[middle], origin.count, origin.type, next, disp, target.count, target.type, memory.win));
      });
      std::vector<int> wanted(span);
      for (int i = 0; i < span; ++i) wanted[static_cast<std::size_t>(i)] = -i;
      for (std::size_t k = 0; k < Shapes::ints; ++k)
        wanted[static_cast<std::size_t>(middle + target.places[k])] = pattern(before, middle + origin.places[k]);
      for (int i = 0; i < span; ++i)
        if (own[i] != wanted[static_cast<std::size_t>(i)])
          check_fail(__FILE__, __LINE__, "put, %s, %s, from %s to %s: int %d is %d, wanted %d", name_of(flavour), name_of(epoch),
                     origin.what, target.what, i - middle, own[i], wanted[static_cast<std::size_t>(i)]);

      for (int i = 0; i < span; ++i) own[i] = pattern(w.rank, i), buffer[static_cast<std::size_t>(i)] = -i;
      in_epoch(epoch, memory.win, comm, [&] {
        CHECK_OK(large ? MPI_Get_c(&buffer[middle], origin.count, origin.type, next, disp, target.count, target.type, memory.win)
                       : MPI_Get(&buffer[middle], origin.count, origin.type, next, disp, target.count, target.type, memory.win));
      });
      for (int i = 0; i < span; ++i) wanted[static_cast<std::size_t>(i)] = -i;
      for (std::size_t k = 0; k < Shapes::ints; ++k)
        wanted[static_cast<std::size_t>(middle + origin.places[k])] = pattern(next, middle + target.places[k]);
      for (int i = 0; i < span; ++i)
        if (buffer[static_cast<std::size_t>(i)] != wanted[static_cast<std::size_t>(i)])
          check_fail(__FILE__, __LINE__, "get, %s, %s, of %s into %s: int %d is %d, wanted %d", name_of(flavour), name_of(epoch),
                     target.what, origin.what, i - middle, buffer[static_cast<std::size_t>(i)], wanted[static_cast<std::size_t>(i)]);
    }
  memory.free();
}

void check_sizes(Flavour flavour, Epoch epoch) {
  MPI_Comm comm = MPI_COMM_WORLD;
  const World w = world();
  constexpr std::size_t room = (std::size_t{1} << 20) + 4096;
  Memory memory(flavour, room, comm);
  const int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size;
  std::uint64_t round = 0;
  for (const std::size_t around : {0, 8, 64, 256, 1024, 4096, 8192, 16384, 65536, 262144, 1 << 20})
    for (const int off : {-1, 0, 1}) {
      if ((off < 0 && around == 0) || (off && w.size > 2)) continue;
      const std::size_t bytes = around + static_cast<std::size_t>(off);
      const std::size_t at = 1 + round % 63;  // aligned or not
      ++round;
      std::memset(memory.base, 0x3C, room);
      Guarded data(bytes, round % 8), back(bytes, (round + 3) % 8);
      fill(data.data(), bytes, round + static_cast<std::uint64_t>(w.rank));
      const int count = static_cast<int>(bytes);
      in_epoch(epoch, memory.win, comm, [&] {
        CHECK_OK(MPI_Put(data.data(), count, MPI_BYTE, next, memory.at(next, at), count, MPI_BYTE, memory.win));
      });
      CHECK_FILLED(memory.base + at, bytes, round + static_cast<std::uint64_t>(before));
      CHECK_EQ(memory.base[at - 1], 0x3C);
      CHECK_EQ(memory.base[at + bytes], 0x3C);
      in_epoch(epoch, memory.win, comm, [&] {
        CHECK_OK(MPI_Get(back.data(), count, MPI_BYTE, next, memory.at(next, at), count, MPI_BYTE, memory.win));
      });
      CHECK_FILLED(back.data(), bytes, round + static_cast<std::uint64_t>(w.rank));
      CHECK(back.untouched_outside(bytes));
    }
  memory.free();
}

// Many operations between two synchronisations, in both directions at once, to every rank.
void check_many(Flavour flavour, Epoch epoch) {
  MPI_Comm comm = MPI_COMM_WORLD;
  const World w = world();
  constexpr int each = 300;
  Memory memory(flavour, sizeof(int) * 2 * each * static_cast<std::size_t>(w.size), comm, sizeof(int));
  int* const own = memory.as<int>();
  const int half = each * w.size;
  for (int i = 0; i < half; ++i) own[half + i] = w.rank * 1000 + i;
  std::vector<int> values(static_cast<std::size_t>(half)), got(values.size(), -1);
  in_epoch(epoch, memory.win, comm, [&] {
    for (int i = 0; i < each; ++i)
      for (int target = 0; target < w.size; ++target) {
        const auto k = static_cast<std::size_t>(target * each + i);
        values[k] = w.rank * 7 + target * 11 + i;
        CHECK_OK(MPI_Put(&values[k], 1, MPI_INT, target, memory.at(target, sizeof(int) * static_cast<std::size_t>(w.rank * each + i)), 1,
                         MPI_INT, memory.win));
        CHECK_OK(MPI_Get(&got[k], 1, MPI_INT, target, memory.at(target, sizeof(int) * static_cast<std::size_t>(half + i)), 1, MPI_INT,
                         memory.win));
        CHECK_OK(MPI_Put(&values[k], 1, MPI_INT, MPI_PROC_NULL, 1 << 30, 1, MPI_INT, memory.win));
        CHECK_OK(MPI_Put(&values[k], 0, MPI_INT, target, memory.at(target, 0), 0, MPI_INT, memory.win));
      }
    int untouched = 77;
    CHECK_OK(MPI_Get(&untouched, 1, MPI_INT, MPI_PROC_NULL, 1 << 30, 1, MPI_INT, memory.win));
    CHECK_OK(MPI_Get(&untouched, 0, MPI_INT, w.rank, memory.at(w.rank, 0), 0, MPI_INT, memory.win));
    CHECK_EQ(untouched, 77);
  });
  for (int from = 0; from < w.size; ++from)
    for (int i = 0; i < each; ++i) {
      CHECK_EQ(own[from * each + i], from * 7 + w.rank * 11 + i);
      CHECK_EQ(got[static_cast<std::size_t>(from * each + i)], from * 1000 + i);
    }
  memory.free();
}

}  // namespace

int main() {
  init();
  int round = 0;
  for (const Flavour flavour : flavours_on(MPI_COMM_WORLD)) {
    for (const Epoch epoch : all_epochs) check_many(flavour, epoch);
    // Which epoch it is says little about shapes and sizes: each flavour has them in two.
    for (const Epoch epoch : {all_epochs[round % 4], all_epochs[(round + 2) % 4]}) {
      check_shapes(flavour, epoch, round % 2);
      check_sizes(flavour, epoch);
      ++round;
    }
  }
  return finish();
}
