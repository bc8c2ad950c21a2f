// ranks: 1 2 4
// timeout: 60
// MPI_Rput, MPI_Rget, MPI_Raccumulate and MPI_Rget_accumulate complete by every function that completes requests, alone and among
// messages: a get's data is there, a put's buffer may be used again, a flush finishes them at the target. Statuses are of no interest
// but their error; requests may be freed; MPI_PROC_NULL gives a request too.
#include "windows.hpp"

using namespace test;

namespace {

constexpr int many = 24;

enum class Way { wait, test, waitall, testall, waitany, testany, waitsome, testsome, count };

void complete(Way way, std::vector<MPI_Request>& requests) {
  const int n = static_cast<int>(requests.size());
  std::vector<MPI_Status> statuses(requests.size());
  std::vector<int> indices(requests.size());
  int flag = 0, index = 0, outcount = 0, done = 0;
  switch (way) {
    case Way::wait:
      for (auto& request : requests) CHECK_OK(MPI_Wait(&request, &statuses[0]));
      break;
    case Way::test:
      for (auto& request : requests) CHECK(eventually([&] { CHECK_OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE)); return flag; }));
      break;
    case Way::waitall: CHECK_OK(MPI_Waitall(n, requests.data(), statuses.data())); break;
    case Way::testall: CHECK(eventually([&] { CHECK_OK(MPI_Testall(n, requests.data(), &flag, statuses.data())); return flag; })); break;
    case Way::waitany:
      for (; done < n; ++done) {
        CHECK_OK(MPI_Waitany(n, requests.data(), &index, &statuses[0]));
        CHECK(index >= 0 && index < n);
      }
      CHECK_OK(MPI_Waitany(n, requests.data(), &index, &statuses[0]));
      CHECK_EQ(index, MPI_UNDEFINED);
      break;
    case Way::testany:
      for (; done < n; ++done)
        CHECK(eventually([&] { CHECK_OK(MPI_Testany(n, requests.data(), &index, &flag, MPI_STATUS_IGNORE)); return flag; }));
      break;
    case Way::waitsome:
      for (; done < n; done += outcount) {
        CHECK_OK(MPI_Waitsome(n, requests.data(), &outcount, indices.data(), statuses.data()));
        CHECK_GT(outcount, 0);
      }
      break;
    case Way::testsome:
      CHECK(eventually([&] {
        CHECK_OK(MPI_Testsome(n, requests.data(), &outcount, indices.data(), MPI_STATUSES_IGNORE));
        return (done += outcount) == n;
      }));
      break;
    case Way::count: break;
  }
  for (const auto request : requests) CHECK(request == MPI_REQUEST_NULL);
}

void check(Way way, Flavour flavour, bool lock_all, int ints) {
  MPI_Comm comm = MPI_COMM_WORLD;
  const World w = world();
  const int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size;
  const auto n = static_cast<std::size_t>(ints);
  Memory memory(flavour, many * n * sizeof(int), comm, sizeof(int));
  int* const own = memory.as<int>();
  const auto slot = [&](int i) { return memory.at(next, static_cast<std::size_t>(i) * n * sizeof(int)); };
  settle(memory.win, comm);
  if (lock_all) CHECK_OK(MPI_Win_lock_all(0, memory.win));
  else CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, memory.win));
  std::vector<std::vector<int>> data(many), result(many);
  std::vector<MPI_Request> requests(many);
  const auto complete_them = [&] { complete(way, requests); };

  for (int i = 0; i < many; ++i) {
    auto& d = data[static_cast<std::size_t>(i)];
    d.assign(n, w.rank * 1000 + i);
    CHECK_OK(i % 2 ? MPI_Rput(d.data(), ints, MPI_INT, next, slot(i), ints, MPI_INT, memory.win, &requests[static_cast<std::size_t>(i)])
                   : MPI_Rput_c(d.data(), ints, MPI_INT, next, slot(i), ints, MPI_INT, memory.win, &requests[static_cast<std::size_t>(i)]));
  }
  complete_them();
  for (auto& d : data) std::fill(d.begin(), d.end(), -1);  // ours again
  CHECK_OK(MPI_Win_flush(next, memory.win));

  for (int i = 0; i < many; ++i) {
    const auto k = static_cast<std::size_t>(i);
    result[k].assign(n, -1);
    CHECK_OK(i % 2 ? MPI_Rget(result[k].data(), ints, MPI_INT, next, slot(i), ints, MPI_INT, memory.win, &requests[k])
                   : MPI_Rget_c(result[k].data(), ints, MPI_INT, next, slot(i), ints, MPI_INT, memory.win, &requests[k]));
  }
  complete_them();
  for (int i = 0; i < many; ++i)
    for (const int got : result[static_cast<std::size_t>(i)]) CHECK_EQ(got, w.rank * 1000 + i);

  for (int i = 0; i < many; ++i) {
    const auto k = static_cast<std::size_t>(i);
    data[k].assign(n, 5);
    CHECK_OK(i % 2 ? MPI_Raccumulate(data[k].data(), ints, MPI_INT, next, slot(i), ints, MPI_INT, MPI_SUM, memory.win, &requests[k])
                   : MPI_Raccumulate_c(data[k].data(), ints, MPI_INT, next, slot(i), ints, MPI_INT, MPI_SUM, memory.win, &requests[k]));
  }
  complete_them();
  for (auto& d : data) std::fill(d.begin(), d.end(), 70);

  // Behind those: operations of one origin on one place keep their order.
  for (int i = 0; i < many; ++i) {
    const auto k = static_cast<std::size_t>(i);
    CHECK_OK(i % 2 ? MPI_Rget_accumulate(data[k].data(), ints, MPI_INT, result[k].data(), ints, MPI_INT, next, slot(i), ints, MPI_INT, MPI_SUM,
                                         memory.win, &requests[k])
                   : MPI_Rget_accumulate_c(data[k].data(), ints, MPI_INT, result[k].data(), ints, MPI_INT, next, slot(i), ints, MPI_INT,
                                           MPI_SUM, memory.win, &requests[k]));
  }
  complete_them();
  for (int i = 0; i < many; ++i)
    for (const int got : result[static_cast<std::size_t>(i)]) CHECK_EQ(got, w.rank * 1000 + i + 5);

  // Among messages, and to nobody.
  int sent = 1, received = 0, unread = 9;
  requests.assign(4, MPI_REQUEST_NULL);
  CHECK_OK(MPI_Irecv(&received, 1, MPI_INT, before, 3, comm, &requests[0]));
  CHECK_OK(MPI_Rget(result[0].data(), ints, MPI_INT, next, slot(0), ints, MPI_INT, memory.win, &requests[1]));
  CHECK_OK(MPI_Rget(&unread, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, memory.win, &requests[2]));
  CHECK(requests[1] != MPI_REQUEST_NULL && requests[2] != MPI_REQUEST_NULL);
  CHECK_OK(MPI_Isend(&sent, 1, MPI_INT, next, 3, comm, &requests[3]));
  complete_them();
  CHECK(received == 1 && unread == 9 && result[0][0] == w.rank * 1000 + 75);

  // MPI_Request_get_status leaves the request, MPI_Request_free lets it finish by itself.
  MPI_Request request;
  CHECK_OK(MPI_Rget(result[1].data(), ints, MPI_INT, next, slot(1), ints, MPI_INT, memory.win, &request));
  CHECK(eventually([&] { int flag = 0; CHECK_OK(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE)); return flag; }));
  CHECK(request != MPI_REQUEST_NULL);
  CHECK_EQ(result[1][n - 1], w.rank * 1000 + 76);
  CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  data[2].assign(n, 1);
  CHECK_OK(MPI_Raccumulate(data[2].data(), ints, MPI_INT, next, slot(2), ints, MPI_INT, MPI_SUM, memory.win, &request));
  CHECK_OK(MPI_Request_free(&request));
  CHECK(request == MPI_REQUEST_NULL);
  // Completed or not, the end of the epoch completes what a request stands for.
  data[3].assign(n, 3);
  CHECK_OK(MPI_Rput(data[3].data(), ints, MPI_INT, next, slot(3), ints, MPI_INT, memory.win, &request));
  if (lock_all) CHECK_OK(MPI_Win_unlock_all(memory.win));
  else CHECK_OK(MPI_Win_unlock(next, memory.win));
  CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  settle(memory.win, comm);
  for (int i = 0; i < many; ++i) {
    const int added = i == 2;
    CHECK_EQ(own[static_cast<std::size_t>(i) * n], i == 3 ? 3 : before * 1000 + i + 75 + added);
    CHECK_EQ(own[(static_cast<std::size_t>(i) + 1) * n - 1], i == 3 ? 3 : before * 1000 + i + 75 + added);
  }
  memory.free();
}

}  // namespace

int main() {
  init();
  int round = 0;
  for (const Flavour flavour : flavours_on(MPI_COMM_WORLD))
    for (int way = 0; way < static_cast<int>(Way::count); ++way, ++round) {
      check(static_cast<Way>(way), flavour, round % 2, 1);
      check(static_cast<Way>(way), flavour, round % 3, 1000);
      if (way % 4 == 0) check(static_cast<Way>(way), flavour, true, 30000);
    }
  return finish();
}
