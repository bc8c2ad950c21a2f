// ranks: 2
// timeout: 90
// env: HEDDLE_PROGRESS=thread HEDDLE_VCIS=4 HEDDLE_SHM=0
// As in a_rank_that_sleeps_takes_its_messages.cpp, over the network: connections are made while one end is away.
#include "away.hpp"

using namespace test;

int main() {
  const World w = init();
  if (!library_is_heddle()) return finish();
  exchange_with_the_absent(w, 12);
  return finish();
}
