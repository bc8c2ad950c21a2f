// ranks: 4
// threads: 2
// timeout: 300
// args: --messages 40000 --seed 9
// env: HEDDLE_PROGRESS=thread HEDDLE_SPIN_US=20
// The random messages of messages.cpp in processes that have a thread of the library's which makes progress, and whose own threads sleep at once.
#include "messages.cpp"
