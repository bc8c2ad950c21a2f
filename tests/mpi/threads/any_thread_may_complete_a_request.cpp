// ranks: 1 2
// threads: 4
// timeout: 60
// Requests started by one thread are waited for, tested, cancelled and freed by another; a thread blocked in MPI_Wait
// returns though the message was taken off the wire by another thread's progress; disjoint arrays are completed at once.
#include <barrier>

#include "team.hpp"

using namespace test;

namespace {

// Thread 0 starts, thread 1 completes, in every way.
void handed_over(const World& w, MPI_Comm comm) {
  constexpr int n = 60;
  const int to = (w.rank + 1) % w.size, from = (w.rank + w.size - 1) % w.size;
  std::barrier<> gate(2);
  std::vector<int> in(n), out(n);
  std::vector<MPI_Request> requests(2 * n);
  run_threads(2, [&](int t) {
    for (int round = 0; round < 30; ++round) {
      if (t == 0)
        for (int i = 0; i < n; ++i) {
          const auto k = static_cast<std::size_t>(i);
          in[k] = -1, out[k] = round * n + i;
          MPI_Irecv(&in[k], 1, MPI_INT, from, i, comm, &requests[k]);
          MPI_Isend(&out[k], 1, MPI_INT, to, i, comm, &requests[k + n]);
        }
      gate.arrive_and_wait();
      if (t == 1) {
        int flag = 0, index = 0;
        if (round % 3 == 0) {
          MPI_Waitall(2 * n, requests.data(), MPI_STATUSES_IGNORE);
        } else if (round % 3 == 1) {
          for (int i = 0; i < 2 * n; ++i) MPI_Waitany(2 * n, requests.data(), &index, MPI_STATUS_IGNORE);
        } else {
          for (auto& request : requests)
            CHECK(eventually([&] { return MPI_Test(&request, &flag, MPI_STATUS_IGNORE), flag != 0; }));
        }
        for (int i = 0; i < n; ++i) CHECK_EQ(in[static_cast<std::size_t>(i)], round * n + i);
      }
      gate.arrive_and_wait();
    }
  });
}

// Thread 0 blocks in MPI_Wait for a message that the peer sends only after it has heard of thread 1's traffic, which
// thread 1 drives; whichever thread polls must complete the other's request.
void completed_by_the_others_progress(const World& w, MPI_Comm one, MPI_Comm two) {
  const int peer = (w.rank + 1) % w.size;
  run_threads(2, [&](int t) {
    for (int round = 0; round < 300; ++round) {
      int value = -1;
      if (t == 0) {
        MPI_Request request;
        MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, round, one, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK_EQ(value, round);
      } else {
        for (int k = 0; k < 3; ++k)
          MPI_Sendrecv(&k, 1, MPI_INT, peer, 500, &value, 1, MPI_INT, peer, 500, two, MPI_STATUS_IGNORE);
        MPI_Send(&round, 1, MPI_INT, peer, round, one);
      }
    }
  });
}

void cancelled_and_freed_elsewhere(const World& w, MPI_Comm comm) {
  std::barrier<> gate(2);
  MPI_Request request = MPI_REQUEST_NULL;
  int value = -1;
  run_threads(2, [&](int t) {
    for (int round = 0; round < 100; ++round) {
      if (t == 0) MPI_Irecv(&value, 1, MPI_INT, w.rank, 1000, comm, &request);
      gate.arrive_and_wait();
      if (t == 1) {
        MPI_Cancel(&request);
        if (round % 2) {
          MPI_Status status;
          int cancelled = 0;
          MPI_Wait(&request, &status);
          MPI_Test_cancelled(&status, &cancelled);
          CHECK_EQ(cancelled, 1);
        } else {
          MPI_Request_free(&request);
        }
        CHECK(request == MPI_REQUEST_NULL);
      }
      gate.arrive_and_wait();
    }
  });
  CHECK_EQ(value, -1);
}

// Each thread has its own array on the one communicator; all complete at once with Waitsome, Testany, Testsome, Testall.
void disjoint_arrays(const World& w, MPI_Comm comm) {
  constexpr int threads = 4, n = 100;
  const int to = (w.rank + 1) % w.size, from = (w.rank + w.size - 1) % w.size;
  run_threads(threads, [&](int t) {
    for (int round = 0; round < 25; ++round) {
      std::vector<int> in(n, -1), out(n), indices(2 * n);
      std::vector<MPI_Request> requests(2 * n);
      for (std::size_t i = 0; i < n; ++i) {
        out[i] = t * 10'000 + round * n + static_cast<int>(i);
        MPI_Irecv(&in[i], 1, MPI_INT, from, t, comm, &requests[2 * i]);
        MPI_Isend(&out[i], 1, MPI_INT, to, t, comm, &requests[2 * i + 1]);
      }
      int left = 2 * n, some = 0, flag = 0, index = 0;
      CHECK(eventually([&] {
        switch ((t + round) % 4) {
          case 0:
            MPI_Waitsome(2 * n, requests.data(), &some, indices.data(), MPI_STATUSES_IGNORE);
            left -= some;
            break;
          case 1:
            MPI_Testany(2 * n, requests.data(), &index, &flag, MPI_STATUS_IGNORE);
            left -= flag;
            break;
          case 2:
            MPI_Testsome(2 * n, requests.data(), &some, indices.data(), MPI_STATUSES_IGNORE);
            left -= some;
            break;
          default:
            MPI_Testall(2 * n, requests.data(), &flag, MPI_STATUSES_IGNORE);
            if (flag) left = 0;
            break;
        }
        return left == 0;
      }));
      for (std::size_t i = 0; i < n; ++i) CHECK_EQ(in[i], t * 10'000 + round * n + static_cast<int>(i));
    }
  });
}

}  // namespace

int main() {
  const World w = init_threads();
  Communicators comms(2);
  handed_over(w, comms[0]);
  completed_by_the_others_progress(w, comms[0], comms[1]);
  completed_by_the_others_progress(w, comms[0], comms[0]);
  cancelled_and_freed_elsewhere(w, comms[1]);
  disjoint_arrays(w, comms[0]);
  comms.free();
  return finish();
}
