/* Every OpenMP thread is an MPI rank: the first program to write with endpoints.
 *
 *   mpiexec -n 2 endpoints_hello --threads 4
 *
 * One thread of each process makes as many endpoints as there are threads and hands them out. From there on a thread is
 * what a process is in other MPI programs: it has a rank, it sends to ranks, it takes part in collectives.
 * Source: Sridharan, Dinan, Kalamkar: "Enabling Efficient Multithreaded MPI Communication through a Library-Based
 * Implementation of MPI Endpoints", listing 1. */
#include <mpi.h>
#include <mpix.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  int provided, process, wrong = 0;
  int threads = argc == 3 && strcmp(argv[1], "--threads") == 0 ? atoi(argv[2]) : omp_get_max_threads();
  MPI_Comm* endpoints = NULL;

  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  if (provided < MPI_THREAD_MULTIPLE || threads < 1) {
    if (process == 0)
      fprintf(stderr, "usage: endpoints_hello [--threads N], with an MPI that has MPI_THREAD_MULTIPLE\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }

#pragma omp parallel num_threads(threads) reduction(+ : wrong)
  {
    const int thread = omp_get_thread_num();
    int rank, size, left = -1, sum = 0;
    MPI_Comm mine;

#pragma omp single
    {
      /* A process may have fewer threads than it asked for, and fewer than another one: each makes its own number. */
      const int count = omp_get_num_threads();
      endpoints = malloc((size_t)count * sizeof *endpoints);
      if (!endpoints) MPI_Abort(MPI_COMM_WORLD, 1);
      MPIX_Comm_create_endpoints(MPI_COMM_WORLD, count, MPI_INFO_NULL, endpoints);
    } /* the barrier at its end: all threads see their handles */

    mine = endpoints[thread];
    MPI_Comm_rank(mine, &rank);
    MPI_Comm_size(mine, &size);

    /* Around the ring of all threads of all processes. */
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &left, 1, MPI_INT, (rank + size - 1) % size, 0, mine,
                 MPI_STATUS_IGNORE);
    /* All threads of all processes in one collective. */
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, mine);

    printf("Hello from rank %d of %d: thread %d of process %d. On my left is %d, and our ranks add up to %d.\n", rank,
           size, thread, process, left, sum);
    wrong = left != (rank + size - 1) % size || sum != size * (size - 1) / 2;
    MPI_Comm_free(&mine);
  }
  free(endpoints);
  if (wrong) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Finalize();
  return 0;
}
