// ranks: 4
// threads: 2
// timeout: 300
// args: --messages 40000 --seed 7
// env: HEDDLE_CMA=0
// The random messages of messages.cpp where the kernel forbids single copies: everything goes through the ring.
#include "messages.cpp"
