/// Prints the library's own name and version on one line.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Init(&argc, &argv);
  MPI_Get_library_version(text, &length);
  text[strcspn(text, "\n")] = 0;
  printf("VERSION %s\n", text);
  MPI_Finalize();
  return 0;
}
