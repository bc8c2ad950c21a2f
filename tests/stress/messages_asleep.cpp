// ranks: 4
// threads: 2
// timeout: 300
// args: --messages 40000 --seed 7
// env: HEDDLE_SPIN_US=0
// The random messages of messages.cpp where every wait parks at once, so that each message has somebody to wake.
#include "messages.cpp"
