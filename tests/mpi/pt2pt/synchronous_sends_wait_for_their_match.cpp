// ranks: 2
// timeout: 60
// An MPI_Issend or MPI_Ssend_init request is not complete before the receive is posted, at any size, to another rank and
// to oneself, on several communicators at once; it completes when matched, though the receiver waits for nothing else.
#include "../support.hpp"

using namespace test;

namespace {

constexpr int go = 50;

void not_before_the_receive(const World& w, MPI_Comm comm, bool persistent, std::size_t n) {
  std::vector<unsigned char> data(n + 1);
  if (w.rank == 0) {
    fill(data.data(), n, n);
    MPI_Request request;
    if (persistent) {
      MPI_Ssend_init(data.data(), static_cast<int>(n), MPI_BYTE, 1, 1, comm, &request);
      MPI_Start(&request);
    } else {
      MPI_Issend(data.data(), static_cast<int>(n), MPI_BYTE, 1, 1, comm, &request);
    }
    int flag = 0;
    for (int i = 0; i < 2'000; ++i) {
      MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
      CHECK_EQ(flag, 0);
    }
    // The peer is inside MPI and has even looked at the message: still no receive.
    MPI_Recv(nullptr, 0, MPI_BYTE, 1, go, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2'000; ++i) {
      MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      CHECK_EQ(flag, 0);
    }
    MPI_Send(nullptr, 0, MPI_BYTE, 1, go, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (persistent) MPI_Request_free(&request);
  } else {
    MPI_Status status;
    MPI_Probe(0, 1, comm, &status);
    CHECK_EQ(count_of(status), n);
    MPI_Send(nullptr, 0, MPI_BYTE, 0, go, MPI_COMM_WORLD);
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, go, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(data.data(), static_cast<int>(n), MPI_BYTE, 0, 1, comm, &status);
    CHECK_FILLED(data.data(), n, n);
  }
}

// Small synchronous sends: receiving one lets go exactly that one.
void each_by_itself(const World& w) {
  constexpr int n = 40;
  int out[n], in = -1;
  MPI_Request requests[n];
  if (w.rank == 0) {
    for (int i = 0; i < n; ++i) {
      out[i] = i;
      MPI_Issend(&out[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = n - 1; i >= 0; --i) {
      MPI_Send(nullptr, 0, MPI_INT, 1, 1000, MPI_COMM_WORLD);
      int index = -1;
      MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE);
      CHECK_EQ(index, i);
    }
  } else {
    for (int i = n - 1; i >= 0; --i) {
      MPI_Recv(nullptr, 0, MPI_INT, 0, 1000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Recv(&in, 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_EQ(in, i);
    }
  }
}

void to_oneself(const World& w) {
  for (const int n : {0, 8, 100'000}) {
    std::vector<unsigned char> out(static_cast<std::size_t>(n) + 1), in(out.size());
    MPI_Request request;
    int flag = -1;
    MPI_Issend(out.data(), n, MPI_BYTE, w.rank, 3, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 1'000; ++i) {
      MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      CHECK_EQ(flag, 0);
    }
    MPI_Recv(in.data(), n, MPI_BYTE, w.rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

// The receiver's program order alone lets a chain of blocking synchronous sends pass, posted or not.
void blocking_chain(const World& w) {
  int value = 0;
  for (int i = 0; i < 500; ++i) {
    if (w.rank == i % 2) {
      MPI_Ssend(&i, 1, MPI_INT, 1 - w.rank, 4, MPI_COMM_WORLD);
    } else {
      MPI_Recv(&value, 1, MPI_INT, 1 - w.rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_EQ(value, i);
    }
  }
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  for (const MPI_Comm comm : {MPI_COMM_WORLD, other})
    for (const bool persistent : {false, true})
      for (const std::size_t n : {0u, 8u, 500u, 20'000u, 1u << 20}) not_before_the_receive(w, comm, persistent, n);
  each_by_itself(w);
  to_oneself(w);
  blocking_chain(w);
  MPI_Comm_free(&other);
  return finish();
}
