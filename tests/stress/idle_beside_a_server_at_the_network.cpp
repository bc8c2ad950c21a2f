// ranks: 2
// processors: 1
// timeout: 60
// env: HEDDLE_PROGRESS=thread HEDDLE_SHM=0
// idle_beside_a_server.cpp where the thread sleeps at the network.
#include "idle_beside_a_server.cpp"
