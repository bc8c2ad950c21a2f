// ranks: 2
// threads: 3
// timeout: 60
// Threads call local functions without pause (rank, size, time, statuses, types, groups, info, attributes, error texts)
// while another communicates: right answers throughout, and no deadlock.
#include <atomic>

#include "team.hpp"

using namespace test;

namespace {

void queries(const World& w, MPI_Comm comm, int i) {
  int rank = -1, size = -1, flag = -1, length = 0, result = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  CHECK_EQ(rank, w.rank);
  CHECK_EQ(size, w.size);
  static thread_local double before = 0;
  const double now = MPI_Wtime();
  CHECK(now >= before);
  before = now;
  if (i % 16) return;
  MPI_Initialized(&flag);
  CHECK_EQ(flag, 1);
  MPI_Comm_compare(comm, MPI_COMM_WORLD, &result);
  CHECK_EQ(result, MPI_CONGRUENT);
  char text[MPI_MAX_ERROR_STRING];
  MPI_Error_string(MPI_ERR_TAG, text, &length);
  CHECK(length > 0);
  int* bound = nullptr;
  MPI_Comm_get_attr(comm, MPI_TAG_UB, &bound, &flag);
  CHECK_EQ(flag, 1);
  CHECK(*bound >= 32767);
}

void objects(const World& w, MPI_Comm comm, int i) {
  MPI_Group group, part;
  int size = 0, rank = -1, bytes = 0, found = 0, room = 16;
  MPI_Comm_group(comm, &group);
  MPI_Group_incl(group, 1, &w.rank, &part);
  MPI_Group_size(part, &size);
  MPI_Group_rank(group, &rank);
  CHECK_EQ(size, 1);
  CHECK_EQ(rank, w.rank);
  MPI_Group_free(&part);
  MPI_Group_free(&group);
  MPI_Datatype type;
  MPI_Type_vector(3, 2, 4 + i % 5, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Type_size(type, &bytes);
  CHECK_EQ(bytes, 24);
  MPI_Type_free(&type);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "pick", "weft");
  char value[16] = "";
  MPI_Info_get_string(info, "pick", &room, value, &found);
  CHECK_STR(value, "weft");
  MPI_Info_free(&info);
  MPI_Status status = dirty_status();
  MPI_Status_set_elements(&status, MPI_INT, i);
  CHECK_EQ(count_of(status, MPI_INT), i);
}

}  // namespace

int main() {
  const World w = init_threads();
  Communicators comms(1);
  const MPI_Comm comm = comms[0];
  std::atomic<bool> finished{false};
  run_threads(4, [&](int t) {
    if (t == 0) {
      std::vector<unsigned char> data(100'000);
      for (int i = 0; i < 500; ++i) {
        const int n = i % 50 ? 64 : 100'000;
        MPI_Sendrecv_replace(data.data(), n, MPI_BYTE, 1 - w.rank, 0, 1 - w.rank, 0, comm, MPI_STATUS_IGNORE);
      }
      finished.store(true, std::memory_order_release);  // pairs with the acquire loads below
    } else {
      for (int i = 0; i < 1'000 || !finished.load(std::memory_order_acquire); ++i) {
        if (t == 1)
          objects(w, comm, i);
        else
          queries(w, t == 2 ? comm : MPI_COMM_WORLD, t == 2 ? i : 1);
      }
    }
  });
  comms.free();
  return finish();
}
