// ranks: 2 3 4 5
// timeout: 120
// Sums of doubles that lose digits: the same bits on all ranks and in every repetition, whoever comes late; the
// nonblocking and persistent forms give the bits of the blocking one.
#include "forms.hpp"

using namespace test;

int main() {
  const World w = init();
  for (const int count : {1, 33, 2000, 50000}) {
    std::vector<double> own(static_cast<std::size_t>(count)), first(own.size()), again(own.size());
    for (int i = 0; i < count; ++i) {
      const std::uint64_t random = mix(static_cast<std::uint64_t>(w.rank * 1000000 + i));
      own[static_cast<std::size_t>(i)] = (static_cast<double>(random) - 9e18) * ((random & 3) ? 1e-9 : 1e9);
    }
    const std::size_t bytes = own.size() * sizeof(double);
    CHECK_OK(MPI_Allreduce(own.data(), first.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    std::vector<double> roots = first;
    CHECK_OK(MPI_Bcast(roots.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD));
    CHECK_EQ(std::memcmp(roots.data(), first.data(), bytes), 0);
    for (int repetition = 0; repetition < 30; ++repetition) {
      // Another rank is late each time: work that depends on the data, so that no sleep is needed.
      volatile double burn = 0;
      if (repetition % w.size == w.rank)
        for (int i = 0; i < 20000; ++i) burn = burn + 1e-9 * i;
      const Form form = all_forms[repetition % 3];
      again.assign(own.size(), -1);
      allreduce(form, MPI_COMM_WORLD, static_cast<const void*>(own.data()), static_cast<void*>(again.data()), count,
                MPI_DOUBLE, MPI_SUM);
      CHECK_EQ(std::memcmp(again.data(), first.data(), bytes), 0);
    }
    std::vector<double> reduced(own.size()), reduced_again(own.size());
    const int root = w.size - 1;
    for (int repetition = 0; repetition < 10; ++repetition) {
      volatile double burn = 0;
      if (repetition % w.size == w.rank)
        for (int i = 0; i < 20000; ++i) burn = burn + 1e-9 * i;
      auto& target = repetition ? reduced_again : reduced;
      CHECK_OK(MPI_Reduce(own.data(), target.data(), count, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD));
      if (w.rank == root && repetition) CHECK_EQ(std::memcmp(reduced.data(), reduced_again.data(), bytes), 0);
    }
  }
  return finish();
}
