// ranks: 1 2
// timeout: 60
// Every argument that can be wrong gives its error class, through the communicator's handler where a window is made and the window's
// afterwards; ranges that leave the target's window are MPI_ERR_RMA_RANGE, from the call or from the flush behind it, and nothing
// outside the window is read or written. (What MPICH 5.0.2 does not check is left out there.)
#include <climits>

#include "windows.hpp"

using namespace test;

namespace {

void in_constructors(MPI_Comm comm) {
  long memory[8] = {};
  void* base = nullptr;
  MPI_Win win = MPI_WIN_NULL;
  const auto check = [&](auto make, int wanted) {
    const int code = make();
    CHECK_EQ(error_class(code), wanted);
    CHECK(win == MPI_WIN_NULL);
  };
  check([&] { return MPI_Win_create(memory, -1, 1, MPI_INFO_NULL, comm, &win); }, MPI_ERR_SIZE);
  check([&] { return MPI_Win_allocate(-1, 1, MPI_INFO_NULL, comm, &base, &win); }, MPI_ERR_SIZE);
  check([&] { return MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win); }, MPI_ERR_COMM);
  check([&] { return MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &base, &win); }, MPI_ERR_COMM);
  check([&] { return MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_NULL, &win); }, MPI_ERR_COMM);
  if (!library_is_mpich()) {
    check([&] { return MPI_Win_create(memory, 8, 0, MPI_INFO_NULL, comm, &win); }, MPI_ERR_DISP);
    check([&] { return MPI_Win_create(memory, 8, -4, MPI_INFO_NULL, comm, &win); }, MPI_ERR_DISP);
    check([&] { return MPI_Win_allocate_c(8, 0, MPI_INFO_NULL, comm, &base, &win); }, MPI_ERR_DISP);
    check([&] { return MPI_Win_create(nullptr, 8, 1, MPI_INFO_NULL, comm, &win); }, MPI_ERR_BASE);
  }
  if (size_in(comm) > 1 && !library_is_mpich()) {  // an intercommunicator has no windows
    const int rank = rank_in(comm);
    MPI_Comm half, both;
    CHECK_OK(MPI_Comm_split(comm, rank == 0, 0, &half));
    CHECK_OK(MPI_Intercomm_create(half, 0, comm, rank == 0 ? 1 : 0, 5, &both));
    CHECK_OK(MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN));
    check([&] { return MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, both, &win); }, MPI_ERR_COMM);
    check([&] { return MPI_Win_allocate(8, 1, MPI_INFO_NULL, both, &base, &win); }, MPI_ERR_COMM);
    check([&] { return MPI_Win_create_dynamic(MPI_INFO_NULL, both, &win); }, MPI_ERR_COMM);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
  }
}

void in_operations(MPI_Win win, int target, const Memory& memory) {
  const int n = size_in(MPI_COMM_WORLD);
  const MPI_Aint at = memory.at(target, 0);
  int value[2] = {1, 2}, result[2] = {}, compare = 0;
  MPI_Datatype open;  // never committed
  CHECK_OK(MPI_Type_contiguous(2, MPI_INT, &open));
  CHECK_OK(MPI_Win_lock_all(0, win));
  for (const int rank : {n, -77, INT_MAX, MPI_ANY_SOURCE}) {
    CHECK_CLASS(MPI_Put(value, 1, MPI_INT, rank, at, 1, MPI_INT, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Get(result, 1, MPI_INT, rank, at, 1, MPI_INT, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Accumulate(value, 1, MPI_INT, rank, at, 1, MPI_INT, MPI_SUM, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Get_accumulate(value, 1, MPI_INT, result, 1, MPI_INT, rank, at, 1, MPI_INT, MPI_SUM, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Fetch_and_op(value, result, MPI_INT, rank, at, MPI_SUM, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Compare_and_swap(value, &compare, result, MPI_INT, rank, at, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Win_flush(rank, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Win_flush_local(rank, win), MPI_ERR_RANK);
  }
  CHECK_CLASS(MPI_Put(value, -1, MPI_INT, target, at, 1, MPI_INT, win), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Put(value, 1, MPI_INT, target, at, -1, MPI_INT, win), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Get(result, -1, MPI_INT, target, at, 1, MPI_INT, win), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Accumulate(value, 1, MPI_INT, target, at, -1, MPI_INT, MPI_SUM, win), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Put_c(value, -1, MPI_INT, target, at, 1, MPI_INT, win), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Put(value, 1, MPI_DATATYPE_NULL, target, at, 1, MPI_INT, win), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Put(value, 1, MPI_INT, target, at, 1, MPI_DATATYPE_NULL, win), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Get(result, 1, open, target, at, 2, MPI_INT, win), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Put(value, 2, MPI_INT, target, at, 1, open, win), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Accumulate(value, 1, MPI_INT, target, at, 1, MPI_INT, MPI_OP_NULL, win), MPI_ERR_OP);
  MPI_Op own;
  CHECK_OK(MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &own));
  CHECK_CLASS(MPI_Accumulate(value, 1, MPI_INT, target, at, 1, MPI_INT, own, win), MPI_ERR_OP);
  CHECK_CLASS(MPI_Fetch_and_op(value, result, MPI_INT, target, at, own, win), MPI_ERR_OP);
  CHECK_CLASS(MPI_Get_accumulate(value, 1, MPI_INT, result, 1, MPI_INT, target, at, 1, MPI_INT, own, win), MPI_ERR_OP);
  CHECK_OK(MPI_Op_free(&own));
  CHECK_CLASS(MPI_Fetch_and_op(value, result, open, target, at, MPI_SUM, win), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Compare_and_swap(value, &compare, result, MPI_DOUBLE, target, at, win), MPI_ERR_TYPE);
  if (!library_is_mpich()) {
    CHECK_CLASS(MPI_Accumulate(value, 1, MPI_DOUBLE, target, at, 1, MPI_DOUBLE, MPI_BAND, win), MPI_ERR_OP);
    CHECK_CLASS(MPI_Fetch_and_op(value, result, MPI_BYTE, target, at, MPI_SUM, win), MPI_ERR_OP);
    // MPI_NO_OP is for operations that fetch.
    CHECK_CLASS(MPI_Accumulate(value, 1, MPI_INT, target, at, 1, MPI_INT, MPI_NO_OP, win), MPI_ERR_OP);
    // The ends of an accumulate are of one basic type, and equally long; those of a put hold as much as each other.
    CHECK_CLASS(MPI_Accumulate(value, 1, MPI_INT, target, at, 1, MPI_FLOAT, MPI_SUM, win), MPI_ERR_TYPE);
    CHECK_NE(MPI_Put(value, 2, MPI_INT, target, at, 1, MPI_INT, win), MPI_SUCCESS);
    CHECK_NE(MPI_Get(result, 1, MPI_INT, target, at, 2, MPI_INT, win), MPI_SUCCESS);
    CHECK_NE(MPI_Accumulate(value, 1, MPI_INT, target, at, 2, MPI_INT, MPI_SUM, win), MPI_SUCCESS);
  }
  CHECK_OK(MPI_Win_unlock_all(win));
  CHECK_OK(MPI_Type_free(&open));
}

void in_synchronisation(MPI_Win win, int n) {
  const int bad_lock = library_is_mpich() ? MPI_ERR_ARG : MPI_ERR_LOCKTYPE, bad_assertion = library_is_mpich() ? MPI_ERR_ARG : MPI_ERR_ASSERT;
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED + 100, 0, 0, win), bad_lock);
  CHECK_CLASS(MPI_Win_lock(0, 0, 0, win), bad_lock);
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, n, 0, win), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Win_unlock(n, win), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 1 << 30, win), bad_assertion);
  CHECK_CLASS(MPI_Win_lock_all(1 << 30, win), bad_assertion);
  CHECK_CLASS(MPI_Win_fence(1 << 30, win), bad_assertion);
  CHECK_CLASS(MPI_Win_start(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Win_post(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Win_start(MPI_GROUP_EMPTY, 1 << 30, win), bad_assertion);
  CHECK_CLASS(MPI_Win_post(MPI_GROUP_EMPTY, 1 << 30, win), bad_assertion);
}

void of_no_window() {
  int value = 0, result = 0, flag = 0;
  MPI_Win null = MPI_WIN_NULL;
  MPI_Group group;
  CHECK_CLASS(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, null), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Fetch_and_op(&value, &result, MPI_INT, 0, 0, MPI_SUM, null), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Win_fence(0, null), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, null), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Win_test(null, &flag), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Win_sync(null), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Win_get_group(null, &group), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Win_attach(null, &value, 4), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Win_free(&null), MPI_ERR_WIN);
}

// The error class of an operation or, where the target has to say so, of the flush behind it.
template <typename Operation>
int outcome(MPI_Win win, int target, Operation operation) {
  int code = operation();
  if (!code) code = MPI_Win_flush(target, win);
  return code ? error_class(code) : MPI_SUCCESS;
}

void out_of_range(Flavour flavour, MPI_Comm comm) {
  const World w = world();
  constexpr int guard = 64, ints = 100;
  std::vector<int> around(2 * guard + ints, 7);
  MPI_Win win;
  int* base = around.data() + guard;
  const int unit = sizeof(int);
  if (flavour == Flavour::create) CHECK_OK(MPI_Win_create(base, ints * unit, unit, MPI_INFO_NULL, comm, &win));
  else if (flavour == Flavour::allocate) CHECK_OK(MPI_Win_allocate(ints * unit, unit, MPI_INFO_NULL, comm, &base, &win));
  else CHECK_OK(MPI_Win_allocate_shared(ints * unit, unit, MPI_INFO_NULL, comm, &base, &win));
  CHECK_OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  std::fill_n(base, ints, 7);
  settle(win, comm);
  CHECK_OK(MPI_Win_lock_all(0, win));
  const int target = (w.rank + 1) % w.size;
  std::vector<int> data(4096, 1), got(4096, 2);
  const auto put = [&](MPI_Aint disp, int count, MPI_Datatype type) {
    return outcome(win, target, [&] { return MPI_Put(data.data(), count, type, target, disp, count, type, win); });
  };
  const auto get = [&](MPI_Aint disp, int count, MPI_Datatype type) {
    return outcome(win, target, [&] { return MPI_Get(got.data(), count, type, target, disp, count, type, win); });
  };
  const auto add = [&](MPI_Aint disp, int count, MPI_Datatype type) {
    return outcome(win, target, [&] { return MPI_Accumulate(data.data(), count, type, target, disp, count, type, MPI_SUM, win); });
  };
  const auto both = [&](MPI_Aint disp, int count, MPI_Datatype type, int wanted) {
    CHECK_EQ(put(disp, count, type), wanted);
    CHECK_EQ(get(disp, count, type), wanted);
    CHECK_EQ(add(disp, count, type), wanted);
  };
  both(ints, 1, MPI_INT, MPI_ERR_RMA_RANGE);
  both(ints - 1, 2, MPI_INT, MPI_ERR_RMA_RANGE);
  both(0, ints + 1, MPI_INT, MPI_ERR_RMA_RANGE);
  both(ints - 1, 1, MPI_DOUBLE, MPI_ERR_RMA_RANGE);
  both(MPI_Aint{1} << 40, 1, MPI_INT, MPI_ERR_RMA_RANGE);
  both(MPI_Aint{1} << 62, 1, MPI_INT, MPI_ERR_RMA_RANGE);  // times its unit it is 0 in 64 bits
  for (const MPI_Aint disp : {MPI_Aint{-1}, MPI_Aint{-1} << 40}) {
    const int cls = put(disp, 1, MPI_INT);
    CHECK(cls == MPI_ERR_DISP || cls == MPI_ERR_RMA_RANGE);
    CHECK_EQ(get(disp, 1, MPI_INT), cls);
  }
  int result = 0;
  CHECK_EQ(outcome(win, target, [&] { return MPI_Fetch_and_op(data.data(), &result, MPI_INT, target, ints, MPI_SUM, win); }), MPI_ERR_RMA_RANGE);
  CHECK_EQ(outcome(win, target, [&] { return MPI_Compare_and_swap(data.data(), data.data() + 1, &result, MPI_INT, target, ints, win); }),
           MPI_ERR_RMA_RANGE);
  CHECK_EQ(outcome(win, target, [&] {
             return MPI_Get_accumulate(data.data(), 2, MPI_INT, got.data(), 2, MPI_INT, target, ints - 1, 2, MPI_INT, MPI_SUM, win);
           }), MPI_ERR_RMA_RANGE);
  // A derived type that reaches out of the window, on either side, though its displacement lies inside.
  MPI_Datatype wide, back;
  CHECK_OK(MPI_Type_vector(2, 1, ints, MPI_INT, &wide));
  CHECK_OK(MPI_Type_commit(&wide));
  CHECK_OK(MPI_Type_vector(2, 1, -2, MPI_INT, &back));
  CHECK_OK(MPI_Type_commit(&back));
  const auto put_as = [&](MPI_Aint disp, MPI_Datatype type) {
    return outcome(win, target, [&] { return MPI_Put(data.data(), 2, MPI_INT, target, disp, 1, type, win); });
  };
  CHECK_EQ(put_as(0, wide), MPI_ERR_RMA_RANGE);
  CHECK_EQ(put_as(1, back), MPI_ERR_RMA_RANGE);
  CHECK_EQ(put_as(2, back), MPI_SUCCESS);  // 2 and 0
  // Nothing at the end is nothing; the last element is one.
  CHECK_EQ(put(ints, 0, MPI_INT), MPI_SUCCESS);
  CHECK_EQ(put(ints - 1, 1, MPI_INT), MPI_SUCCESS);
  CHECK_OK(MPI_Win_unlock_all(win));
  settle(win, comm);
  for (int i = 0; i < ints; ++i) CHECK_EQ(base[i], i == 0 || i == 2 || i == ints - 1 ? 1 : 7);
  if (flavour == Flavour::create)
    for (int i = 0; i < 2 * guard + ints; ++i)
      if (i < guard || i >= guard + ints) CHECK_EQ(around[static_cast<std::size_t>(i)], 7);
  for (const int value : got) CHECK_EQ(value, 2);
  CHECK_OK(MPI_Type_free(&wide));
  CHECK_OK(MPI_Type_free(&back));
  CHECK_OK(MPI_Win_free(&win));
}

// Displacements that, times their unit, are in the window again when 64 bits are not enough.
void overflowing(MPI_Comm comm) {
  const World w = world();
  long memory[2] = {7, 7};
  MPI_Win win;
  CHECK_OK(MPI_Win_create_c(memory, sizeof memory, MPI_Aint{1} << 62, MPI_INFO_NULL, comm, &win));
  CHECK_OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  CHECK_OK(MPI_Win_lock_all(0, win));
  const int target = (w.rank + 1) % w.size;
  long value = 1, result = 2;
  for (int again = 0; again < 2; ++again) {  // the first operation on a target may go another way
    CHECK_EQ(outcome(win, target, [&] { return MPI_Put(&value, 1, MPI_LONG, target, 4, 1, MPI_LONG, win); }), MPI_ERR_RMA_RANGE);
    CHECK_EQ(outcome(win, target, [&] { return MPI_Get(&result, 1, MPI_LONG, target, 8, 1, MPI_LONG, win); }), MPI_ERR_RMA_RANGE);
    CHECK_EQ(outcome(win, target, [&] { return MPI_Fetch_and_op(&value, &result, MPI_LONG, target, 4, MPI_SUM, win); }), MPI_ERR_RMA_RANGE);
  }
  CHECK_OK(MPI_Win_unlock_all(win));
  CHECK_OK(MPI_Win_free(&win));
  CHECK(memory[0] == 7 && memory[1] == 7 && result == 2);
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm comm = returning_world();
  // The handlers of what has no window and no communicator.
  CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  in_constructors(comm);
  of_no_window();
  if (!library_is_mpich()) overflowing(comm);
  for (const Flavour flavour : flavours_on(comm)) {
    Memory memory(flavour, 256, comm, 4);
    MPI_Win_set_errhandler(memory.win, MPI_ERRORS_RETURN);
    in_operations(memory.win, (w.rank + 1) % w.size, memory);
    in_synchronisation(memory.win, w.size);
    for (int i = 0; i < 64; ++i) CHECK_EQ(memory.as<int>()[i], 0);
    if (flavour != Flavour::dynamic) {  // attachments are for the others
      CHECK_CLASS(MPI_Win_attach(memory.win, memory.base, 8), MPI_ERR_RMA_FLAVOR);
      CHECK_CLASS(MPI_Win_detach(memory.win, memory.base), MPI_ERR_RMA_FLAVOR);
    }
    MPI_Barrier(comm);
    memory.free();
    if (!library_is_mpich() && flavour != Flavour::dynamic) out_of_range(flavour, comm);  // 5.0.2 does not look
  }
  MPI_Comm_free(&comm);
  return finish();
}
