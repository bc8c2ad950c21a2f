// ranks: 2
// timeout: 60
// A session of one thread is at work when another one is opened that wants them all. What the first one has begun goes on meanwhile, over a network
// in the hands of the library's own thread (under ThreadSanitizer this test fails where that reads the level without care); afterwards two
// threads communicate.
#include "../support.hpp"

using namespace test;

namespace {

struct Part {
  MPI_Session session;
  MPI_Comm comm;
};

Part open(const char* level, const char* tag) {
  Part part;
  MPI_Info info;
  MPI_Group group;
  CHECK_OK(MPI_Info_create(&info));
  CHECK_OK(MPI_Info_set(info, "thread_level", level));
  CHECK_OK(MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &part.session));
  CHECK_OK(MPI_Info_free(&info));
  CHECK_OK(MPI_Group_from_session_pset(part.session, "mpi://WORLD", &group));
  CHECK_OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &part.comm));
  CHECK_OK(MPI_Group_free(&group));
  return part;
}

void close(Part& part) {
  CHECK_OK(MPI_Comm_free(&part.comm));
  CHECK_OK(MPI_Session_finalize(&part.session));
}

void exchange(MPI_Comm comm, int rank) {
  for (int i = 0; i < 2000; ++i) {
    int in = -1;
    const int out = i * 2 + rank;
    CHECK_OK(MPI_Sendrecv(&out, 1, MPI_INT, 1 - rank, 0, &in, 1, MPI_INT, 1 - rank, 0, comm, MPI_STATUS_IGNORE));
    CHECK_EQ(in, i * 2 + 1 - rank);
  }
}

}  // namespace

int main() {
  constexpr int blocks = 1 << 18;  // every other number: sent in pieces that the sender makes when the receiver asks
  Part first = open("MPI_THREAD_SINGLE", "first");
  int rank = -1;
  MPI_Comm_rank(first.comm, &rank);
  MPI_Datatype every_other;
  CHECK_OK(MPI_Type_vector(blocks, 1, 2, MPI_INT, &every_other));
  CHECK_OK(MPI_Type_commit(&every_other));
  std::vector<int> numbers(2 * blocks, -1);

  MPI_Request request;
  if (rank == 0) {
    for (int i = 0; i < blocks; ++i) numbers[static_cast<std::size_t>(2 * i)] = i;
    CHECK_OK(MPI_Isend(numbers.data(), 1, every_other, 1, 1, first.comm, &request));
  } else {
    CHECK_OK(MPI_Irecv(numbers.data(), 1, every_other, 0, 1, first.comm, &request));
  }
  MPI_Session second;
  CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &second));  // of all threads, as nothing else is said
  int level = -1;
  CHECK_OK(MPI_Query_thread(&level));
  CHECK_EQ(level, MPI_THREAD_MULTIPLE);
  // The sender computes for longer than the library's own thread waits until it looks itself. Nothing depends on that.
  if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int i = 0; i < blocks; ++i) CHECK_EQ(numbers[static_cast<std::size_t>(2 * i)], i);

  CHECK_OK(MPI_Type_free(&every_other));
  close(first);  // which said that there is one thread

  Part third = open("MPI_THREAD_MULTIPLE", "third"), fourth = open("MPI_THREAD_MULTIPLE", "fourth");
  std::thread other(exchange, third.comm, rank);
  exchange(fourth.comm, rank);
  other.join();
  close(third);
  close(fourth);
  CHECK_OK(MPI_Session_finalize(&second));
  return 0;
}
