// Heat on a square plate: a halo exchange in MPI + OpenMP, in every way that threads can share it.
//
//   mpiexec -n 2 stencil2d --threads 2
//
// Each mode of halo.hpp solves the same problem; the result is compared with a serial run, the time of a halo
// exchange is printed for each, and the plate is drawn into a PNG file.
#include <mpi.h>
#include <omp.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "field.hpp"
#include "halo.hpp"
#include "layout.hpp"
#include "png.hpp"

namespace stencil {
namespace {

struct Options {
  int size = 1024;
  int iterations = 500;
  int threads = 2;
  std::vector<Mode> modes = all_modes();
  std::string picture = "stencil2d.png";
};

const char usage[] =
    "usage: stencil2d [--size CELLS] [--iterations N] [--threads N] [--mode MODE] [--picture FILE]\n"
    "  --size        cells along one side of the plate (default 1024)\n"
    "  --iterations  time steps (default 500)\n"
    "  --threads     OpenMP threads of a rank (default 2)\n"
    "  --mode        funneled, multiple, comm-per-thread, endpoints, or all (default)\n"
    "  --picture     PNG file to write, or `none` (default stencil2d.png)\n";

/// Reads the command line; an empty string, or what is wrong with it.
std::string parse(int argc, char** argv, Options& options) {
  const auto number = [](const char* text, int& into) {
    char* end;
    errno = 0;
    const long value = std::strtol(text, &end, 10);
    if (errno || *end || end == text || value < 1 || value > 1'000'000'000) return false;
    into = static_cast<int>(value);
    return true;
  };
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (i + 1 == argc) return option + " needs a value";
    const std::string value = argv[i + 1];
    bool good = true;
    if (option == "--size") {
      good = number(argv[i + 1], options.size);
    } else if (option == "--iterations") {
      good = number(argv[i + 1], options.iterations);
    } else if (option == "--threads") {
      good = number(argv[i + 1], options.threads);
    } else if (option == "--picture") {
      options.picture = value == "none" ? "" : value;
    } else if (option == "--mode") {
      if (value == "all") continue;
      good = false;
      for (const Mode mode : all_modes())
        if (value == name_of(mode)) options.modes = {mode}, good = true;
    } else {
      return "unknown option " + option;
    }
    if (!good) return "bad value for " + option + ": " + value;
  }
  return {};
}

struct Outcome {
  Field plate;                       ///< the whole plate; on rank 0 only
  std::vector<double> halo_seconds;  ///< of every time step, the slowest rank's; on rank 0 only
  double seconds;                    ///< of all time steps
};

/// Solves the problem in one mode. Collective over MPI_COMM_WORLD.
Outcome solve(const Options& options, const Layout& layout, Mode mode) {
  const Communicators comms(layout, mode);
  const Endpoints endpoints(layout, mode);
  Field now(layout.width(), layout.height()), next(layout.width(), layout.height());
  heat(now, options.size, layout.columns(layout.px).begin, layout.rows(layout.py).begin);
  std::vector<double> slowest(options.iterations, 0.0);

  const double start = MPI_Wtime();
#pragma omp parallel num_threads(options.threads)
  {
    const int thread = omp_get_thread_num();
    const Block block = layout.block(thread);
    std::vector<Edge> edges = edges_of(layout, thread, mode, comms, endpoints);
    std::vector<MPI_Request> requests;
    requests.reserve(2 * edges.size());
    Field *from = &now, *to = &next;

    for (int step = 0; step < options.iterations; ++step) {
      // All ranks start the exchange together, so that its time does not hold the load imbalance of the computation.
#pragma omp master
      MPI_Barrier(MPI_COMM_WORLD);
#pragma omp barrier
      const double begin = MPI_Wtime();
      exchange(edges, *from, requests);
      const double took = MPI_Wtime() - begin;
#pragma omp critical
      slowest[step] = std::max(slowest[step], took);
#pragma omp barrier  // in the funneled mode, the halo of all threads is complete only here
      spread(*from, *to, block);
      std::swap(from, to);
#pragma omp barrier
    }
#pragma omp single
    if (from != &now) std::swap(now, next);
  }
  const double seconds = MPI_Wtime() - start;

  // Put the plate together on rank 0.
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<double> mine, all;
  for (int y = 1; y <= now.height(); ++y)
    for (int x = 1; x <= now.width(); ++x) mine.push_back(now.at(x, y));
  std::vector<int> counts(ranks), offsets(ranks);
  for (int other = 0, offset = 0; other < ranks; ++other) {
    const Layout there(options.size, ranks, options.threads, other);
    counts[other] = there.width() * there.height();
    offsets[other] = offset;
    offset += counts[other];
  }
  if (rank == 0) all.resize(static_cast<std::size_t>(options.size) * options.size);
  MPI_Gatherv(mine.data(), static_cast<int>(mine.size()), MPI_DOUBLE, all.data(), counts.data(), offsets.data(),
              MPI_DOUBLE, 0, MPI_COMM_WORLD);

  Outcome outcome{Field(rank == 0 ? options.size : 0, rank == 0 ? options.size : 0), slowest, seconds};
  MPI_Reduce(slowest.data(), outcome.halo_seconds.data(), options.iterations, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  for (int other = 0; rank == 0 && other < ranks; ++other) {
    const Layout there(options.size, ranks, options.threads, other);
    const double* cell = &all[offsets[other]];
    for (int y = there.rows(there.py).begin; y < there.rows(there.py).end; ++y)
      for (int x = there.columns(there.px).begin; x < there.columns(there.px).end; ++x)
        outcome.plate.at(x + 1, y + 1) = *cell++;
  }
  return outcome;
}

double largest_difference(const Field& a, const Field& b) {
  double largest = 0;
  for (int y = 1; y <= a.height(); ++y)
    for (int x = 1; x <= a.width(); ++x) largest = std::max(largest, std::abs(a.at(x, y) - b.at(x, y)));
  return largest;
}

/// Runs every mode and prints the report. The number of modes whose result is wrong.
int run(const Options& options, int rank, int ranks, int provided) {
  const Layout layout(options.size, ranks, options.threads, rank);
  if (rank == 0) {
    std::printf("heat on %d x %d cells, %d steps: %d ranks (%d x %d) of %d threads (%d x %d)\n\n", options.size,
                options.size, options.iterations, ranks, layout.processes_x, layout.processes_y, options.threads,
                layout.threads_x, layout.threads_y);
    std::printf("  %-16s %12s %12s %10s   %s\n", "mode", "halo median", "halo p99", "all steps",
                "against the serial run");
    std::fflush(stdout);
  }
  Field reference(0, 0);
  if (rank == 0) reference = serial(options.size, options.iterations);

  int wrong = 0;
  Field last(0, 0);
  for (const Mode mode : options.modes) {
    if (mode != Mode::funneled && provided < MPI_THREAD_MULTIPLE) {
      if (rank == 0) std::printf("  %-16s skipped: this MPI does not provide MPI_THREAD_MULTIPLE\n", name_of(mode));
      continue;
    }
    Outcome outcome = solve(options, layout, mode);
    if (rank != 0) continue;
    std::vector<double>& halo = outcome.halo_seconds;
    std::sort(halo.begin(), halo.end());
    const double difference = largest_difference(reference, outcome.plate);
    const bool right = difference == 0.0;
    wrong += !right;
    std::printf("  %-16s %9.1f us %9.1f us %8.3f s   %s", name_of(mode), 1e6 * halo[halo.size() / 2],
                1e6 * halo[halo.size() * 99 / 100], outcome.seconds, right ? "identical\n" : "WRONG");
    if (!right) std::printf(": off by up to %g\n", difference);
    std::fflush(stdout);
    last = std::move(outcome.plate);
  }
  if (last.width() > 0 && !options.picture.empty()) {
    if (write_png(last, options.picture))
      std::printf("\nthe plate after the last step: %s\n", options.picture.c_str());
    else
      std::fprintf(stderr, "stencil2d: cannot write %s: %s\n", options.picture.c_str(), std::strerror(errno));
  }
  return wrong;
}

}  // namespace
}  // namespace stencil

int main(int argc, char** argv) {
  int provided, rank, ranks;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  stencil::Options options;
  std::string problem = stencil::parse(argc, argv, options);
  if (problem.empty() && provided < MPI_THREAD_FUNNELED && options.threads > 1)
    problem = "this MPI does not provide MPI_THREAD_FUNNELED; only --threads 1 is possible";
  if (problem.empty() && options.size < ranks * options.threads)
    problem = "the plate is too small: every thread needs a row and a column of its own";
  int status = 0;
  if (problem.empty()) {
    int wrong = stencil::run(options, rank, ranks, provided);
    MPI_Bcast(&wrong, 1, MPI_INT, 0, MPI_COMM_WORLD);
    status = wrong != 0;
  } else {
    if (rank == 0) std::fprintf(stderr, "stencil2d: %s\n%s", problem.c_str(), stencil::usage);
    status = 2;
  }
  MPI_Finalize();
  return status;
}
