// ranks: 2
// threads: 8
// timeout: 120
// Sixteen threads on two ranks, all blocked but one: a token goes round through every thread of both ranks many times, on
// one communicator and on one each. Waiting threads must let the core go to the one that has the token.
#include "team.hpp"

using namespace test;

namespace {

constexpr int threads = 8, laps = 150;

// Station s is thread s / 2 of rank s % 2; it receives from the station before it and sends to the one after it.
void ring(const World& w, const Communicators& comms, bool own) {
  constexpr int stations = 2 * threads;
  run_threads(threads, [&](int t) {
    const int station = 2 * t + w.rank, next = (station + 1) % stations;
    const MPI_Comm in = comms[own ? t : 0], out = comms[own ? next / 2 : 0];
    for (int lap = 0; lap < laps; ++lap) {
      int token = lap * stations;
      if (station != 0 || lap > 0) {
        MPI_Recv(&token, 1, MPI_INT, 1 - w.rank, station, in, MPI_STATUS_IGNORE);
        CHECK_EQ(token, lap * stations + station);
      }
      ++token;
      if (station == stations - 1 && lap == laps - 1) break;
      MPI_Send(&token, 1, MPI_INT, next % 2, next, out);
    }
  });
}

}  // namespace

int main() {
  const World w = init_threads();
  Communicators comms(threads);
  ring(w, comms, false);
  ring(w, comms, true);
  comms.free();
  return finish();
}
