// ranks: 3
// threads: 2
// timeout: 60
// Paper 004's figure 1, top: threads of one rank send to different ranks on one communicator, or on different
// communicators to one rank, without order between them; the receivers use wildcards, and per source and communicator
// the order holds.
#include "team.hpp"

using namespace test;

namespace {

constexpr int messages = 3'000;

void different_ranks(const World& w, MPI_Comm comm) {
  if (w.rank == 0) {
    run_threads(2, [&](int t) {
      for (int i = 0; i < messages; ++i) MPI_Send(&i, 1, MPI_INT, 1 + t, i % 3, comm);
    });
  } else {
    // One rank receives by two threads that share the messages, the other by one.
    if (w.rank == 1) {
      run_threads(2, [&](int) {
        for (int i = 0, before = -1; i < messages / 2; ++i) {
          int value = -1;
          MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
          CHECK(value > before);  // what one thread gets, it gets in order
          before = value;
        }
      });
    } else {
      for (int i = 0; i < messages; ++i) {
        int value = -1;
        MPI_Recv(&value, 1, MPI_INT, 0, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
        CHECK_EQ(value, i);
      }
    }
  }
}

void different_communicators(const World& w, const Communicators& comms) {
  if (w.rank == 0) {
    run_threads(2, [&](int t) {
      for (int i = 0; i < messages; ++i) {
        const int value = 2 * i + t;
        MPI_Send(&value, 1, MPI_INT, 1, 0, comms[t]);
      }
    });
  } else if (w.rank == 1) {
    run_threads(2, [&](int t) {
      for (int i = 0; i < messages; ++i) {
        int value = -1;
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[1 - t], MPI_STATUS_IGNORE);
        CHECK_EQ(value, 2 * i + (1 - t));
      }
    });
  }
}

// Threads of two ranks send to one that receives from anyone.
void any_source(const World& w, MPI_Comm comm) {
  if (w.rank > 0) {
    run_threads(2, [&](int t) {
      for (int i = 0; i < messages; ++i) MPI_Send(&i, 1, MPI_INT, 0, t, comm);
    });
  } else {
    int next[3][2] = {};
    for (int k = 0; k < 4 * messages; ++k) {
      int value = -1;
      MPI_Status status;
      MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
      CHECK_EQ(value, next[status.MPI_SOURCE][status.MPI_TAG]++);
    }
  }
}

}  // namespace

int main() {
  const World w = init_threads();
  Communicators comms(2);
  different_ranks(w, comms[0]);
  MPI_Barrier(MPI_COMM_WORLD);
  different_communicators(w, comms);
  any_source(w, comms[1]);
  comms.free();
  return finish();
}
