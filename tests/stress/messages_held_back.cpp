// ranks: 4
// threads: 2
// timeout: 300
// args: --messages 40000 --seed 7
// env: HEDDLE_UNEXPECTED=0
// The random messages of messages.cpp with no memory for unexpected messages: every sender is held back until its receive is there.
#include "messages.cpp"
