// ranks: 1 2
// threads: 2
// timeout: 60
// env: HEDDLE_VCIS=4
// Wrong uses of thread communicators are MPI errors that say what to do: a thread without a rank, a second start, more threads than
// were asked for, finish without start, free while a thread has a rank, MPI_Comm_free, other communicators, a negative count,
// a handle after it was freed. What the program does right meanwhile goes on.
#include "../support.hpp"

#include <mpix.h>

#include <atomic>

using namespace test;

int main() {
  init_threads();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm comm = MPI_COMM_NULL;
  CHECK_CLASS(MPIX_Threadcomm_init(MPI_COMM_WORLD, -1, &comm), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Threadcomm_init(MPI_COMM_NULL, 1, &comm), MPI_ERR_COMM);
  CHECK_CLASS(MPIX_Threadcomm_init(MPI_COMM_WORLD, 1, nullptr), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Threadcomm_start(MPI_COMM_WORLD), MPI_ERR_COMM);
  CHECK_CLASS(MPIX_Threadcomm_start(MPI_COMM_NULL), MPI_ERR_COMM);
  comm = MPI_COMM_WORLD;
  CHECK_CLASS(MPIX_Threadcomm_free(&comm), MPI_ERR_COMM);
  CHECK(comm == MPI_COMM_WORLD);
  int flag = -1;
  CHECK_CLASS(MPIX_Comm_test_threadcomm(MPI_COMM_NULL, &flag), MPI_ERR_COMM);

  CHECK_OK(MPIX_Threadcomm_init(MPI_COMM_WORLD, 2, &comm));
  int rank = -1, value = 0;
  const int code = MPI_Comm_rank(comm, &rank);
  CHECK_CLASS(code, MPI_ERR_COMM);
  CHECK_NAMES(error_text(code), "MPIX_Threadcomm_start");
  CHECK_CLASS(MPI_Send(&value, 1, MPI_INT, 0, 0, comm), MPI_ERR_COMM);
  CHECK_CLASS(MPIX_Threadcomm_finish(comm), MPI_ERR_OTHER);
  MPI_Comm copy = comm;
  const int freed = MPI_Comm_free(&copy);
  CHECK_CLASS(freed, MPI_ERR_COMM);
  CHECK_NAMES(error_text(freed), "MPIX_Threadcomm_free");

  std::atomic<bool> other_started{false}, third_refused{false};
  std::thread other([&] {
    CHECK_OK(MPIX_Threadcomm_start(comm));
    other_started = true;
    int sum = 0;
    const int one = 1;
    CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    int size = 0;
    CHECK_OK(MPI_Comm_size(comm, &size));
    CHECK_EQ(sum, size);
    CHECK_OK(MPIX_Threadcomm_finish(comm));
  });
  CHECK_OK(MPIX_Threadcomm_start(comm));
  CHECK(eventually([&] { return other_started.load(); }));
  const int again = MPIX_Threadcomm_start(comm);
  CHECK_CLASS(again, MPI_ERR_OTHER);
  CHECK_NAMES(error_text(again), "started already");
  std::thread third([&] {
    const int refused = MPIX_Threadcomm_start(comm);
    CHECK_CLASS(refused, MPI_ERR_OTHER);
    CHECK_NAMES(error_text(refused), "all 2 ranks");
    CHECK_CLASS(MPI_Barrier(comm), MPI_ERR_COMM);
  });
  third.join();
  copy = comm;
  CHECK_CLASS(MPIX_Threadcomm_free(&copy), MPI_ERR_PENDING);
  CHECK(copy == comm);
  int sum = 0;
  const int one = 1;
  CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK_OK(MPIX_Threadcomm_finish(comm));
  other.join();
  CHECK_CLASS(MPI_Comm_rank(comm, &rank), MPI_ERR_COMM);
  CHECK_OK(MPIX_Threadcomm_free(&comm));
  CHECK_CLASS(MPI_Comm_rank(copy, &rank), MPI_ERR_COMM);
  CHECK_CLASS(MPIX_Threadcomm_start(copy), MPI_ERR_COMM);

  // No thread of this process is a rank of it.
  CHECK_OK(MPIX_Threadcomm_init(MPI_COMM_WORLD, 0, &comm));
  CHECK_CLASS(MPIX_Threadcomm_start(comm), MPI_ERR_OTHER);
  CHECK_OK(MPIX_Threadcomm_free(&comm));
  return finish();
}
