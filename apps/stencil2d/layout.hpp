// Who owns which cells: a grid of processes, in each a grid of threads, over one square plate.
#pragma once

#include <cmath>

namespace stencil {

/// Splits `n` into two factors as close as they get; `first` is the larger.
struct Factors {
  int first, second;
  explicit Factors(int n) : first(n), second(1) {
    for (int small = 1; small * small <= n; ++small)
      if (n % small == 0) first = n / small, second = small;
  }
};

/// Cells [begin, end) of one direction.
struct Range {
  int begin, end;
  int count() const { return end - begin; }
};

/// The part of a rank's array that one thread updates, in the array's own indices (1 is the first inner cell).
struct Block {
  Range x, y;
};

/// The decomposition of a plate of size x size cells, seen from one rank.
///
/// Processes are stacked rather in rows, threads rather in columns, so that with 2 ranks of 2 threads both threads
/// sit at the edge that the ranks share. Cells are dealt to (process, thread) pairs at once: the threads on both
/// sides of an edge own the same stretch of it.
struct Layout {
  int size, processes_x, processes_y, threads_x, threads_y, px, py;

  Layout(int size, int ranks, int threads, int rank)
      : size(size),
        processes_x(Factors(ranks).second),
        processes_y(Factors(ranks).first),
        threads_x(Factors(threads).first),
        threads_y(Factors(threads).second),
        px(rank % processes_x),
        py(rank / processes_x) {}

  /// Cell columns and rows of the process at (x, y), in cells of the plate.
  Range columns(int x) const {
    return {cut(x * threads_x, processes_x * threads_x), cut((x + 1) * threads_x, processes_x * threads_x)};
  }
  Range rows(int y) const {
    return {cut(y * threads_y, processes_y * threads_y), cut((y + 1) * threads_y, processes_y * threads_y)};
  }

  int width() const { return columns(px).count(); }
  int height() const { return rows(py).count(); }

  int thread_column(int thread) const { return thread % threads_x; }
  int thread_row(int thread) const { return thread / threads_x; }

  Block block(int thread) const {
    const int bx = px * threads_x + thread_column(thread), by = py * threads_y + thread_row(thread);
    const int left = columns(px).begin - 1, top = rows(py).begin - 1;
    return {{cut(bx, processes_x * threads_x) - left, cut(bx + 1, processes_x * threads_x) - left},
            {cut(by, processes_y * threads_y) - top, cut(by + 1, processes_y * threads_y) - top}};
  }

  /// The rank at an offset in the process grid, or -1 beyond the plate.
  int neighbour(int dx, int dy) const {
    const int x = px + dx, y = py + dy;
    return x < 0 || y < 0 || x >= processes_x || y >= processes_y ? -1 : y * processes_x + x;
  }

 private:
  int cut(int block, int blocks) const { return static_cast<int>(static_cast<long long>(size) * block / blocks); }
};

}  // namespace stencil
