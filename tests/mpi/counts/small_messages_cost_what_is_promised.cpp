// ranks: 2
// timeout: 60
// env: HEDDLE_VCIS=4
// binary: own (its instructions are counted)
// What an 8-byte message between two processes costs under MPI_THREAD_MULTIPLE, counted instruction by instruction: the
// sender takes no lock, makes one atomic read-modify-write, no allocation and no system call; the receiver takes at
// most one lock for a receive and one for a poll that finds work, and allocates nothing; a completed request is seen
// complete without a lock; local queries do nothing of all that. The same on communicators and between endpoints, also
// within a process.
#include <mpix.h>

#include "counts.hpp"

using namespace test;

namespace {

struct Shared {
  alignas(64) std::atomic<int> sent{0};
  alignas(64) std::atomic<int> received{0};
  std::atomic<int> posted{0};  // the message whose receive is posted
};
Shared* shared;
int messages = 0;
bool warm = false;  // costs count from the second time on: the first fills caches and makes room for the keys

// Waits past MPI, so that no rank sleeps in the library and none makes progress but where it is counted.
void wait_for(std::atomic<int>& number, int value) {
  // Acquire pairs with the other rank's release.
  CHECK(eventually([&] { return number.load(std::memory_order_acquire) >= value; }));
}

#define CHECK_COSTS(counts, most_locks, most_atomics)                                                               \
  do {                                                                                                              \
    const Counts& counts_ = (counts);                                                                               \
    if (warm &&                                                                                                     \
        (counts_.locks > (most_locks) || counts_.atomics > (most_atomics) || counts_.allocations || counts_.calls)) \
      check_fail(__FILE__, __LINE__,                                                                                \
                 "%s: %ld locks (at most %d), %ld atomic operations (at most %d), %ld allocations (0), %ld "        \
                 "system calls (0) in %ld instructions",                                                            \
                 #counts, counts_.locks, (most_locks), counts_.atomics, (most_atomics), counts_.allocations,        \
                 counts_.calls, counts_.instructions);                                                              \
  } while (0)

// Once in a while a receive takes the requests back that were freed since the last time, all with one exchange.
constexpr int refill = 1;

enum Form { blocking, nonblocking, waited, posted, both_there, forms };

void send(MPI_Comm comm, int to, int form, long value) {
  MPI_Request request = MPI_REQUEST_NULL;
  for (int k = 0; k < (form == both_there ? 2 : 1); ++k) {
    const bool plain = form == blocking || k == 1;
    const Counts sending = count([&] {
      if (plain)
        MPI_Send(&value, 8, MPI_BYTE, to, k, comm);
      else
        MPI_Isend(&value, 8, MPI_BYTE, to, k, comm, &request);
    });
    CHECK_COSTS(sending, 0, 1);
    if (plain) continue;
    const Counts waiting = count([&] { MPI_Wait(&request, MPI_STATUS_IGNORE); });
    CHECK_COSTS(waiting, 0, 0);
  }
}

void receive(MPI_Comm comm, int from, int form, long value) {
  long got[2] = {-1, -1};
  MPI_Request requests[2];
  MPI_Status status;
  int flag = 0;
  switch (form) {
    case blocking: {  // the message is there: one lock to post the receive, one to poll
      wait_for(shared->sent, messages);
      const Counts receiving = count([&] { MPI_Recv(&got[0], 8, MPI_BYTE, from, 0, comm, &status); });
      CHECK_COSTS(receiving, 2, 3 + refill);
      break;
    }
    case nonblocking:
    case waited: {
      wait_for(shared->sent, messages);
      const Counts posting = count(
          [&] { MPI_Irecv(&got[0], 8, MPI_BYTE, form == waited ? MPI_ANY_SOURCE : from, 0, comm, &requests[0]); });
      CHECK_COSTS(posting, 1, 1 + refill);
      const Counts waiting = count([&] { MPI_Wait(&requests[0], &status); });
      CHECK_COSTS(waiting, 1, 2);
      break;
    }
    case posted: {
      const Counts posting = count([&] { MPI_Irecv(&got[0], 8, MPI_BYTE, from, 0, comm, &requests[0]); });
      CHECK_COSTS(posting, 1, 1 + refill);
      shared->posted.store(messages, std::memory_order_release);
      wait_for(shared->sent, messages);
      const Counts testing = count([&] { MPI_Test(&requests[0], &flag, &status); });
      CHECK_COSTS(testing, 1, 2);
      CHECK(flag);
      break;
    }
    default: {  // two messages; what completes the first completes the second, which is then seen without a lock
      wait_for(shared->sent, messages);
      for (int k : {0, 1}) MPI_Irecv(&got[k], 8, MPI_BYTE, from, k, comm, &requests[k]);
      const Counts waiting = count([&] { MPI_Wait(&requests[0], MPI_STATUS_IGNORE); });
      CHECK_COSTS(waiting, 1, 2);
      const Counts testing = count([&] { MPI_Test(&requests[1], &flag, &status); });
      CHECK_COSTS(testing, 0, 1);  // the request goes back to its cache
      CHECK(flag);
      CHECK_EQ(got[1], value);
    }
  }
  CHECK_EQ(got[0], value);
}

// Endpoints 0 and 1 of this process, which are behind different VCIs: the sender does not take the receiver's lock.
void within_the_process(const MPI_Comm* endpoints) {
  for (int i = 0; i < 40; ++i) {
    warm = i >= 6;
    long got = -1, value = i;
    MPI_Request request;
    MPI_Status status;
    const Counts posting = count([&] { MPI_Irecv(&got, 8, MPI_BYTE, 0, 5, endpoints[1], &request); });
    CHECK_COSTS(posting, 1, 1 + refill);
    const Counts sending_inside = count([&] { MPI_Send(&value, 8, MPI_BYTE, 1, 5, endpoints[0]); });
    CHECK_COSTS(sending_inside, 0, 1);
    const Counts waiting = count([&] { MPI_Wait(&request, &status); });
    CHECK_COSTS(waiting, 1, 2);
    CHECK_EQ(got, value);
  }
}

void local_queries(MPI_Comm comm) {
  int number = 0, flag = 0;
  double time = 0;
  MPI_Status status = {};
  MPI_Group group;
  MPI_Comm_group(comm, &group);
  const Counts queries = count([&] {
    MPI_Comm_rank(comm, &number);
    MPI_Comm_size(comm, &number);
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    MPI_Comm_test_inter(comm, &flag);
    MPI_Group_rank(group, &number);
    MPI_Group_size(group, &number);
    MPI_Get_count(&status, MPI_INT, &number);
    MPI_Type_size(MPI_DOUBLE, &number);
    MPI_Query_thread(&number);
    MPI_Is_thread_main(&flag);
    MPI_Initialized(&flag);
    MPI_Finalized(&flag);
    time = MPI_Wtime();
  });
  CHECK_COSTS(queries, 0, 0);
  CHECK(time > 0);
  MPI_Group_free(&group);
}

}  // namespace

int main() {
  const World w = init_to_count();
  shared = &share_past_mpi<Shared>(w);
  Communicators comms(3);
  MPI_Comm endpoints[3];
  MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 3, MPI_INFO_NULL, endpoints);
  for (const bool between_endpoints : {false, true})
    for (int i = 0; i < 20 * forms; ++i) {
      const int c = i / forms % 3, form = i % forms;
      const MPI_Comm comm = between_endpoints ? endpoints[c] : comms[c];
      const int peer = between_endpoints ? 3 * (1 - w.rank) + c : 1 - w.rank;
      warm = i >= 6 * forms;
      ++messages;
      if (w.rank == 0) {
        if (form == posted) wait_for(shared->posted, messages);
        send(comm, peer, form, i);
        shared->sent.store(messages, std::memory_order_release);
        wait_for(shared->received, messages);
      } else {
        receive(comm, peer, form, i);
        shared->received.store(messages, std::memory_order_release);
      }
    }
  if (w.rank == 0) within_the_process(endpoints);
  local_queries(comms[0]);
  local_queries(endpoints[1]);
  for (MPI_Comm& comm : endpoints) MPI_Comm_free(&comm);
  comms.free();
  return finish();
}
