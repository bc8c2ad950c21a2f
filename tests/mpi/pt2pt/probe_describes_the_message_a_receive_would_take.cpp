// ranks: 2
// timeout: 60
// MPI_Probe and MPI_Iprobe: source, tag and exact count before the data are received; the order of messages; no false
// positives across tag, source and communicator; messages to oneself; zero-size and large ones.
#include "../support.hpp"

using namespace test;

namespace {

void send_bytes(std::size_t n, int to, int tag, MPI_Comm comm, std::uint64_t seed) {
  std::vector<unsigned char> data(n + 1);
  fill(data.data(), n, seed);
  MPI_Send(data.data(), static_cast<int>(n), MPI_BYTE, to, tag, comm);
}

void receive_probed(const MPI_Status& probed, MPI_Comm comm, std::uint64_t seed) {
  const auto n = static_cast<std::size_t>(count_of(probed));
  std::vector<unsigned char> data(n + 1);
  MPI_Status status;
  MPI_Recv(data.data(), static_cast<int>(n), MPI_BYTE, probed.MPI_SOURCE, probed.MPI_TAG, comm, &status);
  CHECK_EQ(count_of(status), n);
  CHECK_FILLED(data.data(), n, seed);
}

void sizes(const World& w) {
  for (const std::size_t n : {0u, 1u, 50u, 4'000u, 20'000u, 70'000u, 1u << 20, 5u << 20}) {
    if (w.rank == 0) {
      send_bytes(n, 1, 4, MPI_COMM_WORLD, n);
    } else {
      MPI_Status status = dirty_status();
      MPI_Probe(0, 4, MPI_COMM_WORLD, &status);
      CHECK_EQ(status.MPI_SOURCE, 0);
      CHECK_EQ(status.MPI_TAG, 4);
      CHECK_EQ(count_of(status), n);
      MPI_Status again;
      MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &again);  // a probe takes nothing away
      CHECK_EQ(again.MPI_TAG, 4);
      CHECK_EQ(count_of(again), n);
      receive_probed(status, MPI_COMM_WORLD, n);
    }
  }
}

void by_tag_and_in_order(const World& w) {
  constexpr int tags[] = {5, 6, 5, 7, 6};
  if (w.rank == 0) {
    std::vector<unsigned char> data[5];
    MPI_Request requests[5];  // nonblocking: the first is received after the last was probed
    for (std::size_t i = 0; i < 5; ++i) {
      data[i].resize(100 + i);
      fill(data[i].data(), 100 + i, i);
      MPI_Isend(data[i].data(), static_cast<int>(100 + i), MPI_BYTE, 1, tags[i], MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
  } else {
    MPI_Status status;
    MPI_Probe(0, 7, MPI_COMM_WORLD, &status);  // the fourth, although three others came before
    CHECK_EQ(count_of(status), 103);
    MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    CHECK_EQ(status.MPI_TAG, 5);
    CHECK_EQ(count_of(status), 100);
    MPI_Probe(0, 6, MPI_COMM_WORLD, &status);
    CHECK_EQ(count_of(status), 101);
    receive_probed(status, MPI_COMM_WORLD, 1);
    MPI_Probe(0, 6, MPI_COMM_WORLD, &status);
    CHECK_EQ(count_of(status), 104);
    for (const std::uint64_t next : {0u, 2u, 3u, 4u}) {
      MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
      CHECK_EQ(count_of(status), 100 + next);
      receive_probed(status, MPI_COMM_WORLD, next);
    }
  }
}

void iprobe(const World& w, MPI_Comm other) {
  int flag = -1;
  MPI_Status status = dirty_status();
  for (int i = 0; i < 200; ++i) {
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    CHECK_EQ(flag, 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (w.rank == 0) {
    send_bytes(12, 1, 8, MPI_COMM_WORLD, 5);
  } else {
    CHECK(eventually([&] {
      MPI_Iprobe(0, 8, MPI_COMM_WORLD, &flag, &status);
      return flag != 0;
    }));
    CHECK_EQ(status.MPI_SOURCE, 0);
    CHECK_EQ(status.MPI_TAG, 8);
    CHECK_EQ(count_of(status), 12);
    int integers = 0;
    MPI_Get_count(&status, MPI_INT, &integers);
    CHECK_EQ(integers, 3);
    // It is there, and yet not for another tag, source or communicator.
    MPI_Iprobe(0, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK_EQ(flag, 0);
    MPI_Iprobe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK_EQ(flag, 0);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, other, &flag, MPI_STATUS_IGNORE);
    CHECK_EQ(flag, 0);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK_EQ(flag, 1);
    receive_probed(status, MPI_COMM_WORLD, 5);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK_EQ(flag, 0);
  }
}

void oneself(const World& w) {
  MPI_Request request;
  int value = 17, got = 0, flag = 0;
  MPI_Isend(&value, 1, MPI_INT, w.rank, 2, MPI_COMM_WORLD, &request);
  MPI_Status status;
  MPI_Probe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status);
  CHECK_EQ(status.MPI_SOURCE, w.rank);
  CHECK_EQ(count_of(status), sizeof value);
  MPI_Iprobe(w.rank, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  CHECK_EQ(flag, 1);
  MPI_Recv(&got, 1, MPI_INT, w.rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQ(got, 17);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// A message that a posted receive will take is not for a probe.
void posted_receive_goes_first(const World& w) {
  if (w.rank == 1) {
    int first = 0, second = 0;
    MPI_Request request;
    MPI_Irecv(&first, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
    MPI_Send(nullptr, 0, MPI_INT, 0, 1, MPI_COMM_WORLD);
    MPI_Status status;
    MPI_Probe(0, 3, MPI_COMM_WORLD, &status);
    CHECK_EQ(count_of(status), 2 * sizeof(int));
    int two[2] = {0, 0};
    MPI_Recv(two, 2, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    second = two[0];
    CHECK_EQ(first, 1);
    CHECK_EQ(second, 2);
  } else {
    const int one = 1, two[2] = {2, 2};
    MPI_Recv(nullptr, 0, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&one, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    MPI_Send(two, 2, MPI_INT, 1, 3, MPI_COMM_WORLD);
  }
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  sizes(w);
  by_tag_and_in_order(w);
  MPI_Barrier(MPI_COMM_WORLD);
  iprobe(w, other);
  oneself(w);
  posted_receive_goes_first(w);
  MPI_Comm_free(&other);
  return finish();
}
