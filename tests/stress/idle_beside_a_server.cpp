// ranks: 2
// processors: 1
// timeout: 60
// env: HEDDLE_PROGRESS=thread
// idle.cpp in processes that have a thread of the library's which makes progress; and ranks that sleep outside of MPI use as little.
#define HEDDLE_SLEEPS_OUTSIDE
#include "idle.cpp"
