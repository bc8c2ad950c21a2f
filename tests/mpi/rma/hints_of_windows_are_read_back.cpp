// ranks: 1 2
// timeout: 60
// MPI_Win_get_info gives the hints that are in use, those that were given when the window was made or by MPI_Win_set_info, and the
// defaults of the others; hints that nobody knows and values that make no sense change nothing. Memory is aligned as was asked, and
// hints that promise something do not break a window that keeps the promise.
#include "windows.hpp"

using namespace test;

namespace {

std::string value_of(MPI_Win win, const char* key) {
  MPI_Info info;
  CHECK_OK(MPI_Win_get_info(win, &info));
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int length = sizeof value, flag = 0;
  CHECK_OK(MPI_Info_get_string(info, key, &length, value, &flag));
  CHECK_OK(MPI_Info_free(&info));
  return flag ? value : "(none)";
}

struct Hint {
  const char *key, *value, *otherwise;  // and the default
  bool of_mpich;                        // MPICH 5.0.2 reads it back as well
};

constexpr Hint hints[] = {
    {"no_locks", "true", "false", true},
    {"accumulate_ordering", "none", "rar,raw,war,waw", true},
    {"accumulate_ops", "same_op", "same_op_no_op", true},
    {"same_size", "true", "false", true},
    {"same_disp_unit", "true", "false", true},
    {"mpi_accumulate_granularity", "64", "0", false},
};

MPI_Info info_of(const Hint& hint) {
  MPI_Info info;
  CHECK_OK(MPI_Info_create(&info));
  CHECK_OK(MPI_Info_set(info, hint.key, hint.value));
  return info;
}

void check_use(MPI_Win win, long* base, MPI_Aint at) {
  const World w = world();
  const long one = w.rank + 1;
  if (base) *base = 0;
  CHECK_OK(MPI_Win_fence(0, win));
  CHECK_OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, at, 1, MPI_LONG, MPI_SUM, win));
  CHECK_OK(MPI_Win_fence(0, win));
  if (w.rank == 0) CHECK_EQ(*base, w.size * (w.size + 1) / 2);
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm comm = returning_world();
  long* base = nullptr;
  MPI_Win win;
  const bool shares = can_share(comm);

  CHECK_OK(MPI_Win_allocate(800, 8, MPI_INFO_NULL, comm, &base, &win));
  for (const Hint& hint : hints)
    if (!library_is_mpich() || hint.of_mpich) CHECK_STR(value_of(win, hint.key).c_str(), hint.otherwise);
  CHECK_OK(MPI_Win_free(&win));

  for (const Hint& hint : hints) {
    if (library_is_mpich() && !hint.of_mpich) continue;
    MPI_Info info = info_of(hint);
    CHECK_OK(MPI_Win_create(&base, sizeof base, 8, info, comm, &win));
    CHECK_STR(value_of(win, hint.key).c_str(), hint.value);
    CHECK_OK(MPI_Win_free(&win));
    CHECK_OK(MPI_Win_create_dynamic(info, comm, &win));
    CHECK_STR(value_of(win, hint.key).c_str(), hint.value);
    CHECK_OK(MPI_Win_free(&win));
    CHECK_OK(MPI_Win_allocate(800, 8, info, comm, &base, &win));
    CHECK_STR(value_of(win, hint.key).c_str(), hint.value);
    for (const Hint& other : hints)
      if (std::strcmp(other.key, hint.key) && (!library_is_mpich() || other.of_mpich)) CHECK_STR(value_of(win, other.key).c_str(), other.otherwise);
    check_use(win, base, 0);
    CHECK_OK(MPI_Win_free(&win));
    MPI_Info_free(&info);
  }

  // Given later, and taken back.
  CHECK_OK(MPI_Win_allocate(800, 8, MPI_INFO_NULL, comm, &base, &win));
  MPI_Info info;
  CHECK_OK(MPI_Info_create(&info));
  CHECK_OK(MPI_Info_set(info, "accumulate_ordering", "war,waw"));
  CHECK_OK(MPI_Info_set(info, "nobody_knows_this", "7"));
  CHECK_OK(MPI_Win_set_info(win, info));
  const std::string ordering = value_of(win, "accumulate_ordering");
  CHECK(ordering == "war,waw" || ordering == "rar,raw,war,waw" || ordering == "waw,war");  // it may be stricter than asked
  CHECK_STR(value_of(win, "nobody_knows_this").c_str(), "(none)");
  check_use(win, base, 0);
  CHECK_OK(MPI_Info_set(info, "accumulate_ordering", "rar,raw,war,waw"));
  CHECK_OK(MPI_Info_set(info, "same_op_or_not", "maybe"));
  CHECK_OK(MPI_Win_set_info(win, info));
  CHECK_STR(value_of(win, "accumulate_ordering").c_str(), "rar,raw,war,waw");
  check_use(win, base, 0);
  CHECK_OK(MPI_Info_free(&info));
  CHECK_OK(MPI_Win_free(&win));

  // Values that make no sense.
  CHECK_OK(MPI_Info_create(&info));
  CHECK_OK(MPI_Info_set(info, "accumulate_ordering", "sideways"));
  CHECK_OK(MPI_Info_set(info, "accumulate_ops", "17"));
  CHECK_OK(MPI_Info_set(info, "mpi_accumulate_granularity", "-3"));
  if (!library_is_mpich()) {
    CHECK_OK(MPI_Win_allocate(800, 8, info, comm, &base, &win));
    CHECK_STR(value_of(win, "accumulate_ordering").c_str(), "rar,raw,war,waw");
    CHECK_STR(value_of(win, "accumulate_ops").c_str(), "same_op_no_op");
    CHECK_STR(value_of(win, "mpi_accumulate_granularity").c_str(), "0");
    check_use(win, base, 0);
    CHECK_OK(MPI_Win_free(&win));
  }
  CHECK_OK(MPI_Info_free(&info));

  // Alignment, and MPICH's hint with its values.
  for (const char* alignment : {"8", "64", "256", "4096", "65536"}) {
    CHECK_OK(MPI_Info_create(&info));
    CHECK_OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", alignment));
    CHECK_OK(MPI_Info_set(info, "which_accumulate_ops", "sum,max,no_op"));
    CHECK_OK(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
    for (const bool shared : {false, true}) {
      if (shared && !shares) continue;
      CHECK_OK((shared ? MPI_Win_allocate_shared : MPI_Win_allocate)(100 + 8 * w.rank, 1, info, comm, &base, &win));
      if (!library_is_mpich()) CHECK_EQ(reinterpret_cast<std::uintptr_t>(base) % static_cast<std::uintptr_t>(std::atoi(alignment)), 0);
      if (library_is_heddle()) {
        const std::string said = value_of(win, "mpi_minimum_memory_alignment");
        CHECK_GE(std::atoi(said.c_str()), std::atoi(alignment));
        CHECK_STR(value_of(win, "which_accumulate_ops").c_str(), "sum,max,no_op");
      }
      check_use(win, base, 0);
      CHECK_OK(MPI_Win_free(&win));
    }
    CHECK_OK(MPI_Info_free(&info));
  }

  // no_locks: the rest goes on working.
  info = info_of(hints[0]);
  CHECK_OK(MPI_Win_allocate(800, 8, info, comm, &base, &win));
  CHECK_OK(MPI_Info_free(&info));
  check_use(win, base, 0);
  CHECK_OK(MPI_Win_free(&win));
  MPI_Comm_free(&comm);
  return finish();
}
