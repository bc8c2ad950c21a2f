// ranks: 1
// launcher: none
// timeout: 30
// env: HEDDLE_PROGRESS=thread
// exit() while the library's thread is at work and a global object is still to be destroyed: the process ends, and with the status that it said.
#include "away.hpp"

using namespace test;

namespace {

struct Last {
  ~Last() {
    if (servers() == 0) _exit(0);  // stderr may be gone
    _exit(3);
  }
};

}  // namespace

int main() {
  static const Last last;
  init();
  if (!library_is_heddle()) return finish();
  CHECK_EQ(servers(), 1);
  static int value = 5, got = 0;
  static MPI_Request requests[2];
  MPI_Irecv(&got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &requests[1]);
  std::exit(0);
}
