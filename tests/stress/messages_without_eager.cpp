// ranks: 4
// threads: 2
// timeout: 300
// args: --messages 40000 --seed 7
// env: HEDDLE_EAGER=0
// env: HEDDLE_SELF_EAGER=0
// The random messages of messages.cpp with a rendezvous for every message.
#include "messages.cpp"
