/* Heddle's extensions to MPI, beside the standard's mpi.h. */
#ifndef HEDDLE_MPIX_H
#define HEDDLE_MPIX_H

#include <mpi.h>

#define HEDDLE_MPIX 2 /* grows with every extension added here */

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a communicator in which the calling member of parent_comm has my_num_ep ranks, each with a handle of its own in
   out_comm_handles[0..my_num_ep). Ranks are ordered by parent rank, then by place in the array. Collective over parent_comm, an
   intracommunicator (also one of endpoints); members may ask for different numbers, also for 0. Every MPI function that takes a
   communicator works on such a handle as the rank that it stands for; each is freed by MPI_Comm_free, by any thread in any order.
   MPI_ERR_ARG: my_num_ep < 0, or no array. Thread-safe. */
int MPIX_Comm_create_endpoints(MPI_Comm parent_comm, int my_num_ep, MPI_Info info, MPI_Comm out_comm_handles[]);
int PMPIX_Comm_create_endpoints(MPI_Comm parent_comm, int my_num_ep, MPI_Info info, MPI_Comm out_comm_handles[]);

#ifdef __cplusplus
}
#endif

#endif
