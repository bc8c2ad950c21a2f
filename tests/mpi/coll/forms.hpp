// Every collective in its three forms behind one name: bcast(form, comm, buffer, count, type, root).
#pragma once

#include "../support.hpp"

namespace test {

enum class Form { blocking, nonblocking, persistent };
inline constexpr Form all_forms[] = {Form::blocking, Form::nonblocking, Form::persistent};

inline const char* form_name(Form form) {
  return form == Form::blocking ? "blocking" : form == Form::nonblocking ? "nonblocking" : "persistent";
}

// The persistent form starts twice: buffers must give the same result again, so in-place reductions start once.
#define TEST_FORMS(name, blocking_name, nonblocking_name)                             \
  template <typename... Args>                                                         \
  void name##_times(int times, Form form, MPI_Comm comm, Args... args) {              \
    MPI_Request request = MPI_REQUEST_NULL;                                           \
    switch (form) {                                                                   \
      case Form::blocking:                                                            \
        CHECK_OK(MPI_##blocking_name(args..., comm));                                 \
        break;                                                                        \
      case Form::nonblocking:                                                         \
        CHECK_OK(MPI_##nonblocking_name(args..., comm, &request));                    \
        CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));                              \
        CHECK(request == MPI_REQUEST_NULL);                                           \
        break;                                                                        \
      case Form::persistent:                                                          \
        CHECK_OK(MPI_##blocking_name##_init(args..., comm, MPI_INFO_NULL, &request)); \
        for (int i = 0; i < times; ++i) {                                             \
          CHECK_OK(MPI_Start(&request));                                              \
          CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));                            \
          CHECK(request != MPI_REQUEST_NULL);                                         \
        }                                                                             \
        CHECK_OK(MPI_Request_free(&request));                                         \
        break;                                                                        \
    }                                                                                 \
  }                                                                                   \
  template <typename... Args>                                                         \
  void name(Form form, MPI_Comm comm, Args... args) {                                 \
    name##_times(2, form, comm, args...);                                             \
  }                                                                                   \
  template <typename... Args>                                                         \
  void name##_once(Form form, MPI_Comm comm, Args... args) {                          \
    name##_times(1, form, comm, args...);                                             \
  }

TEST_FORMS(barrier, Barrier, Ibarrier)
TEST_FORMS(bcast, Bcast, Ibcast)
TEST_FORMS(gather, Gather, Igather)
TEST_FORMS(gatherv, Gatherv, Igatherv)
TEST_FORMS(scatter, Scatter, Iscatter)
TEST_FORMS(scatterv, Scatterv, Iscatterv)
TEST_FORMS(allgather, Allgather, Iallgather)
TEST_FORMS(allgatherv, Allgatherv, Iallgatherv)
TEST_FORMS(alltoall, Alltoall, Ialltoall)
TEST_FORMS(alltoallv, Alltoallv, Ialltoallv)
TEST_FORMS(alltoallw, Alltoallw, Ialltoallw)
TEST_FORMS(reduce, Reduce, Ireduce)
TEST_FORMS(allreduce, Allreduce, Iallreduce)
TEST_FORMS(reduce_scatter_block, Reduce_scatter_block, Ireduce_scatter_block)
TEST_FORMS(reduce_scatter, Reduce_scatter, Ireduce_scatter)
TEST_FORMS(scan, Scan, Iscan)
TEST_FORMS(exscan, Exscan, Iexscan)

// MPI_COMM_WORLD, its ranks in reverse order, and the odd and even halves: the sizes 1 to world size, strided groups.
struct Communicators {
  std::vector<MPI_Comm> all;
  explicit Communicators(const World& w) {
    all.push_back(MPI_COMM_WORLD);
    all.push_back(MPI_COMM_SELF);
    MPI_Comm made;
    CHECK_OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -w.rank, &made));
    all.push_back(made);
    CHECK_OK(MPI_Comm_split(MPI_COMM_WORLD, w.rank % 2, w.rank, &made));
    all.push_back(made);
  }
  ~Communicators() {
    for (std::size_t i = 2; i < all.size(); ++i) MPI_Comm_free(&all[i]);
  }
};

inline int rank_of(MPI_Comm comm) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  return rank;
}
inline int size_of(MPI_Comm comm) {
  int size;
  MPI_Comm_size(comm, &size);
  return size;
}

}  // namespace test
