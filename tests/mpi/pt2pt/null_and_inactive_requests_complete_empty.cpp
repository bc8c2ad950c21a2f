// ranks: 1
// timeout: 30
// MPI_REQUEST_NULL and inactive persistent requests in every completion call: at once, with an empty status, index or
// count MPI_UNDEFINED when nothing in the array is active; arrays of length zero; a mix with active ones.
#include "../support.hpp"

using namespace test;

namespace {

void check_singles(MPI_Request request) {
  const MPI_Request before = request;
  MPI_Status status = dirty_status();
  CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
  CHECK(is_empty(status));
  int flag = 0;
  status = dirty_status();
  MPI_Test(&request, &flag, &status);
  CHECK_EQ(flag, 1);
  CHECK(is_empty(status));
  status = dirty_status();
  flag = 0;
  MPI_Request_get_status(request, &flag, &status);
  CHECK_EQ(flag, 1);
  CHECK(is_empty(status));
  if (!library_is_mpich()) CHECK_EQ(status.MPI_ERROR, MPI_SUCCESS);  // part of the empty status; MPICH 5.0.2 leaves it
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  CHECK(request == before);  // an inactive request stays what it is
}

void check_arrays(std::vector<MPI_Request> requests) {
  const std::vector<MPI_Request> before = requests;
  const int n = static_cast<int>(requests.size());
  std::vector<MPI_Status> statuses(requests.size() + 1);
  std::vector<int> indices(requests.size() + 1, -7);
  for (auto& s : statuses) s = dirty_status();
  int index = 0, flag = 0, some = 0;
  MPI_Status status = dirty_status();

  MPI_Waitany(n, requests.data(), &index, &status);
  CHECK_EQ(index, MPI_UNDEFINED);
  CHECK(is_empty(status));
  status = dirty_status();
  index = 0;
  MPI_Testany(n, requests.data(), &index, &flag, &status);
  CHECK_EQ(flag, 1);
  CHECK_EQ(index, MPI_UNDEFINED);
  CHECK(is_empty(status));

  MPI_Waitall(n, requests.data(), statuses.data());
  for (int i = 0; i < n; ++i) CHECK(is_empty(statuses[static_cast<std::size_t>(i)]));
  for (auto& s : statuses) s = dirty_status();
  flag = 0;
  MPI_Testall(n, requests.data(), &flag, statuses.data());
  CHECK_EQ(flag, 1);
  for (int i = 0; i < n; ++i) CHECK(is_empty(statuses[static_cast<std::size_t>(i)]));
  CHECK_EQ(statuses.back().MPI_TAG, -778);  // nothing written behind the end

  MPI_Waitsome(n, requests.data(), &some, indices.data(), statuses.data());
  CHECK_EQ(some, MPI_UNDEFINED);
  some = 0;
  MPI_Testsome(n, requests.data(), &some, indices.data(), statuses.data());
  CHECK_EQ(some, MPI_UNDEFINED);
  for (const int i : indices) CHECK_EQ(i, -7);

  flag = 0;
  for (auto& s : statuses) s = dirty_status();
  MPI_Request_get_status_all(n, requests.data(), &flag, statuses.data());
  CHECK_EQ(flag, 1);
  for (int i = 0; i < n; ++i) CHECK(is_empty(statuses[static_cast<std::size_t>(i)]));
  flag = index = 0;
  status = dirty_status();
  MPI_Request_get_status_any(n, requests.data(), &index, &flag, &status);
  CHECK_EQ(flag, 1);
  CHECK_EQ(index, MPI_UNDEFINED);
  CHECK(is_empty(status));
  some = 0;
  MPI_Request_get_status_some(n, requests.data(), &some, indices.data(), statuses.data());
  CHECK_EQ(some, MPI_UNDEFINED);
  CHECK(requests == before);
}

// Active requests among null and inactive ones: indices are places in the array, the others get empty statuses.
void check_mix(MPI_Request inactive) {
  for (int round = 0; round < 4; ++round) {
    int in = -1, out = 5 + round;
    MPI_Request requests[5] = {MPI_REQUEST_NULL, inactive, MPI_REQUEST_NULL, MPI_REQUEST_NULL, inactive};
    MPI_Irecv(&in, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &requests[3]);
    int index = -1, flag = -1, some = -1, indices[5];
    MPI_Status statuses[5];
    for (auto& s : statuses) s = dirty_status();
    MPI_Testany(5, requests, &index, &flag, &statuses[0]);  // one is active and not complete
    CHECK_EQ(flag, 0);
    CHECK_EQ(index, MPI_UNDEFINED);
    MPI_Testsome(5, requests, &some, indices, statuses);
    CHECK_EQ(some, 0);
    MPI_Testall(5, requests, &flag, statuses);
    CHECK_EQ(flag, 0);
    MPI_Ssend(&out, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    switch (round) {
      case 0:
        MPI_Waitany(5, requests, &index, &statuses[3]);
        CHECK_EQ(index, 3);
        break;
      case 1:
        MPI_Waitsome(5, requests, &some, indices, statuses);
        CHECK_EQ(some, 1);
        CHECK_EQ(indices[0], 3);
        statuses[3] = statuses[0];
        break;
      case 2:
        MPI_Waitall(5, requests, statuses);
        for (const int i : {0, 1, 2, 4}) CHECK(is_empty(statuses[i]));
        break;
      default:
        CHECK(eventually([&] {
          MPI_Testall(5, requests, &flag, statuses);
          return flag != 0;
        }));
        for (const int i : {0, 1, 2, 4}) CHECK(is_empty(statuses[i]));
        break;
    }
    CHECK_EQ(in, out);
    CHECK_EQ(statuses[3].MPI_SOURCE, 0);
    CHECK_EQ(statuses[3].MPI_TAG, 3);
    CHECK_EQ(count_of(statuses[3], MPI_INT), 1);
    CHECK(requests[3] == MPI_REQUEST_NULL);
    CHECK(requests[1] == inactive && requests[4] == inactive);
  }
}

}  // namespace

int main() {
  init();
  int value = 0;
  MPI_Request receive, send, other_send;
  MPI_Recv_init(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &receive);
  MPI_Send_init(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &send);
  MPI_Bsend_init(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &other_send);
  for (const MPI_Request r : {MPI_REQUEST_NULL, receive, send, other_send}) check_singles(r);
  check_arrays({});
  check_arrays({MPI_REQUEST_NULL});
  check_arrays({MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL});
  check_arrays({receive, send, other_send});
  check_arrays({MPI_REQUEST_NULL, receive, MPI_REQUEST_NULL, send, MPI_REQUEST_NULL});
  check_mix(receive);
  check_mix(send);
  for (MPI_Request* r : {&receive, &send, &other_send}) {
    MPI_Request_free(r);
    CHECK(*r == MPI_REQUEST_NULL);
  }
  return finish();
}
