// ranks: 2 3 4 5
// timeout: 120
// Long runs of small blocking collectives of every length around one kilobyte, one after another without a pause, ranks
// late in turn: no value of one is seen by another, errors of one do not reach the next.
#include "forms.hpp"

using namespace test;

namespace {

int value(int rank, int round, int i) { return rank * 100003 + round * 101 + i; }

}  // namespace

int main() {
  const World w = init();
  MPI_Comm comm;
  CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  CHECK_OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  volatile double burn = 0;
  Random shared(1);
  for (int round = 0; round < 6000; ++round) {
    const int count = static_cast<int>(shared.below(2) ? shared.below(8) : 244 + shared.below(16));
    if (static_cast<int>(shared.below(40)) == w.rank)
      for (int k = 0; k < 2000; ++k) burn = burn + 1e-9 * k;
    std::vector<int> send(static_cast<std::size_t>(count)), recv(static_cast<std::size_t>(count * w.size), -1);
    for (int i = 0; i < count; ++i) send[static_cast<std::size_t>(i)] = value(w.rank, round, i);
    switch (shared.below(4)) {
      case 0: {
        CHECK_OK(MPI_Allreduce(send.data(), recv.data(), count, MPI_INT, MPI_MAX, comm));
        for (int i = 0; i < count; ++i) CHECK_EQ(recv[static_cast<std::size_t>(i)], value(w.size - 1, round, i));
        CHECK_OK(MPI_Allreduce(MPI_IN_PLACE, send.data(), count, MPI_INT, MPI_MIN, comm));
        for (int i = 0; i < count; ++i) CHECK_EQ(send[static_cast<std::size_t>(i)], value(0, round, i));
        break;
      }
      case 1:
        CHECK_OK(MPI_Allgather(send.data(), count, MPI_INT, recv.data(), count, MPI_INT, comm));
        for (int r = 0; r < w.size; ++r)
          for (int i = 0; i < count; ++i) CHECK_EQ(recv[static_cast<std::size_t>(r * count + i)], value(r, round, i));
        break;
      case 2: {
        std::vector<int> out;
        for (int r = 0; r < w.size; ++r)
          for (int i = 0; i < count; ++i) out.push_back(value(w.rank, round, i) * 8 + r);
        CHECK_OK(MPI_Alltoall(out.data(), count, MPI_INT, recv.data(), count, MPI_INT, comm));
        for (int r = 0; r < w.size; ++r)
          for (int i = 0; i < count; ++i)
            CHECK_EQ(recv[static_cast<std::size_t>(r * count + i)], value(r, round, i) * 8 + w.rank);
        break;
      }
      case 3:
        CHECK_OK(MPI_Barrier(comm));
        break;
    }
  }
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  // Through shared memory everybody sees what the others came with; elsewhere some ranks notice, and others do not, or hang.
  const bool noticed = library_is_heddle() && size_of(node) == w.size && std::getenv("HEDDLE_SHM") == nullptr;
  CHECK_OK(MPI_Comm_free(&node));
  if (noticed) {
    int in[8] = {}, out[8] = {};
    const int code = MPI_Allreduce(in, out, w.rank == 0 ? 2 : 1, MPI_INT, MPI_SUM, comm);
    CHECK_EQ(error_class(code), w.size == 2 || w.rank == 0 ? MPI_ERR_COUNT : error_class(code));
    CHECK_NE(code, MPI_SUCCESS);
    int one = 1, sum = 0;
    CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(sum, w.size);
  }
  CHECK_OK(MPI_Comm_free(&comm));
  return finish();
}
