// ranks: 2
// timeout: 60
// Persistent requests of all modes started many times by MPI_Start and MPI_Startall, in arrays with other requests,
// with data that change between starts, wildcards, freed while inactive and while active.
#include "../support.hpp"

using namespace test;

namespace {

constexpr int kinds = 4;
constexpr std::size_t sizes[kinds] = {4, 600, 40'000, 400'000};

void startall_rounds(const World& w) {
  const int peer = 1 - w.rank;
  std::vector<unsigned char> out[kinds], in[kinds];
  MPI_Request requests[2 * kinds];
  for (int k = 0; k < kinds; ++k) {
    const int n = static_cast<int>(sizes[k]);
    out[k].resize(sizes[k]);
    in[k].resize(sizes[k]);
    MPI_Recv_init(in[k].data(), n, MPI_BYTE, k % 2 ? peer : MPI_ANY_SOURCE, k, MPI_COMM_WORLD, &requests[k]);
    MPI_Request* send = &requests[kinds + k];
    switch (k) {
      case 0: MPI_Send_init(out[k].data(), n, MPI_BYTE, peer, k, MPI_COMM_WORLD, send); break;
      case 1: MPI_Bsend_init(out[k].data(), n, MPI_BYTE, peer, k, MPI_COMM_WORLD, send); break;
      case 2: MPI_Ssend_init(out[k].data(), n, MPI_BYTE, peer, k, MPI_COMM_WORLD, send); break;
      default: MPI_Send_init_c(out[k].data(), n, MPI_BYTE, peer, k, MPI_COMM_WORLD, send); break;
    }
  }
  MPI_Request before[2 * kinds];
  std::memcpy(before, requests, sizeof before);
  for (int round = 0; round < 200; ++round) {
    for (int k = 0; k < kinds; ++k)
      fill(out[k].data(), sizes[k], static_cast<std::uint64_t>(round * 8 + k * 2 + w.rank));
    if (round % 3 == 0) {
      MPI_Startall(2 * kinds, requests);
    } else if (round % 3 == 1) {
      MPI_Startall(kinds, requests + kinds);
      MPI_Startall(kinds, requests);
    } else {
      for (int k = 2 * kinds - 1; k >= 0; --k) MPI_Start(&requests[k]);
    }
    MPI_Status statuses[2 * kinds];
    if (round % 2) {
      MPI_Waitall(2 * kinds, requests, statuses);
    } else {
      for (int left = 2 * kinds; left > 0; --left) {
        int index = -1;
        MPI_Status status;
        MPI_Waitany(2 * kinds, requests, &index, &status);
        CHECK(index >= 0 && index < 2 * kinds);
        statuses[index] = status;
      }
    }
    CHECK_EQ(std::memcmp(before, requests, sizeof before), 0);  // inactive again, not freed
    for (int k = 0; k < kinds; ++k) {
      CHECK_EQ(statuses[k].MPI_SOURCE, peer);
      CHECK_EQ(statuses[k].MPI_TAG, k);
      CHECK_EQ(count_of(statuses[k]), sizes[k]);
      CHECK_FILLED(in[k].data(), sizes[k], static_cast<std::uint64_t>(round * 8 + k * 2 + peer));
    }
  }
  for (auto& r : requests) MPI_Request_free(&r);
}

// The ready mode needs its receive first: each round trips a token.
void ready_mode(const World& w) {
  int value = 0;
  MPI_Request request;
  if (w.rank == 0) {
    MPI_Rsend_init(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &request);
    for (value = 0; value < 50;) {
      MPI_Recv(nullptr, 0, MPI_INT, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      ++value;
    }
  } else {
    MPI_Recv_init(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &request);
    for (int round = 0; round < 50; ++round) {
      MPI_Start(&request);
      MPI_Send(nullptr, 0, MPI_INT, 0, 8, MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK_EQ(value, round);
    }
  }
  MPI_Request_free(&request);
}

// A persistent end may meet an ordinary one, and an inactive receive takes no message.
void mixed_ends_and_inactive(const World& w) {
  const int peer = 1 - w.rank;
  int kept = -1, got = -1;
  MPI_Request never, request;
  MPI_Recv_init(&kept, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &never);
  MPI_Send_init(&w.rank, 1, MPI_INT, peer, 3, MPI_COMM_WORLD, &request);
  for (int round = 0; round < 20; ++round) {
    MPI_Start(&request);
    MPI_Recv(&got, 1, MPI_INT, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(got, peer);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  CHECK_EQ(kept, -1);
  MPI_Request_free(&never);
  MPI_Start(&request);
  MPI_Request_free(&request);  // active: freed when it is done
  MPI_Recv(&got, 1, MPI_INT, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQ(got, peer);
}

// The type and the communicator may be freed while the persistent request lives.
void outlives_its_type_and_communicator(const World& w) {
  const int peer = 1 - w.rank;
  MPI_Comm comm;
  MPI_Datatype every_other;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Type_vector(100, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  int out[200], in[200];
  for (int i = 0; i < 200; ++i) out[i] = w.rank * 1000 + i, in[i] = -1;
  MPI_Request requests[2];
  MPI_Recv_init(in, 1, every_other, peer, 1, comm, &requests[0]);
  MPI_Send_init(out, 1, every_other, peer, 1, comm, &requests[1]);
  MPI_Type_free(&every_other);
  MPI_Comm_free(&comm);
  for (int round = 0; round < 3; ++round) {
    for (int& x : in) x = -1;
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 200; ++i) CHECK_EQ(in[i], i % 2 ? -1 : peer * 1000 + i);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

}  // namespace

int main() {
  const World w = init();
  std::vector<unsigned char> pool(4 * (sizes[1] + MPI_BSEND_OVERHEAD));
  MPI_Buffer_attach(pool.data(), static_cast<int>(pool.size()));
  startall_rounds(w);
  ready_mode(w);
  mixed_ends_and_inactive(w);
  outlives_its_type_and_communicator(w);
  void* address;
  int bytes;
  MPI_Buffer_detach(&address, &bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  return finish();
}
