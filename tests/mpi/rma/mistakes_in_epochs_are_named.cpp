// ranks: 1 2
// timeout: 60
// Operations outside of an epoch, synchronisation that nothing was opened for, epochs inside epochs and windows freed within one are
// MPI_ERR_RMA_SYNC from the call that is wrong, in every flavour; they harm nothing: the window works afterwards.
#include "windows.hpp"

using namespace test;

namespace {

// A mistake that MPICH 5.0.2 does not notice.
#define UNSEEN_BY_MPICH(call)                                        \
  do {                                                               \
    if (!library_is_mpich()) CHECK_CLASS(call, MPI_ERR_RMA_SYNC); \
  } while (0)

void operations_need_an_epoch(const Memory& memory, int target) {
  const MPI_Win win = memory.win;
  const MPI_Aint at = memory.at(target, 0);
  int value = 9, result = 0, compare = 0;
  CHECK_CLASS(MPI_Put(&value, 1, MPI_INT, target, at, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Get(&result, 1, MPI_INT, target, at, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Accumulate(&value, 1, MPI_INT, target, at, 1, MPI_INT, MPI_SUM, win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Get_accumulate(&value, 1, MPI_INT, &result, 1, MPI_INT, target, at, 1, MPI_INT, MPI_SUM, win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Fetch_and_op(&value, &result, MPI_INT, target, at, MPI_SUM, win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Compare_and_swap(&value, &compare, &result, MPI_INT, target, at, win), MPI_ERR_RMA_SYNC);
  MPI_Request request = MPI_REQUEST_NULL;
  CHECK_CLASS(MPI_Rput(&value, 1, MPI_INT, target, at, 1, MPI_INT, win, &request), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Rget(&result, 1, MPI_INT, target, at, 1, MPI_INT, win, &request), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Raccumulate(&value, 1, MPI_INT, target, at, 1, MPI_INT, MPI_SUM, win, &request), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Rget_accumulate(&value, 1, MPI_INT, &result, 1, MPI_INT, target, at, 1, MPI_INT, MPI_SUM, win, &request), MPI_ERR_RMA_SYNC);
}

void nothing_to_close(MPI_Win win, int target) {
  int flag = 0;
  CHECK_CLASS(MPI_Win_unlock(target, win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_flush(target, win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_flush_local(target, win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_flush_local_all(win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC);
}

void still_works(Memory& memory, MPI_Comm comm) {
  const World w = world();
  const int next = (w.rank + 1) % w.size, value = w.rank + 3;
  memory.as<int>()[20] = 0;
  in_epoch(Epoch::lock, memory.win, comm, [&] { CHECK_OK(MPI_Put(&value, 1, MPI_INT, next, memory.at(next, 80), 1, MPI_INT, memory.win)); });
  CHECK_EQ(memory.as<int>()[20], (w.rank + w.size - 1) % w.size + 3);
  CHECK_EQ(memory.as<int>()[0], 0);
  MPI_Barrier(comm);
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm comm = returning_world();
  const int next = (w.rank + 1) % w.size;
  for (const Flavour flavour : flavours_on(comm)) {
    Memory memory(flavour, 256, comm, 4);
    const MPI_Win win = memory.win;
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Group all;
    MPI_Win_get_group(win, &all);
    int value = 1;

    operations_need_an_epoch(memory, next);
    nothing_to_close(win, next);
    still_works(memory, comm);

    // Within locks: of one target, an operation on another; a second lock of the same; every other kind of epoch.
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, w.rank, 0, win));
    if (w.size > 1 && !library_is_mpich()) {  // 5.0.2 does not notice
      operations_need_an_epoch(memory, next);
      CHECK_CLASS(MPI_Win_flush(next, win), MPI_ERR_RMA_SYNC);
      CHECK_CLASS(MPI_Win_unlock(next, win), MPI_ERR_RMA_SYNC);
    }
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, w.rank, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w.rank, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_start(all, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_unlock(w.rank, win));
    still_works(memory, comm);

    CHECK_OK(MPI_Win_lock_all(0, win));
    CHECK_CLASS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock(next, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_start(all, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_unlock_all(win));
    still_works(memory, comm);

    // Within start and post.
    MPI_Group self;
    MPI_Group_incl(all, 1, &w.rank, &self);
    CHECK_OK(MPI_Win_post(self, 0, win));
    UNSEEN_BY_MPICH(MPI_Win_post(self, 0, win));
    CHECK_OK(MPI_Win_start(self, 0, win));
    CHECK_CLASS(MPI_Win_start(self, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, w.rank, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush(w.rank, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock(w.rank, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    if (w.size > 1) UNSEEN_BY_MPICH(MPI_Put(&value, 1, MPI_INT, next, memory.at(next, 0), 1, MPI_INT, win));  // not of the group
    MPI_Request request = MPI_REQUEST_NULL;  // R-forms are for passive targets only
    UNSEEN_BY_MPICH(MPI_Rput(&value, 1, MPI_INT, w.rank, memory.at(w.rank, 0), 1, MPI_INT, win, &request));
    CHECK_OK(MPI_Win_complete(win));
    CHECK_CLASS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    operations_need_an_epoch(memory, w.rank);  // only exposed
    CHECK_OK(MPI_Win_wait(win));
    CHECK_CLASS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
    MPI_Group_free(&self);
    still_works(memory, comm);

    // Between fences with operations; behind one that says that nothing succeeds.
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    int result = 0;
    CHECK_OK(MPI_Get(&result, 1, MPI_INT, next, memory.at(next, 0), 1, MPI_INT, win));
    CHECK_CLASS(MPI_Win_flush(next, win), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    UNSEEN_BY_MPICH(MPI_Put(&value, 1, MPI_INT, next, memory.at(next, 0), 1, MPI_INT, win));
    still_works(memory, comm);

    // A window is not freed within an epoch.
    MPI_Win copy = win;
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, w.rank, 0, win));
    CHECK_CLASS(MPI_Win_free(&copy), MPI_ERR_RMA_SYNC);
    CHECK(copy == win);
    CHECK_OK(MPI_Win_unlock(w.rank, win));
    CHECK_OK(MPI_Win_lock_all(0, win));
    CHECK_CLASS(MPI_Win_free(&copy), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_unlock_all(win));

    // The text names the remedy.
    if (library_is_heddle()) {
      CHECK_NAMES(error_text(MPI_Put(&value, 1, MPI_INT, next, memory.at(next, 0), 1, MPI_INT, win)), "MPI_Win_lock");
      CHECK_NAMES(error_text(MPI_Win_unlock(next, win)), "MPI_Win_lock");
      CHECK_NAMES(error_text(MPI_Win_complete(win)), "MPI_Win_start");
    }
    MPI_Group_free(&all);
    still_works(memory, comm);
    memory.free();
  }
  MPI_Comm_free(&comm);
  return finish();
}
