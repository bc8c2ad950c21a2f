// ranks: 1 2
// threads: 2
// timeout: 60
// env: HEDDLE_VCIS=4
// A thread that communicates through a stream while another is inside a call on it gets an error that names that thread and its call,
// and nothing breaks: the other's call completes. Wrong streams, places, counts, hints and early frees are errors too.
#include "../support.hpp"

#include <mpix.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

using namespace test;

int main() {
  const World w = init_threads();
  for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPIX_Stream stream, wrong = MPIX_STREAM_NULL;
  MPI_Comm comm;
  CHECK_CLASS(MPIX_Stream_create(MPI_INFO_NULL, nullptr), MPI_ERR_ARG);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "type", "cudaStream_t");
  const int type = MPIX_Stream_create(info, &stream);
  CHECK_CLASS(type, MPI_ERR_ARG);
  CHECK_NAMES(error_text(type), "cudaStream_t");
  MPI_Info_free(&info);
  CHECK_CLASS(MPIX_Stream_free(&wrong), MPI_ERR_ARG);
  CHECK_OK(MPIX_Stream_create(MPI_INFO_NULL, &stream));
  CHECK_CLASS(MPIX_Stream_comm_create_multiplex(MPI_COMM_WORLD, -1, &stream, &comm), MPI_ERR_COUNT);
  CHECK_CLASS(MPIX_Stream_comm_create_multiplex(MPI_COMM_WORLD, 1, nullptr, &comm), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Stream_comm_create(MPI_COMM_NULL, stream, &comm), MPI_ERR_COMM);
  int value = 1;
  CHECK_CLASS(MPIX_Stream_send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, 0, 0), MPI_ERR_COMM);

  CHECK_OK(MPIX_Stream_comm_create(MPI_COMM_WORLD, stream, &comm));
  CHECK_CLASS(MPIX_Stream_send(&value, 1, MPI_INT, 0, 0, comm, 1, 0), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Stream_send(&value, 1, MPI_INT, 0, 0, comm, 0, 1), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Stream_send(&value, 1, MPI_INT, 0, 0, comm, -1, 0), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Stream_recv(&value, 1, MPI_INT, 0, 0, comm, 1, 0, MPI_STATUS_IGNORE), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Stream_recv(&value, 1, MPI_INT, 0, 0, comm, MPIX_ANY_INDEX, 1, MPI_STATUS_IGNORE), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Stream_send(&value, 1, MPI_INT, w.size, 0, comm, 0, 0), MPI_ERR_RANK);
  CHECK_CLASS(MPIX_Stream_send(&value, -1, MPI_INT, 0, 0, comm, 0, 0), MPI_ERR_COUNT);
  MPIX_Stream found = MPIX_STREAM_NULL;
  CHECK_CLASS(MPIX_Comm_get_stream(comm, 1, &found), MPI_ERR_ARG);
  wrong = stream;
  const int early = MPIX_Stream_free(&wrong);
  CHECK_CLASS(early, MPI_ERR_PENDING);
  CHECK(wrong == stream);

  CHECK_OK(MPI_Comm_free(&comm));

  // A thread waits inside MPI_Recv for a message to the first of two streams.
  MPIX_Stream streams[2] = {stream, MPIX_STREAM_NULL};
  CHECK_OK(MPIX_Stream_create(MPI_INFO_NULL, &streams[1]));
  CHECK_OK(MPIX_Stream_comm_create_multiplex(MPI_COMM_WORLD, 2, streams, &comm));
  std::atomic<long> waiter{0};
  std::thread other([&] {
    waiter = syscall(SYS_gettid);
    int in = -1, code = MPI_SUCCESS;
    // The main thread looks whether this one is there, and may be the one inside a call.
    do code = MPI_Recv(&in, 1, MPI_INT, w.rank, 5, comm, MPI_STATUS_IGNORE);
    while (error_class(code) == MPI_ERR_OTHER);
    CHECK_OK(code);
    CHECK_EQ(in, 77);
  });
  std::string text;
  CHECK(eventually([&] {
    const int code = MPIX_Stream_progress(stream);
    if (code == MPI_SUCCESS) return false;
    CHECK_CLASS(code, MPI_ERR_OTHER);
    text = error_text(code);
    return true;
  }));
  const std::string name = "thread " + std::to_string(waiter.load());
  CHECK_NAMES(text, name);
  CHECK_NAMES(text, "MPI_Recv");
  const int out = 77;
  const int refused = MPI_Send(&out, 1, MPI_INT, w.rank, 5, comm);
  CHECK_CLASS(refused, MPI_ERR_OTHER);
  CHECK_NAMES(error_text(refused), name);
  CHECK_CLASS(MPIX_Stream_send(&out, 1, MPI_INT, w.rank, 5, comm, 0, 1), MPI_ERR_OTHER);
  MPI_Request request;
  CHECK_CLASS(MPI_Irecv(&value, 1, MPI_INT, w.rank, 6, comm, &request), MPI_ERR_OTHER);
  MPI_Comm twin;
  CHECK_CLASS(MPI_Comm_dup(comm, &twin), MPI_ERR_OTHER);
  int rank = -1;
  CHECK_OK(MPI_Comm_rank(comm, &rank));  // uses no stream
  CHECK_EQ(rank, w.rank);
  CHECK_OK(MPIX_Stream_send(&out, 1, MPI_INT, w.rank, 5, comm, 1, 0));  // from a stream of its own: what the waiter waits for
  other.join();
  CHECK_OK(MPI_Barrier(comm));  // the stream is free again, for any thread

  // An error found at completion goes to the communicator that the program knows.
  const int four[4] = {1, 2, 3, 4};
  MPI_Comm_set_name(comm, "streams");
  CHECK_OK(MPIX_Stream_irecv(&value, 1, MPI_INT, w.rank, 8, comm, 1, 0, &request));
  CHECK_OK(MPIX_Stream_send(four, 4, MPI_INT, w.rank, 8, comm, 1, 0));
  const int truncated = MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_CLASS(truncated, MPI_ERR_TRUNCATE);
  CHECK_NAMES(error_text(truncated), "streams");

  CHECK_OK(MPI_Comm_free(&comm));
  for (MPIX_Stream& one : streams) CHECK_OK(MPIX_Stream_free(&one));
  CHECK_CLASS(MPIX_Stream_free(&wrong), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Stream_progress(wrong), MPI_ERR_ARG);
  return finish();
}
