// ranks: 2
// threads: 2
// timeout: 60
// env: HEDDLE_VCIS=8
// While a thread is in a collective call of a communicator (its own reduction operation says so, from inside), a
// collective call of another thread on that communicator is an error that names both calls. The first call is not
// harmed, the communicator works afterwards, and other communicators work meanwhile.
#include <atomic>

#include "litmus.hpp"

using namespace test;

namespace {

enum Step { before, inside, tried };
std::atomic<int> step{before};
bool meet = false;  // this rank's next reduction waits for the other thread

void add_slowly(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
  if (!meet) return;
  meet = false;
  step.store(inside, std::memory_order_release);  // pairs with the acquire of the other thread
  CHECK(eventually([] { return step.load(std::memory_order_acquire) == tried; }));
}

void check_refused(int code, const char* call) {
  CHECK_EQ(error_class(code), MPI_ERR_OTHER);
  if (!library_is_heddle()) return;
  CHECK_NAMES(error_text(code), "MPI_Allreduce");
  CHECK_NAMES(error_text(code), call);
  CHECK_NAMES(error_text(code), "MPI_Comm_dup");
}

// One of the calls that must be refused.
void try_call(int which, MPI_Comm comm) {
  int value = 1, out = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Group group;
  switch (which) {
    case 0:
      check_refused(MPI_Barrier(comm), "MPI_Barrier");
      break;
    case 1:
      check_refused(MPI_Allreduce(&value, &out, 1, MPI_INT, MPI_SUM, comm), "MPI_Allreduce");
      break;
    case 2:
      check_refused(MPI_Ibcast(&value, 1, MPI_INT, 0, comm, &request), "MPI_Ibcast");
      break;
    case 3:
      check_refused(MPI_Barrier_init(comm, MPI_INFO_NULL, &request), "MPI_Barrier_init");
      break;
    case 4:
      check_refused(MPI_Comm_dup(comm, &made), "bcast");
      break;
    case 5:
      check_refused(MPI_Comm_split(comm, 0, 0, &made), "allgather");
      break;
    default:
      MPI_Comm_group(comm, &group);
      check_refused(MPI_Comm_create(comm, group, &made), "MPI_Comm_create");
      MPI_Group_free(&group);
  }
  CHECK(request == MPI_REQUEST_NULL);
  CHECK(made == MPI_COMM_NULL);
}

}  // namespace

int main(int argc, char** argv) {
  const World w = init_threads();
  Communicators comms(3);
  MPI_Op op;
  MPI_Op_create(add_slowly, 1, &op);
  for (int c : {0, 1, 2}) MPI_Comm_set_errhandler(comms[c], MPI_ERRORS_RETURN);
  for (int i = 0, times = repeats(argc, argv, 70); i < times; ++i) {
    const MPI_Comm comm = comms[i % 2];
    step.store(before, std::memory_order_relaxed);
    meet = w.rank == i / 7 % 2;  // the op runs on both ranks; one of them is caught
    const bool here = meet;
    run_threads(2, [&](int t) {
      if (t == 0) {
        const int mine = w.rank + 1;
        int sum = 0;
        if (i % 3 == 0) {
          CHECK_OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, op, comm));
        } else {  // larger than what goes through shared slots
          std::vector<int> in(5'000, mine), out(5'000);
          CHECK_OK(MPI_Allreduce(in.data(), out.data(), 5'000, MPI_INT, op, comm));
          sum = out[4'999];
        }
        CHECK_EQ(sum, 3);
      } else {
        if (here) {
          CHECK(eventually([] { return step.load(std::memory_order_acquire) == inside; }));
          try_call(i % 7, comm);
        }
        int one = 1, sum = 0;
        CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[2]));
        CHECK_EQ(sum, 2);
        if (here) step.store(tried, std::memory_order_release);
      }
    });
    int one = 1, sum = 0;
    CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(sum, 2);
  }
  MPI_Op_free(&op);
  comms.free();
  return finish();
}
