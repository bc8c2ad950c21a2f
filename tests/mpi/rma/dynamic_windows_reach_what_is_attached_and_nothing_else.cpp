// ranks: 1 2 4
// timeout: 60
// Memory is attached to and detached from a dynamic window at any time, by each rank for itself: thousands of regions, from the heap,
// the stack, static memory and MPI_Alloc_mem, also neighbours that an operation crosses from one to the next. Addresses are
// MPI_Get_address's and the sums of MPI_Aint_add. What was detached or never attached is refused.
#include "windows.hpp"

using namespace test;

namespace {

MPI_Aint address_of(const void* memory) {
  MPI_Aint address;
  MPI_Get_address(memory, &address);
  return address;
}

std::vector<MPI_Aint> gather(MPI_Aint own, MPI_Comm comm) {
  std::vector<MPI_Aint> all(static_cast<std::size_t>(size_in(comm)));
  MPI_Allgather(&own, 1, MPI_AINT, all.data(), 1, MPI_AINT, comm);
  return all;
}

thread_local long static_memory[16];

// An operation and the flush behind it: one of them says what is wrong with the target's memory.
int refused(MPI_Win win, int target, MPI_Aint at, int count) {
  std::vector<unsigned char> data(static_cast<std::size_t>(count), 0x5A);
  int code = MPI_Put(data.data(), count, MPI_BYTE, target, at, count, MPI_BYTE, win);
  if (!code) code = MPI_Win_flush(target, win);
  return code ? error_class(code) : MPI_SUCCESS;
}

}  // namespace

int main() {
  const World w = init();
  const int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size;
  const auto to = static_cast<std::size_t>(next);
  MPI_Comm comm = returning_world();
  MPI_Win win;
  CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
  CHECK_OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));

  // Each kind of memory.
  std::vector<long> heap(16);
  long stack[16] = {};
  long* allocated = nullptr;
  CHECK_OK(MPI_Alloc_mem(sizeof stack, MPI_INFO_NULL, &allocated));
  for (long* memory : {heap.data(), static_cast<long*>(stack), static_cast<long*>(static_memory), allocated}) {
    std::fill_n(memory, 16, -1L);
    CHECK_OK(MPI_Win_attach(win, memory, sizeof stack));
    const auto where = gather(address_of(memory), comm);
    in_epoch(Epoch::lock_all, win, comm, [&] {
      const long values[2] = {w.rank + 10, w.rank + 20};
      CHECK_OK(MPI_Put(values, 2, MPI_LONG, next, MPI_Aint_add(where[to], 3 * sizeof(long)), 2, MPI_LONG, win));
      long one = 5;
      CHECK_OK(MPI_Accumulate(&one, 1, MPI_LONG, next, where[to], 1, MPI_LONG, MPI_SUM, win));
      CHECK_OK(MPI_Win_flush(next, win));
      long got[4] = {};
      CHECK_OK(MPI_Get(got, 4, MPI_LONG, next, where[to] + 8, 4, MPI_LONG, win));
      CHECK_OK(MPI_Win_flush(next, win));
      CHECK(got[0] == -1 && got[1] == -1 && got[2] == w.rank + 10 && got[3] == w.rank + 20);
    });
    CHECK(memory[0] == 4 && memory[3] == before + 10 && memory[4] == before + 20 && memory[5] == -1);
    CHECK_OK(MPI_Barrier(comm));
    CHECK_OK(MPI_Win_detach(win, memory));
  }
  CHECK_OK(MPI_Free_mem(allocated));

  // Thousands of regions; every second one is detached again; the rest is still reached.
  constexpr std::size_t regions = 5000;
  std::vector<std::vector<int>> blocks(regions);
  std::vector<MPI_Aint> own(regions), theirs(regions);
  for (std::size_t i = 0; i < regions; ++i) {
    blocks[i].assign(4 + i % 7, -1);
    own[i] = address_of(blocks[i].data());
    CHECK_OK(MPI_Win_attach(win, blocks[i].data(), static_cast<MPI_Aint>(blocks[i].size() * sizeof(int))));
  }
  MPI_Sendrecv(own.data(), regions, MPI_AINT, before, 0, theirs.data(), regions, MPI_AINT, next, 0, comm, MPI_STATUS_IGNORE);
  std::vector<int> values(regions);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < regions; ++i) values[i] = static_cast<int>(i) + round;
    in_epoch(round ? Epoch::lock : Epoch::fence, win, comm, [&] {
      for (std::size_t i = 0; i < regions; ++i)
        if (round == 0 || i % 2 == 0)
          CHECK_OK(MPI_Put(&values[i], 1, MPI_INT, next, theirs[i] + 4 * static_cast<MPI_Aint>(i % 4), 1, MPI_INT, win));
    });
    for (std::size_t i = 0; i < regions; ++i)
      for (std::size_t k = 0; k < blocks[i].size(); ++k)
        CHECK_EQ(blocks[i][k], k == i % 4 ? static_cast<int>(i) + (i % 2 ? 0 : round) : -1);
    if (round == 0)
      for (std::size_t i = 1; i < regions; i += 2) CHECK_OK(MPI_Win_detach(win, blocks[i].data()));
  }

  // What is not attached is refused, and harms nothing. (MPICH 5.0.2 writes wherever it is told to. Where it is the target that looks, the job
  // ends: a_region_that_is_not_attached_ends_the_job.cpp.)
  const char* path = std::getenv("HEDDLE_RMA");
  if (!library_is_mpich() && can_share(comm) && !(path && !std::strcmp(path, "am"))) {
    CHECK_OK(MPI_Barrier(comm));
    CHECK_OK(MPI_Win_lock_all(0, win));
    CHECK_EQ(refused(win, next, theirs[1], 4), MPI_ERR_RMA_RANGE);
    CHECK_EQ(refused(win, next, 0, 1), MPI_ERR_RMA_RANGE);  // MPI_BOTTOM itself
    CHECK_EQ(refused(win, next, theirs[0], 4 * sizeof(int) + 1), MPI_ERR_RMA_RANGE);  // one byte too many
    CHECK_EQ(refused(win, next, MPI_Aint_diff(theirs[0], 1), 4), MPI_ERR_RMA_RANGE);  // one byte too early
    CHECK_EQ(refused(win, next, theirs[0], 0), MPI_SUCCESS);
    CHECK_EQ(refused(win, next, theirs[7], 0), MPI_SUCCESS);
    CHECK_OK(MPI_Win_unlock_all(win));
    CHECK_OK(MPI_Barrier(comm));
    CHECK_EQ(blocks[0][3], -1);
    CHECK_NE(MPI_Win_detach(win, blocks[1].data()), MPI_SUCCESS);
    CHECK_NE(MPI_Win_detach(win, blocks[0].data() + 1), MPI_SUCCESS);
  }
  // Attached again, it is reached again; and memory may leave the program with its attachment.
  CHECK_OK(MPI_Win_attach(win, blocks[1].data(), static_cast<MPI_Aint>(blocks[1].size() * sizeof(int))));
  in_epoch(Epoch::start, win, comm, [&] { CHECK_OK(MPI_Put(&values[3], 1, MPI_INT, next, theirs[1], 1, MPI_INT, win)); });
  CHECK_EQ(blocks[1][0], values[3]);
  CHECK_OK(MPI_Barrier(comm));
  CHECK_OK(MPI_Win_detach(win, blocks[1].data()));
  for (std::size_t i = 0; i < regions; i += 2) CHECK_OK(MPI_Win_detach(win, blocks[i].data()));
  blocks.clear();

  // Ranks attach different amounts, or nothing, while others communicate.
  std::vector<int> mine(w.rank == 0 ? 64 : 0, 7);
  if (w.rank == 0) CHECK_OK(MPI_Win_attach(win, mine.data(), 64 * sizeof(int)));
  MPI_Aint where = w.rank == 0 ? address_of(mine.data()) : 0;
  MPI_Bcast(&where, 1, MPI_AINT, 0, comm);
  CHECK_OK(MPI_Win_lock_all(0, win));
  for (int i = 0; i < 50; ++i) {
    std::vector<int> other(100);
    CHECK_OK(MPI_Win_attach(win, other.data(), 400));
    int got = 0;
    CHECK_OK(MPI_Get(&got, 1, MPI_INT, 0, where + 4 * i, 1, MPI_INT, win));
    CHECK_OK(MPI_Win_flush_local(0, win));
    CHECK_EQ(got, 7);
    CHECK_OK(MPI_Win_detach(win, other.data()));
  }
  CHECK_OK(MPI_Win_unlock_all(win));
  CHECK_OK(MPI_Win_free(&win));  // what is attached still goes with it
  MPI_Comm_free(&comm);
  return finish();
}
