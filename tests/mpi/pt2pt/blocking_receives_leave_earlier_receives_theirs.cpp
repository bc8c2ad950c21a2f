// ranks: 2
// timeout: 60
// A blocking receive may take its message straight from where it arrives. It still gets only what no earlier receive matches, and
// the earliest of that: for every combination of wildcards in both, with the messages there before the call or coming during it,
// and with other messages before them.
#include "../support.hpp"

using namespace test;

namespace {

constexpr int tag = 5, other_tag = 6, go_tag = 7;

struct Form {
  int source, tag;
};
constexpr Form forms[] = {{0, tag}, {MPI_ANY_SOURCE, tag}, {0, MPI_ANY_TAG}, {MPI_ANY_SOURCE, MPI_ANY_TAG}};

enum Order { before, during, behind_another, orders };

// Sends first, second with one tag; in between, or before both, one of another tag that only a receive after them takes.
void send(MPI_Comm comm, MPI_Comm control, Order order) {
  int values[] = {1, 2, 3}, go;
  MPI_Recv(&go, 1, MPI_INT, 1, go_tag, control, MPI_STATUS_IGNORE);
  if (order == behind_another) MPI_Send(&values[2], 1, MPI_INT, 1, other_tag, comm);
  MPI_Send(&values[0], 1, MPI_INT, 1, tag, comm);
  MPI_Send(&values[1], 1, MPI_INT, 1, tag, comm);
  if (order != behind_another) MPI_Send(&values[2], 1, MPI_INT, 1, other_tag, comm);
  MPI_Barrier(control);
}

void receive(MPI_Comm comm, MPI_Comm control, Form early, Form late, Order order) {
  int first = 0, second = 0, third = 0, go = 0;
  MPI_Request request;
  MPI_Irecv(&first, 1, MPI_INT, early.source, early.tag, comm, &request);
  MPI_Send(&go, 1, MPI_INT, 0, go_tag, control);
  if (order == before) MPI_Barrier(control);
  MPI_Status status = dirty_status();
  MPI_Recv(&second, 1, MPI_INT, late.source, late.tag, comm, &status);
  MPI_Recv(&third, 1, MPI_INT, 0, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (order != before) MPI_Barrier(control);
  // The order of matching is that of the standard: the earlier receive gets the first message that it matches.
  const bool other_first = order == behind_another;
  int sent[] = {other_first ? 3 : 1, other_first ? 1 : 2, other_first ? 2 : 3};
  const auto matches = [](Form form, int value) { return form.tag == MPI_ANY_TAG || value != 3; };
  int expected[3] = {};
  bool taken[3] = {};
  for (int r = 0; r < 3; ++r)
    for (int m = 0; m < 3 && !expected[r]; ++m)
      if (!taken[m] && (r == 2 || matches(r ? late : early, sent[m]))) taken[m] = true, expected[r] = sent[m];
  CHECK_EQ(first, expected[0]);
  CHECK_EQ(second, expected[1]);
  CHECK_EQ(third, expected[2]);
  CHECK_EQ(status.MPI_SOURCE, 0);
  CHECK_EQ(status.MPI_TAG, expected[1] == 3 ? other_tag : tag);
  CHECK_EQ(count_of(status, MPI_INT), 1);
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm comm, control;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &control);
  for (int round = 0; round < 20; ++round)
    for (Form early : forms)
      for (Form late : forms)
        for (int order = 0; order < orders; ++order) {
          if (w.rank == 0) send(comm, control, static_cast<Order>(order));
          else receive(comm, control, early, late, static_cast<Order>(order));
        }
  MPI_Comm_free(&comm);
  MPI_Comm_free(&control);
  return finish();
}
