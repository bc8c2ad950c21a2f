// ranks: 2
// timeout: 90
// env: HEDDLE_PROGRESS=thread HEDDLE_VCIS=4 HEDDLE_CMA=0
// Large messages and synchronous ones get through though one end is not in MPI from before they come until they are over, in processes that have
// called MPI_Init. The kernel copies nothing, so both ends are needed.
#include "away.hpp"

using namespace test;

int main() {
  const World w = init();
  if (!library_is_heddle()) return finish();
  CHECK_EQ(servers(), 1);
  exchange_with_the_absent(w, 12);
  return finish();
}
