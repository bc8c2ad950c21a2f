// ranks: 1 2
// timeout: 60
// What a program may not do with partitioned requests is an error that names it, and harms nothing: the round ends as if it had not happened.
#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int out[4] = {1, 2, 3, 4}, in[4] = {}, flag = 0;
  MPI_Request send, receive, none = MPI_REQUEST_NULL, plain;

  CHECK_CLASS(MPI_Precv_init(in, 4, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_SELF, MPI_INFO_NULL, &receive), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Precv_init(in, 4, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_SELF, MPI_INFO_NULL, &receive), MPI_ERR_TAG);
  CHECK_CLASS(MPI_Psend_init(out, 4, 1, MPI_INT, 1, 1, MPI_COMM_SELF, MPI_INFO_NULL, &send), MPI_ERR_RANK);

  CHECK_OK(MPI_Psend_init(out, 4, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_INFO_NULL, &send));
  CHECK_OK(MPI_Precv_init(in, 4, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_INFO_NULL, &receive));
  // Inactive.
  CHECK_CLASS(MPI_Pready(0, send), MPI_ERR_REQUEST);
  CHECK_OK(MPI_Parrived(receive, 0, &flag));
  CHECK(flag);
  flag = 0;
  CHECK_OK(MPI_Parrived(none, 0, &flag));
  CHECK(flag);
  CHECK_CLASS(MPI_Pready(0, none), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Cancel(&send), MPI_ERR_REQUEST);

  CHECK_OK(MPI_Start(&send));
  CHECK_OK(MPI_Start(&receive));
  CHECK_CLASS(MPI_Start(&send), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Pready(4, send), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready(-1, send), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready_range(2, 1, send), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready_range(2, 4, send), MPI_ERR_ARG);
  CHECK_OK(MPI_Pready(2, send));
  CHECK_CLASS(MPI_Pready(2, send), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready(0, receive), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Parrived(send, 0, &flag), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Parrived(receive, 4, &flag), MPI_ERR_ARG);
  CHECK_OK(MPI_Parrived(receive, 0, &flag));
  CHECK(!flag);
  CHECK_CLASS(MPI_Cancel(&send), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Cancel(&receive), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Request_free(&send), MPI_ERR_REQUEST);
  CHECK(send != MPI_REQUEST_NULL);
  CHECK_OK(MPI_Test(&receive, &flag, MPI_STATUS_IGNORE));
  CHECK(!flag);
  const int rest[] = {3, 0, 1};
  CHECK_OK(MPI_Pready_list(3, rest, send));
  CHECK_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
  CHECK_OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
  for (int i = 0; i < 4; ++i) CHECK_EQ(in[i], i + 1);
  CHECK_OK(MPI_Request_free(&send));
  CHECK_OK(MPI_Request_free(&receive));

  // Another kind of request.
  CHECK_OK(MPI_Recv_init(in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &plain));
  CHECK_CLASS(MPI_Pready(0, plain), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Parrived(plain, 0, &flag), MPI_ERR_REQUEST);
  CHECK_OK(MPI_Request_free(&plain));

  // MPI_PROC_NULL.
  CHECK_OK(MPI_Psend_init(out, 2, 2, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
  CHECK_OK(MPI_Precv_init(in, 2, 2, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
  for (int round = 0; round < 3; ++round) {
    MPI_Status status;
    CHECK_OK(MPI_Start(&send));
    CHECK_OK(MPI_Start(&receive));
    CHECK_OK(MPI_Pready_range(0, 1, send));
    CHECK_OK(MPI_Parrived(receive, 1, &flag));
    CHECK(flag);
    CHECK_OK(MPI_Wait(&receive, &status));
    CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
    CHECK_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
  }
  CHECK_OK(MPI_Request_free(&send));
  CHECK_OK(MPI_Request_free(&receive));

  // Sizes that differ: the receive says so, the send ends, in each round; small and large.
  const int peer = w.size - 1 - w.rank;
  for (const int n : {3, 100'000}) {
    for (const int difference : {-1, 1}) {
      std::vector<int> data(static_cast<std::size_t>(4 * n)), to(static_cast<std::size_t>(4 * (n + 1)) + 1, -1);
      CHECK_OK(MPI_Psend_init(data.data(), 4, n, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
      CHECK_OK(MPI_Precv_init(to.data(), 1, 4 * n + difference, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
      for (int round = 0; round < 2; ++round) {
        CHECK_OK(MPI_Start(&receive));
        CHECK_OK(MPI_Start(&send));
        CHECK_OK(MPI_Pready_range(0, 3, send));
        CHECK_CLASS(MPI_Wait(&receive, MPI_STATUS_IGNORE), difference < 0 ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT);
        CHECK_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
      }
      for (const int word : to) CHECK_EQ(word, -1);
      CHECK_OK(MPI_Request_free(&send));
      CHECK_OK(MPI_Request_free(&receive));
    }
  }
  return finish();
}
