// ranks: 4
// threads: 2
// timeout: 300
// args: --messages 40000 --seed 7
// env: HEDDLE_RING=16K
// env: HEDDLE_CMA=0
// The random messages of messages.cpp in the smallest rings, which are full all the time.
#include "messages.cpp"
