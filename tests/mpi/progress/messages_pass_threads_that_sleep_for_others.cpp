// ranks: 2
// threads: 2
// timeout: 90
// env: HEDDLE_PROGRESS=thread HEDDLE_VCIS=6 HEDDLE_SPIN_US=0
// The same in processes that have a thread asleep in MPI_Recv, and another one that enters such a sleep and leaves it all the time.
#include "away.hpp"

using namespace test;

int main() {
  const World w = init_threads();
  if (!library_is_heddle()) return finish();
  Communicators comms(2);
  std::atomic<bool> over{false};
  std::thread sleeper([&] { MPI_Recv(nullptr, 0, MPI_BYTE, w.rank, 0, comms[0], MPI_STATUS_IGNORE); });
  std::thread restless([&] {
    for (int last = 0, both = 0; !both;) {
      last = over.load();
      MPI_Allreduce(&last, &both, 1, MPI_INT, MPI_MIN, comms[1]);
      std::this_thread::sleep_for(std::chrono::microseconds(200 * (w.rank + 1)));
    }
  });
  exchange_with_the_absent(w, 12);
  over.store(true);
  restless.join();
  MPI_Send(nullptr, 0, MPI_BYTE, w.rank, 0, comms[0]);
  sleeper.join();
  comms.free();
  return finish();
}
