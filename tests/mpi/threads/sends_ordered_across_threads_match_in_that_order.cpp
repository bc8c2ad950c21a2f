// ranks: 1 2
// threads: 2
// timeout: 60
// Paper 004's figure 1, bottom: two threads, a thread barrier between their operations, one communicator. What was
// sent first matches first, though another thread sent it, by another tag, of another size; likewise what was
// received or probed first. Also with Isend that completes later, and to oneself.
#include <barrier>

#include "team.hpp"

using namespace test;

namespace {

constexpr int rounds = 400;

std::size_t size_of(int i, bool mixed) {
  static const std::size_t sizes[] = {4, 9'000, 4, 64, 100'000, 4, 600, 20'000};
  return mixed ? sizes[i % 8] : 4;
}

// Two threads send 0, 1, 2, ... in turns; `tags` of them.
void send_in_turns(int to, MPI_Comm comm, bool nonblocking, bool mixed, int tags, int base) {
  std::barrier<> turn(2);
  run_threads(2, [&](int t) {
    std::vector<std::vector<unsigned char>> keep;
    std::vector<MPI_Request> requests;
    for (int i = 0; i < rounds; ++i) {
      if (i % 2 == t) {
        const std::size_t n = size_of(i, mixed);
        keep.emplace_back(n);
        const int value = base + i;
        std::memcpy(keep.back().data(), &value, sizeof value);
        if (nonblocking) {
          requests.emplace_back();
          MPI_Isend(keep.back().data(), static_cast<int>(n), MPI_BYTE, to, i % tags, comm, &requests.back());
        } else {
          MPI_Send(keep.back().data(), static_cast<int>(n), MPI_BYTE, to, i % tags, comm);
          keep.clear();
        }
      }
      turn.arrive_and_wait();
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  });
}

void receive_one(int from, MPI_Comm comm, int how, int expected, bool mixed, int tags) {
  std::vector<unsigned char> data(100'000);
  const int room = static_cast<int>(data.size());
  const int source = how % 2 ? from : MPI_ANY_SOURCE;
  MPI_Status status;
  if (how < 2) {
    MPI_Recv(data.data(), room, MPI_BYTE, source, MPI_ANY_TAG, comm, &status);
  } else if (how < 4) {
    MPI_Probe(source, MPI_ANY_TAG, comm, &status);
    MPI_Recv(data.data(), room, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm, &status);
  } else {
    MPI_Message message;
    MPI_Mprobe(source, MPI_ANY_TAG, comm, &message, &status);
    MPI_Mrecv(data.data(), room, MPI_BYTE, &message, &status);
  }
  int value = -1;
  std::memcpy(&value, data.data(), sizeof value);
  CHECK_EQ(value, expected);
  CHECK_EQ(count_of(status), size_of(expected % rounds, mixed));
  CHECK_EQ(status.MPI_TAG, expected % rounds % tags);
}

void senders_in_turns(const World& w, MPI_Comm comm) {
  int base = 0;
  for (const bool nonblocking : {false, true})
    for (const bool mixed : {false, true})
      for (const int tags : {1, 2, 5}) {
        const int how = base / rounds % 6;
        if (w.size == 1) {  // sender and receiver are threads of one process
          std::thread sender([&] { send_in_turns(0, comm, nonblocking, mixed, tags, base); });
          for (int i = 0; i < rounds; ++i) receive_one(0, comm, how, base + i, mixed, tags);
          sender.join();
        } else if (w.rank == 0) {
          send_in_turns(1, comm, nonblocking, mixed, tags, base);
        } else {
          for (int i = 0; i < rounds; ++i) receive_one(0, comm, how, base + i, mixed, tags);
        }
        base += rounds;
        MPI_Barrier(MPI_COMM_WORLD);
      }
}

// Two threads post receives in turns, some exact and some wildcards; one thread sends: message i goes to receive i.
void receivers_in_turns(const World& w, MPI_Comm comm) {
  std::vector<int> values(rounds, -1);
  const auto receive = [&](int from) {
    std::barrier<> turn(2);
    run_threads(2, [&](int t) {
      std::vector<MPI_Request> requests;
      for (int i = 0; i < rounds; ++i) {
        if (i % 2 == t) {
          requests.emplace_back();
          MPI_Irecv(&values[static_cast<std::size_t>(i)], 1, MPI_INT, i % 3 ? from : MPI_ANY_SOURCE,
                    i % 5 < 2 ? 3 : MPI_ANY_TAG, comm, &requests.back());
        }
        turn.arrive_and_wait();
      }
      MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    });
    for (int i = 0; i < rounds; ++i) CHECK_EQ(values[static_cast<std::size_t>(i)], i);
  };
  const auto send = [&](int to) {
    for (int i = 0; i < rounds; ++i) MPI_Send(&i, 1, MPI_INT, to, 3, comm);
  };
  if (w.size == 1) {
    std::thread sender([&] { send(0); });
    receive(0);
    sender.join();
  } else if (w.rank == 0) {
    send(1);
  } else {
    receive(0);
  }
}

}  // namespace

int main() {
  const World w = init_threads();
  Communicators comms(2);
  for (const MPI_Comm comm : {comms[0], comms[1]}) {
    senders_in_turns(w, comm);
    receivers_in_turns(w, comm);
  }
  comms.free();
  return finish();
}
