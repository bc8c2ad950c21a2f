/* Heddle's extensions to MPI, beside the standard's mpi.h. */
#ifndef HEDDLE_MPIX_H
#define HEDDLE_MPIX_H

#include <mpi.h>

#define HEDDLE_MPIX 1 /* grows with every extension added here */

#endif
