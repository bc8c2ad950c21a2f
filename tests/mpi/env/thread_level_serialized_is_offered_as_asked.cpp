// ranks: 1 2
// timeout: 30
// MPI_Init_thread asked for MPI_THREAD_SERIALIZED: what is provided is at least that, is what MPI_Query_thread says,
// and the main thread knows itself.
#include "thread_level.hpp"

int main() { return test::check_thread_level(MPI_THREAD_SERIALIZED); }
