// ranks: 1 2 4
// timeout: 60
// The predefined attributes, the group and the integer of windows of every flavour, in both forms of each constructor; windows of no
// bytes; sizes and displacement units that differ between ranks; a base that ranks see as the memory that operations reach.
#include "windows.hpp"

using namespace test;

namespace {

template <typename T>
T* attribute(MPI_Win win, int key) {
  void* value = nullptr;
  int flag = 0;
  CHECK_OK(MPI_Win_get_attr(win, key, &value, &flag));
  CHECK(flag);
  return static_cast<T*>(value);
}

void check_window(MPI_Win win, int flavour, const void* base, MPI_Aint size, MPI_Aint unit, MPI_Comm comm) {
  CHECK(win != MPI_WIN_NULL);
  CHECK_EQ(*attribute<int>(win, MPI_WIN_CREATE_FLAVOR), flavour);
  const int model = *attribute<int>(win, MPI_WIN_MODEL);
  CHECK(model == MPI_WIN_UNIFIED || model == MPI_WIN_SEPARATE);
  if (library_is_heddle()) CHECK_EQ(model, MPI_WIN_UNIFIED);
  CHECK(attribute<void>(win, MPI_WIN_BASE) == base || (size == 0 && flavour != MPI_WIN_FLAVOR_DYNAMIC));
  CHECK_EQ(*attribute<MPI_Aint>(win, MPI_WIN_SIZE), size);
  // An int, whatever the form of the constructor.
  if (unit <= 0x7fffffff) CHECK_EQ(*attribute<int>(win, MPI_WIN_DISP_UNIT), unit);
  MPI_Group group, wanted;
  CHECK_OK(MPI_Win_get_group(win, &group));
  CHECK_OK(MPI_Comm_group(comm, &wanted));
  int same = -1;
  CHECK_OK(MPI_Group_compare(group, wanted, &same));
  CHECK_EQ(same, MPI_IDENT);
  CHECK_OK(MPI_Group_free(&group));
  CHECK_OK(MPI_Group_free(&wanted));
  CHECK(MPI_Win_fromint(MPI_Win_toint(win)) == win);
  MPI_Errhandler handler;
  CHECK_OK(MPI_Win_get_errhandler(win, &handler));
  CHECK(handler == MPI_ERRORS_ARE_FATAL);  // whatever the communicator's
  MPI_Errhandler_free(&handler);
}

void check_free(MPI_Win& win) {
  CHECK_OK(MPI_Win_free(&win));
  CHECK(win == MPI_WIN_NULL);
}

// One rank puts its number into the next rank's first int.
void check_use(MPI_Win win, int* base, MPI_Comm comm) {
  const int rank = rank_in(comm), n = size_in(comm), value = rank + 100;
  *base = -1;
  CHECK_OK(MPI_Win_fence(0, win));
  CHECK_OK(MPI_Put(&value, 1, MPI_INT, (rank + 1) % n, 0, 1, MPI_INT, win));
  CHECK_OK(MPI_Win_fence(0, win));
  CHECK_EQ(*base, (rank + n - 1) % n + 100);
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm comm = MPI_COMM_WORLD;
  CHECK(MPI_Win_fromint(MPI_Win_toint(MPI_WIN_NULL)) == MPI_WIN_NULL);
  const bool shares = can_share(comm);
  for (const MPI_Aint words : {4, 1, 1000 + w.rank}) {
    const int unit = 1 << (w.rank % 4);
    const MPI_Aint size = words * 16;
    MPI_Win win = MPI_WIN_NULL;
    std::vector<long double> memory(static_cast<std::size_t>(words));
    CHECK_OK(MPI_Win_create(memory.data(), size, unit, MPI_INFO_NULL, comm, &win));
    check_window(win, MPI_WIN_FLAVOR_CREATE, memory.data(), size, unit, comm);
    check_use(win, reinterpret_cast<int*>(memory.data()), comm);
    check_free(win);
    CHECK_OK(MPI_Win_create_c(memory.data(), size, unit, MPI_INFO_NULL, comm, &win));
    check_window(win, MPI_WIN_FLAVOR_CREATE, memory.data(), size, unit, comm);
    check_use(win, reinterpret_cast<int*>(memory.data()), comm);
    check_free(win);

    int* base = nullptr;
    CHECK_OK(MPI_Win_allocate(size, unit, MPI_INFO_NULL, comm, &base, &win));
    CHECK_EQ(reinterpret_cast<std::uintptr_t>(base) % alignof(std::max_align_t), 0);
    check_window(win, MPI_WIN_FLAVOR_ALLOCATE, base, size, unit, comm);
    check_use(win, base, comm);
    check_free(win);
    CHECK_OK(MPI_Win_allocate_c(size, unit, MPI_INFO_NULL, comm, &base, &win));
    check_window(win, MPI_WIN_FLAVOR_ALLOCATE, base, size, unit, comm);
    check_use(win, base, comm);
    check_free(win);

    if (shares) {
      CHECK_OK(MPI_Win_allocate_shared(size, unit, MPI_INFO_NULL, comm, &base, &win));
      check_window(win, MPI_WIN_FLAVOR_SHARED, base, size, unit, comm);
      check_use(win, base, comm);
      check_free(win);
      CHECK_OK(MPI_Win_allocate_shared_c(size, unit, MPI_INFO_NULL, comm, &base, &win));
      check_window(win, MPI_WIN_FLAVOR_SHARED, base, size, unit, comm);
      check_use(win, base, comm);
      check_free(win);
    }
  }

  MPI_Win win = MPI_WIN_NULL;
  CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
  check_window(win, MPI_WIN_FLAVOR_DYNAMIC, nullptr, 0, 1, comm);  // MPI_BOTTOM
  check_free(win);

  // Nothing at all, and something at one rank only.
  for (const MPI_Aint most : {0, 64}) {
    const MPI_Aint size = w.rank == w.size - 1 ? most : 0;
    std::vector<long double> memory(4);
    CHECK_OK(MPI_Win_create(size ? memory.data() : nullptr, size, 1, MPI_INFO_NULL, comm, &win));
    check_window(win, MPI_WIN_FLAVOR_CREATE, size ? memory.data() : nullptr, size, 1, comm);
    const int value = w.rank;
    CHECK_OK(MPI_Win_fence(0, win));
    if (w.rank == 0 && most) CHECK_OK(MPI_Put(&value, 1, MPI_INT, w.size - 1, 4, 1, MPI_INT, win));
    CHECK_OK(MPI_Put(&value, 0, MPI_INT, 0, 0, 0, MPI_INT, win));
    CHECK_OK(MPI_Win_fence(0, win));
    if (size) CHECK_EQ(reinterpret_cast<int*>(memory.data())[1], 0);
    check_free(win);
    void* base = nullptr;
    CHECK_OK(MPI_Win_allocate(size, 1, MPI_INFO_NULL, comm, &base, &win));
    check_window(win, MPI_WIN_FLAVOR_ALLOCATE, base, size, 1, comm);
    check_free(win);
    if (shares) {
      CHECK_OK(MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, comm, &base, &win));
      check_window(win, MPI_WIN_FLAVOR_SHARED, base, size, 1, comm);
      check_free(win);
    }
  }

  // Units that no int holds, in the form that takes them: displacements count in them.
  long long word = 0;
  const MPI_Aint huge = library_is_mpich() ? 1 << 30 : MPI_Aint{1} << 33;  // 5.0.2 ends the program
  CHECK_OK(MPI_Win_create_c(&word, sizeof word, huge, MPI_INFO_NULL, comm, &win));
  check_window(win, MPI_WIN_FLAVOR_CREATE, &word, sizeof word, huge, comm);
  const long long one = 1;
  CHECK_OK(MPI_Win_fence(0, win));
  CHECK_OK(MPI_Accumulate(&one, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, MPI_SUM, win));
  CHECK_OK(MPI_Win_fence(0, win));
  CHECK_EQ(word, w.rank == 0 ? w.size : 0);
  check_free(win);

  // The base, size and unit of each flavour are those of the same memory.
  for (const Flavour flavour : flavours_on(comm)) {
    Memory memory(flavour, 256, comm, 4);
    for (const Epoch epoch : all_epochs) {
      std::memset(memory.base, 0, 256);
      in_epoch(epoch, memory.win, comm, [&] {
        const int value = w.rank + 1, next = (w.rank + 1) % w.size;
        CHECK_OK(MPI_Put(&value, 1, MPI_INT, next, memory.at(next, 128), 1, MPI_INT, memory.win));
      });
      CHECK_EQ(memory.as<int>()[32], (w.rank + w.size - 1) % w.size + 1);
    }
    memory.free();
  }
  return finish();
}
