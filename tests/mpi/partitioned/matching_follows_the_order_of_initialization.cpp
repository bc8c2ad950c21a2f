// ranks: 1 2
// timeout: 60
// Partitioned sends and receives match once, in the order of their initialization for each communicator, rank and tag, whatever the order of
// starts; one that is freed without ever being started has its match all the same. Other messages with the same tag are another matter.
#include "../support.hpp"

using namespace test;

namespace {

void ordered(const World& w, MPI_Comm comm, bool receives_first) {
  constexpr int n = 6;
  const bool sends = w.rank == 0, receives = w.rank == w.size - 1;
  int out[n][2], in[n][2];
  MPI_Request send[n], receive[n];
  for (int phase = 0; phase < 2; ++phase) {
    if (receives && phase == !receives_first)
      for (int i = 0; i < n; ++i) MPI_Precv_init(in[i], 2, 1, MPI_INT, 0, i % 2, comm, MPI_INFO_NULL, &receive[i]);
    if (sends && phase == receives_first)
      for (int i = 0; i < n; ++i) MPI_Psend_init(out[i], 1, 2, MPI_INT, w.size - 1, i % 2, comm, MPI_INFO_NULL, &send[i]);
    MPI_Barrier(comm);
  }
  // The pair 2 is never started, at one end each: it must not hand its match on to pair 4.
  if (sends) MPI_Request_free(&send[2]);
  if (receives) MPI_Request_free(&receive[2]);
  for (int round = 0; round < 20; ++round) {
    if (receives) {
      for (int i = n - 1; i >= 0; --i) {
        in[i][0] = in[i][1] = -1;
        if (i != 2) MPI_Start(&receive[i]);
      }
    }
    if (sends) {
      for (int k = 0; k < n; ++k) {
        const int i = (k * 5 + round) % n;
        if (i == 2) continue;
        out[i][0] = round * 100 + i;
        out[i][1] = -out[i][0];
        MPI_Start(&send[i]);
        MPI_Pready(0, send[i]);
      }
    }
    for (int i = 0; i < n; ++i) {
      if (i == 2) continue;
      if (receives) {
        MPI_Wait(&receive[i], MPI_STATUS_IGNORE);
        CHECK_EQ(in[i][0], round * 100 + i);
        CHECK_EQ(in[i][1], -in[i][0]);
      }
      if (sends) MPI_Wait(&send[i], MPI_STATUS_IGNORE);
    }
  }
  for (int i = 0; i < n; ++i) {
    if (i == 2) continue;
    if (sends) MPI_Request_free(&send[i]);
    if (receives) MPI_Request_free(&receive[i]);
  }
}

// A receive freed before its send exists.
void freed_before_its_match(const World& w) {
  const bool sends = w.rank == 0, receives = w.rank == w.size - 1;
  int out[2] = {11, 22}, in = 0;
  MPI_Request send[2], receive;
  if (receives) {
    MPI_Request gone;
    MPI_Precv_init(&in, 1, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &gone);
    MPI_Request_free(&gone);
    MPI_Precv_init(&in, 1, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
    MPI_Start(&receive);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (sends) {
    for (int i = 0; i < 2; ++i) MPI_Psend_init(&out[i], 1, 1, MPI_INT, w.size - 1, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &send[i]);
    MPI_Request_free(&send[0]);
    MPI_Start(&send[1]);
    MPI_Pready(0, send[1]);
  }
  if (receives) {
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    CHECK_EQ(in, 22);
    MPI_Request_free(&receive);
  }
  if (sends) {
    MPI_Wait(&send[1], MPI_STATUS_IGNORE);
    MPI_Request_free(&send[1]);
  }
}

// Ordinary messages with the same tag pass by, and probes do not see partitions.
void beside_messages(const World& w) {
  const bool sends = w.rank == 0, receives = w.rank == w.size - 1;
  int out = 5, in = 0, flag = 1, plain = 0;
  MPI_Request send, receive, message;
  if (sends) {
    MPI_Psend_init(&out, 1, 1, MPI_INT, w.size - 1, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
    MPI_Start(&send);
    MPI_Pready(0, send);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (receives) {
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Irecv(&plain, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message);
    MPI_Precv_init(&in, 1, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
    MPI_Start(&receive);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    CHECK_EQ(in, 5);
    MPI_Test(&message, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const int other = 6;
  if (sends) MPI_Send(&other, 1, MPI_INT, w.size - 1, 4, MPI_COMM_WORLD);
  if (receives) {
    MPI_Wait(&message, MPI_STATUS_IGNORE);
    CHECK_EQ(plain, 6);
    MPI_Request_free(&receive);
  }
  if (sends) {
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Request_free(&send);
  }
}

}  // namespace

int main() {
  const World w = init();
  ordered(w, MPI_COMM_WORLD, false);
  ordered(w, MPI_COMM_WORLD, true);
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  ordered(w, copy, true);
  MPI_Comm_free(&copy);
  freed_before_its_match(w);
  beside_messages(w);
  return finish();
}
