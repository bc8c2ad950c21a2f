/// Ranks that arrive one after another, as where work is uneven: microseconds that an allreduce of 8 bytes costs beyond the work when half of
/// the ranks come `--late` microseconds late, the odd ones and the even ones in turn. A rank that sleeps while it waits is itself late next time.
///
///   late --late=300,1000 --seconds=0.4
#include "bench.h"

static void work(double seconds) {
  for (double end = bench_now() + seconds; bench_now() < end;) {}
}

int main(int argc, char** argv) {
  bench_init(&argc, &argv, "single");
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* list = bench_option(argc, argv, "late", "300");
  double seconds = bench_option_double(argc, argv, "seconds", 0.4), least = 20e-6;
  for (char* next; *list; list = *next ? next + 1 : next) {
    long late = strtol(list, &next, 10);
    if (next == list) bench_fail("--late wants microseconds, separated by commas");
    int pairs = (int)(seconds / (2 * (1e-6 * (double)late + least))) + 10;
    double *spent = malloc((size_t)pairs * sizeof *spent), sum = 0, one = 1;
    for (int i = 0; i < 8; i++) MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < pairs; i++) {
      double start = bench_now();
      for (int turn = 0; turn < 2; turn++) {
        work(least + (rank % 2 == turn ? 1e-6 * (double)late : 0));
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      }
      spent[i] = bench_now() - start;
    }
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (sum != size) bench_fail("wrong sum");
    char key[40];
    snprintf(key, sizeof key, "beyond/%ld", late);
    if (rank == 0) bench_report(key, 1e6 * bench_median(spent, pairs) / 2 - (double)late - 1e6 * least);
    free(spent);
  }
  MPI_Finalize();
  return 0;
}
