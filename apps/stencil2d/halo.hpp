// The halo exchange. The modes differ in one thing only: which edges a thread exchanges, over which communicator.
#pragma once

#include <mpi.h>
#if __has_include(<mpix.h>)
#include <mpix.h>
#define STENCIL_ENDPOINTS 1
#endif

#include <string>
#include <vector>

#include "field.hpp"
#include "layout.hpp"

namespace stencil {

/// How the threads of a rank share the exchange.
enum class Mode {
  funneled,         ///< the master thread exchanges whole edges; the others wait
  multiple,         ///< every thread exchanges its own stretch; one communicator, a tag for each thread
  comm_per_thread,  ///< every thread exchanges its own stretch over a communicator that no other thread uses
  endpoints,        ///< every thread at an edge is a rank itself and talks to the thread at the other side
};

/// Those that this MPI has.
inline std::vector<Mode> all_modes() {
  std::vector<Mode> modes{Mode::funneled, Mode::multiple, Mode::comm_per_thread};
#ifdef STENCIL_ENDPOINTS
  modes.push_back(Mode::endpoints);
#endif
  return modes;
}

inline const char* name_of(Mode mode) {
  switch (mode) {
    case Mode::funneled:
      return "funneled";
    case Mode::multiple:
      return "multiple";
    case Mode::comm_per_thread:
      return "comm-per-thread";
    case Mode::endpoints:
      return "endpoints";
  }
  return "?";
}

/// One stretch of the border with one neighbour: a row or a column of cells out, the halo beside it in.
struct Edge {
  int neighbour;  ///< rank in `comm`
  MPI_Comm comm;
  int send_tag, receive_tag;
  bool is_column;
  int inner, halo;  ///< the row (or column) that is sent, and the one that is received
  Range along;      ///< which cells of it

  std::vector<double> out, in;  ///< columns are not contiguous: packed here
};

/// The communicators of the mode `comm_per_thread`: two sets for each direction, one communicator in a set for each
/// thread along an edge. The border between process rows r and r+1 belongs to the set r mod 2, so a process uses
/// different sets for its northern and its southern border. With a single set, the thread in the north of a process
/// and the one in its south would share a communicator, though they have nothing to do with each other.
/// Source: Zambre et al., "Logically parallel communication for fast MPI+threads applications", figure 21.
class Communicators {
 public:
  /// Collective over MPI_COMM_WORLD. Makes none for the other modes.
  Communicators(const Layout& layout, Mode mode) {
    if (mode != Mode::comm_per_thread) return;
    for (auto& set : rows_) set = duplicates(layout.threads_x);
    for (auto& set : columns_) set = duplicates(layout.threads_y);
  }
  ~Communicators() {
    for (auto* sets : {rows_, columns_})
      for (int parity = 0; parity < 2; ++parity)
        for (MPI_Comm& comm : sets[parity]) MPI_Comm_free(&comm);
  }
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  /// For the border below process row `row` (or right of process column `column`) and a place along it.
  MPI_Comm across_rows(int row, int thread_column) const { return pick(rows_[row & 1], thread_column); }
  MPI_Comm across_columns(int column, int thread_row) const { return pick(columns_[column & 1], thread_row); }

 private:
  static MPI_Comm pick(const std::vector<MPI_Comm>& set, int place) {
    return set.empty() ? MPI_COMM_WORLD : set[place];
  }
  static std::vector<MPI_Comm> duplicates(int count) {
    std::vector<MPI_Comm> comms(count);
    for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    return comms;
  }
  std::vector<MPI_Comm> rows_[2], columns_[2];
};

/// The endpoints of the mode of this name: a rank for each thread at an edge of its process, none for those inside.
/// Where Communicators takes two sets a direction and a rule for who uses which, here the thread on the other side has
/// a rank. Source: the same paper, figure 20.
class Endpoints {
 public:
  /// Collective over MPI_COMM_WORLD. Makes none for the other modes.
  Endpoints(const Layout& layout, Mode mode) : layout_(layout), places_(layout.threads_x * layout.threads_y, -1) {
    if (mode != Mode::endpoints) return;
    for (int y = 0; y < layout.threads_y; ++y)
      for (int x = 0; x < layout.threads_x; ++x)
        if (x == 0 || y == 0 || x == layout.threads_x - 1 || y == layout.threads_y - 1)
          places_[y * layout.threads_x + x] = count_++;
    handles_.resize(count_);
#ifdef STENCIL_ENDPOINTS
    MPIX_Comm_create_endpoints(MPI_COMM_WORLD, count_, MPI_INFO_NULL, handles_.data());
#endif
  }
  ~Endpoints() {
    for (MPI_Comm& handle : handles_) MPI_Comm_free(&handle);
  }
  Endpoints(const Endpoints&) = delete;
  Endpoints& operator=(const Endpoints&) = delete;

  /// The handle of the thread at (x, y) of this process, and the rank of the one at (x, y) of another.
  MPI_Comm handle(int x, int y) const { return handles_[places_[y * layout_.threads_x + x]]; }
  int rank(int process, int x, int y) const { return process * count_ + places_[y * layout_.threads_x + x]; }

 private:
  const Layout& layout_;
  std::vector<int> places_;  // of a thread among those at an edge; -1 inside
  int count_ = 0;
  std::vector<MPI_Comm> handles_;
};

/// The edges that `thread` exchanges in `mode`.
inline std::vector<Edge> edges_of(const Layout& layout, int thread, Mode mode, const Communicators& comms,
                                  const Endpoints& endpoints) {
  const bool whole = mode == Mode::funneled;
  if (whole && thread != 0) return {};
  const int tx = layout.thread_column(thread), ty = layout.thread_row(thread);
  Block block = layout.block(thread);
  if (whole) block = {{1, layout.width() + 1}, {1, layout.height() + 1}};

  // A tag names the way a message goes and the place along the edge: both ends find the same one.
  const auto tag = [](int way, int place) { return 4 * place + way; };
  enum { north, south, west, east };

  std::vector<Edge> edges;
  const auto add = [&](int dx, int dy, MPI_Comm own, int out_way, int in_way, int place, int inner, int halo) {
    const int neighbour = layout.neighbour(dx, dy);
    if (neighbour < 0) return;
    const bool is_column = dx != 0;
    // The thread on the other side is at the opposite edge of its process.
    const bool to_endpoint = mode == Mode::endpoints;
    const int x = is_column ? layout.threads_x - 1 - tx : tx, y = is_column ? ty : layout.threads_y - 1 - ty;
    Edge edge{to_endpoint ? endpoints.rank(neighbour, x, y) : neighbour,
              to_endpoint ? endpoints.handle(tx, ty) : own,
              tag(out_way, place),
              tag(in_way, place),
              is_column,
              inner,
              halo,
              is_column ? block.y : block.x,
              {},
              {}};
    if (is_column) edge.out.resize(edge.along.count()), edge.in.resize(edge.along.count());
    edges.push_back(std::move(edge));
  };
  const int width = layout.width(), height = layout.height(), px = layout.px, py = layout.py;
  // Rows -1 and +1 have the same parity: py - 1 would be -1 at the top, where there is no neighbour anyway.
  if (whole || ty == 0) add(0, -1, comms.across_rows(py + 1, tx), north, south, tx, 1, 0);
  if (whole || ty == layout.threads_y - 1) add(0, +1, comms.across_rows(py, tx), south, north, tx, height, height + 1);
  if (whole || tx == 0) add(-1, 0, comms.across_columns(px + 1, ty), west, east, ty, 1, 0);
  if (whole || tx == layout.threads_x - 1) add(+1, 0, comms.across_columns(px, ty), east, west, ty, width, width + 1);
  return edges;
}

/// Exchanges `edges` of `field` and returns when the halo is complete. Called by the thread that owns the edges.
inline void exchange(std::vector<Edge>& edges, Field& field, std::vector<MPI_Request>& requests) {
  requests.clear();
  for (Edge& edge : edges) {
    double* into = edge.is_column ? edge.in.data() : &field.at(edge.along.begin, edge.halo);
    MPI_Irecv(into, edge.along.count(), MPI_DOUBLE, edge.neighbour, edge.receive_tag, edge.comm,
              &requests.emplace_back());
  }
  for (Edge& edge : edges) {
    const double* from = edge.is_column ? edge.out.data() : &field.at(edge.along.begin, edge.inner);
    for (int i = 0; edge.is_column && i < edge.along.count(); ++i)
      edge.out[i] = field.at(edge.inner, edge.along.begin + i);
    MPI_Isend(from, edge.along.count(), MPI_DOUBLE, edge.neighbour, edge.send_tag, edge.comm, &requests.emplace_back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (Edge& edge : edges)
    for (int i = 0; edge.is_column && i < edge.along.count(); ++i)
      field.at(edge.halo, edge.along.begin + i) = edge.in[i];
}

}  // namespace stencil
