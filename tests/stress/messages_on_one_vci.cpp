// ranks: 4
// threads: 2
// timeout: 300
// args: --messages 40000 --seed 7
// env: HEDDLE_VCIS=1
// The random messages of messages.cpp on a single VCI, which all threads share.
#include "messages.cpp"
