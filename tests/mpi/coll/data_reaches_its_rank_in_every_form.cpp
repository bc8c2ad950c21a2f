// ranks: 1 2 3 4 5
// timeout: 120
// Bcast, Gather(v), Scatter(v), Allgather(v), Alltoall(v,w): every root, blocking, nonblocking and persistent, in place
// and not, plain and strided datatypes that differ between the ranks, from nothing to lengths that change the
// algorithm.
#include "forms.hpp"

using namespace test;

namespace {

using Ints = std::vector<int>;
constexpr int untouched = -77;

int value(int from, int to, int i) { return from * 1000003 + to * 10007 + i; }

/// `count` ints in a user's layout: plain, or every other int of a buffer twice as large.
class Layout {
 public:
  Layout(int count, bool strided) : count_(count), strided_(strided) {
    if (strided_) {
      MPI_Datatype one;
      CHECK_OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &one));
      type_ = one;
      CHECK_OK(MPI_Type_commit(&type_));
    }
    data_.assign(static_cast<std::size_t>(count) * (strided ? 2 : 1) + 4, untouched);
  }
  ~Layout() {
    if (strided_) MPI_Type_free(&type_);
  }
  Layout(const Layout&) = delete;
  int* data() { return data_.data() + 2; }
  MPI_Datatype type() const { return type_; }
  int& at(int i) { return data()[strided_ ? 2 * i : i]; }
  void check_gaps() {
    for (int i = -2; i < static_cast<int>(data_.size()) - 2; ++i) {
      const bool is_data = i >= 0 && i < count_ * (strided_ ? 2 : 1) && (!strided_ || i % 2 == 0);
      if (!is_data) CHECK_EQ(data()[i], untouched);
    }
  }

 private:
  int count_;
  bool strided_;
  MPI_Datatype type_ = MPI_INT;
  Ints data_;
};

void test_bcast(Form form, MPI_Comm comm, int root, int count, bool strided) {
  const int rank = rank_of(comm);
  Layout b(count, strided && rank % 2 == 0);
  if (rank == root)
    for (int i = 0; i < count; ++i) b.at(i) = value(root, 7, i);
  bcast(form, comm, b.data(), count, b.type(), root);
  for (int i = 0; i < count; ++i) CHECK_EQ(b.at(i), value(root, 7, i));
  b.check_gaps();
}

void test_gather(Form form, MPI_Comm comm, int root, int count, bool strided, bool at_place) {
  const int rank = rank_of(comm), n = size_of(comm);
  Layout send(count, strided && rank % 2 == 0), recv(rank == root ? count * n : 0, strided);
  for (int i = 0; i < count; ++i) send.at(i) = value(rank, 1, i);
  const bool place = at_place && rank == root;
  if (place)
    for (int i = 0; i < count; ++i) recv.at(rank * count + i) = value(rank, 1, i);
  // What is not significant is garbage on purpose.
  gather(form, comm, static_cast<const void*>(place ? MPI_IN_PLACE : send.data()), place ? -5 : count,
         place ? MPI_DATATYPE_NULL : send.type(), static_cast<void*>(rank == root ? recv.data() : nullptr),
         rank == root ? count : -5, rank == root ? recv.type() : MPI_DATATYPE_NULL, root);
  if (rank == root)
    for (int r = 0; r < n; ++r)
      for (int i = 0; i < count; ++i) CHECK_EQ(recv.at(r * count + i), value(r, 1, i));
  recv.check_gaps();
}

void test_scatter(Form form, MPI_Comm comm, int root, int count, bool strided, bool at_place) {
  const int rank = rank_of(comm), n = size_of(comm);
  Layout send(rank == root ? count * n : 0, strided), recv(count, strided && rank % 2 == 0);
  if (rank == root)
    for (int r = 0; r < n; ++r)
      for (int i = 0; i < count; ++i) send.at(r * count + i) = value(r, 2, i);
  const bool place = at_place && rank == root;
  scatter(form, comm, static_cast<const void*>(rank == root ? send.data() : nullptr), rank == root ? count : -5,
          rank == root ? send.type() : MPI_DATATYPE_NULL, static_cast<void*>(place ? MPI_IN_PLACE : recv.data()),
          place ? -5 : count, place ? MPI_DATATYPE_NULL : recv.type(), root);
  if (!place)
    for (int i = 0; i < count; ++i) CHECK_EQ(recv.at(i), value(rank, 2, i));
  recv.check_gaps();
}

/// Blocks of different lengths, some empty, in descending order with gaps.
struct Uneven {
  Uneven(int n, int unit) : counts(static_cast<std::size_t>(n)), displs(static_cast<std::size_t>(n)) {
    int at = 1;
    for (int r = n - 1; r >= 0; --r) {
      counts[static_cast<std::size_t>(r)] = (r * 2 + 1) % 4 * unit;
      displs[static_cast<std::size_t>(r)] = at;
      at += counts[static_cast<std::size_t>(r)] + 1;
    }
    room = at;
  }
  Ints counts, displs;
  int room;
  int count(int r) const { return counts[static_cast<std::size_t>(r)]; }
  int displ(int r) const { return displs[static_cast<std::size_t>(r)]; }
};

void test_gatherv_scatterv(Form form, MPI_Comm comm, int root, int unit, bool strided, bool at_place) {
  const int rank = rank_of(comm), n = size_of(comm);
  const Uneven u(n, unit);
  const bool here = rank == root, place = at_place && here;
  Layout send(u.count(rank), strided && rank % 2 == 0), all(here ? u.room : 0, strided);
  for (int i = 0; i < u.count(rank); ++i) send.at(i) = value(rank, 3, i);
  if (place)
    for (int i = 0; i < u.count(rank); ++i) all.at(u.displ(rank) + i) = value(rank, 3, i);
  gatherv(form, comm, static_cast<const void*>(place ? MPI_IN_PLACE : send.data()), place ? -5 : u.count(rank),
          place ? MPI_DATATYPE_NULL : send.type(), static_cast<void*>(here ? all.data() : nullptr),
          static_cast<const int*>(here ? u.counts.data() : nullptr),
          static_cast<const int*>(here ? u.displs.data() : nullptr), here ? all.type() : MPI_DATATYPE_NULL, root);
  if (here) {
    Ints expected(static_cast<std::size_t>(u.room), untouched);
    for (int r = 0; r < n; ++r)
      for (int i = 0; i < u.count(r); ++i) expected[static_cast<std::size_t>(u.displ(r) + i)] = value(r, 3, i);
    for (int i = 0; i < u.room; ++i) CHECK_EQ(all.at(i), expected[static_cast<std::size_t>(i)]);
  }
  Layout back(u.count(rank), strided && rank % 2 == 1);
  scatterv(form, comm, static_cast<const void*>(here ? all.data() : nullptr),
           static_cast<const int*>(here ? u.counts.data() : nullptr),
           static_cast<const int*>(here ? u.displs.data() : nullptr), here ? all.type() : MPI_DATATYPE_NULL,
           static_cast<void*>(place ? MPI_IN_PLACE : back.data()), place ? -5 : u.count(rank),
           place ? MPI_DATATYPE_NULL : back.type(), root);
  if (!place)
    for (int i = 0; i < u.count(rank); ++i) CHECK_EQ(back.at(i), value(rank, 3, i));
  back.check_gaps();
}

void test_allgather(Form form, MPI_Comm comm, int count, bool strided, bool at_place) {
  const int rank = rank_of(comm), n = size_of(comm);
  Layout send(count, strided && rank % 2 == 0), recv(count * n, strided && rank % 2 == 1);
  for (int i = 0; i < count; ++i) send.at(i) = value(rank, 4, i);
  if (at_place)
    for (int i = 0; i < count; ++i) recv.at(rank * count + i) = value(rank, 4, i);
  allgather(form, comm, static_cast<const void*>(at_place ? MPI_IN_PLACE : send.data()), at_place ? -5 : count,
            at_place ? MPI_DATATYPE_NULL : send.type(), static_cast<void*>(recv.data()), count, recv.type());
  for (int r = 0; r < n; ++r)
    for (int i = 0; i < count; ++i) CHECK_EQ(recv.at(r * count + i), value(r, 4, i));
  recv.check_gaps();
}

void test_allgatherv(Form form, MPI_Comm comm, int unit, bool strided, bool at_place) {
  const int rank = rank_of(comm), n = size_of(comm);
  const Uneven u(n, unit);
  Layout send(u.count(rank), strided && rank % 2 == 0), recv(u.room, strided && rank % 2 == 1);
  for (int i = 0; i < u.count(rank); ++i) send.at(i) = value(rank, 5, i);
  if (at_place)
    for (int i = 0; i < u.count(rank); ++i) recv.at(u.displ(rank) + i) = value(rank, 5, i);
  allgatherv(form, comm, static_cast<const void*>(at_place ? MPI_IN_PLACE : send.data()), at_place ? -5 : u.count(rank),
             at_place ? MPI_DATATYPE_NULL : send.type(), static_cast<void*>(recv.data()), u.counts.data(),
             u.displs.data(), recv.type());
  for (int r = 0; r < n; ++r)
    for (int i = 0; i < u.count(r); ++i) CHECK_EQ(recv.at(u.displ(r) + i), value(r, 5, i));
  recv.check_gaps();
}

void test_alltoall(Form form, MPI_Comm comm, int count, bool strided, bool at_place) {
  const int rank = rank_of(comm), n = size_of(comm);
  Layout send(count * n, strided && rank % 2 == 0), recv(count * n, strided && rank % 2 == 1);
  for (int r = 0; r < n; ++r)
    for (int i = 0; i < count; ++i) (at_place ? recv : send).at(r * count + i) = value(rank, r, i);
  const auto call = [&](auto&& function) {
    function(form, comm, static_cast<const void*>(at_place ? MPI_IN_PLACE : send.data()), at_place ? -5 : count,
             at_place ? MPI_DATATYPE_NULL : send.type(), static_cast<void*>(recv.data()), count, recv.type());
  };
  if (at_place)
    call([](auto... a) { alltoall_once(a...); });
  else
    call([](auto... a) { alltoall(a...); });
  for (int r = 0; r < n; ++r)
    for (int i = 0; i < count; ++i) CHECK_EQ(recv.at(r * count + i), value(r, rank, i));
  recv.check_gaps();
}

/// Length of the block between two ranks: symmetric, for in place; zero for some pairs.
int pair_count(int a, int b, int unit) { return (a + b) % 3 * unit; }

void test_alltoallv(Form form, MPI_Comm comm, int unit, bool strided, bool at_place) {
  const int rank = rank_of(comm), n = size_of(comm);
  Ints counts, displs, bytes;
  int at = 1;
  const bool send_strided = strided && rank % 2 == 0, recv_strided = strided && rank % 2 == 1;
  for (int r = 0; r < n; ++r) {
    counts.push_back(pair_count(rank, r, unit));
    displs.push_back(at);
    at += counts.back() + 1;
  }
  const auto fill_in = [&](Layout& l) {
    for (int r = 0; r < n; ++r)
      for (int i = 0; i < pair_count(rank, r, unit); ++i)
        l.at(displs[static_cast<std::size_t>(r)] + i) = value(rank, r, i);
  };
  const auto check = [&](Layout& l) {
    for (int r = 0; r < n; ++r)
      for (int i = 0; i < pair_count(rank, r, unit); ++i)
        CHECK_EQ(l.at(displs[static_cast<std::size_t>(r)] + i), value(r, rank, i));
    l.check_gaps();
  };
  {
    Layout send(at, send_strided), recv(at, recv_strided);
    fill_in(at_place ? recv : send);
    if (at_place)
      alltoallv_once(form, comm, MPI_IN_PLACE, static_cast<const int*>(nullptr), static_cast<const int*>(nullptr),
                     MPI_DATATYPE_NULL, static_cast<void*>(recv.data()), counts.data(), displs.data(), recv.type());
    else
      alltoallv(form, comm, static_cast<const void*>(send.data()), counts.data(), displs.data(), send.type(),
                static_cast<void*>(recv.data()), counts.data(), displs.data(), recv.type());
    check(recv);
  }
  {
    Layout send(at, send_strided), recv(at, recv_strided);
    Ints send_bytes, recv_bytes;
    for (int d : displs) {
      send_bytes.push_back(d * (send_strided ? 8 : 4));
      recv_bytes.push_back(d * (recv_strided ? 8 : 4));
    }
    const std::vector<MPI_Datatype> send_types(static_cast<std::size_t>(n), send.type()),
        recv_types(static_cast<std::size_t>(n), recv.type());
    fill_in(at_place ? recv : send);
    if (at_place)
      alltoallw_once(form, comm, MPI_IN_PLACE, static_cast<const int*>(nullptr), static_cast<const int*>(nullptr),
                     static_cast<const MPI_Datatype*>(nullptr), static_cast<void*>(recv.data()), counts.data(),
                     recv_bytes.data(), recv_types.data());
    else
      alltoallw(form, comm, static_cast<const void*>(send.data()), counts.data(), send_bytes.data(), send_types.data(),
                static_cast<void*>(recv.data()), counts.data(), recv_bytes.data(), recv_types.data());
    check(recv);
  }
}

}  // namespace

int main() {
  const World w = init();
  {
    const Communicators communicators(w);
    for (MPI_Comm comm : communicators.all) {
      for (const Form form : all_forms) {
        barrier(form, comm);
        for (const bool strided : {false, true}) {
          for (const int count : {0, 1, 5, 600, 40000}) {
            // MPICH 5.0.2 fails long messages between different layouts with "Other MPI error".
            if (strided && count > 1000 && library_is_mpich()) continue;
            for (int root = 0; root < size_of(comm); ++root) {
              if (count > 1000 && root > 1) continue;
              test_bcast(form, comm, root, count, strided);
              for (const bool at_place : {false, true}) {
                test_gather(form, comm, root, count, strided, at_place);
                test_scatter(form, comm, root, count, strided, at_place);
                test_gatherv_scatterv(form, comm, root, count, strided, at_place);
              }
            }
            for (const bool at_place : {false, true}) {
              test_allgather(form, comm, count, strided, at_place);
              test_allgatherv(form, comm, count, strided, at_place);
              test_alltoall(form, comm, count, strided, at_place);
              test_alltoallv(form, comm, count, strided, at_place);
            }
          }
        }
      }
    }
    // Long enough for the pipelined broadcast.
    for (const Form form : all_forms) {
      test_bcast(form, MPI_COMM_WORLD, w.size - 1, 300001, false);
      if (!library_is_mpich()) test_bcast(form, MPI_COMM_WORLD, 0, 300001, true);
    }
  }
  return finish();
}
