// ranks: 1 2 3
// env: HEDDLE_VCIS=5
// timeout: 120
// Communicators made with every combination of the hints that choose VCIs (no wildcards, overtaking allowed, vci, sender_vci,
// receiver_vci, inherit_vci), the same or different at each rank: all kinds of messages of several threads arrive, in order for each
// source and tag, also after a duplicate of the duplicate. A wildcard that the hints exclude is an error that names the hint.
#include "team.hpp"

using namespace test;

namespace {

constexpr int threads = 3;

MPI_Info info_of(std::initializer_list<std::pair<const char*, std::string>> entries) {
  MPI_Info info;
  MPI_Info_create(&info);
  for (const auto& [key, value] : entries) MPI_Info_set(info, key, value.c_str());
  return info;
}

void exchange(const World& w, MPI_Comm comm, int t) {
  const int to = (w.rank + 1) % w.size, from = (w.rank + w.size - 1) % w.size, tag = 10 * t;
  for (int round = 0; round < 60; ++round) {
    const std::size_t n = round % 7 == 6 ? 70'000 : static_cast<std::size_t>(round * 17);
    const auto seed = [&](int rank) { return static_cast<std::uint64_t>(rank * 1000 + t * 100 + round); };
    std::vector<unsigned char> out(n + 1), in(n + 1);
    fill(out.data(), n, seed(w.rank));
    const int count = static_cast<int>(n);
    MPI_Request requests[2];
    MPI_Status status;
    switch (round % 6) {
      case 0:
        MPI_Irecv(in.data(), count, MPI_BYTE, from, tag, comm, &requests[0]);
        MPI_Isend(out.data(), count, MPI_BYTE, to, tag, comm, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        break;
      case 1:
        MPI_Isendrecv(out.data(), count, MPI_BYTE, to, tag + 1, in.data(), count, MPI_BYTE, from, tag + 1, comm, requests);
        MPI_Wait(requests, &status);
        CHECK_EQ(status.MPI_SOURCE, from);
        break;
      case 2:
        MPI_Send_init(out.data(), count, MPI_BYTE, to, tag + 2, comm, &requests[0]);
        MPI_Recv_init(in.data(), count, MPI_BYTE, from, tag + 2, comm, &requests[1]);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
        break;
      case 3:
        MPI_Issend(out.data(), count, MPI_BYTE, to, tag + 3, comm, &requests[0]);
        MPI_Probe(from, tag + 3, comm, &status);
        MPI_Recv(in.data(), count, MPI_BYTE, from, tag + 3, comm, MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        break;
      case 4: {
        MPI_Message message;
        MPI_Isend(out.data(), count, MPI_BYTE, to, tag + 4, comm, &requests[0]);
        MPI_Mprobe(from, tag + 4, comm, &message, &status);
        MPI_Mrecv(in.data(), count, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        break;
      }
      case 5: MPI_Sendrecv(out.data(), count, MPI_BYTE, to, tag + 5, in.data(), count, MPI_BYTE, from, tag + 5, comm, &status); break;
    }
    CHECK_FILLED(in.data(), n, seed(from));
  }
  // In order for one source and tag.
  int numbers[100];
  MPI_Request sends[100];
  for (int i = 0; i < 100; ++i) {
    numbers[i] = i;
    MPI_Isend(&numbers[i], 1, MPI_INT, to, tag + 6, comm, &sends[i]);
  }
  for (int i = 0; i < 100; ++i) {
    int value = -1;
    MPI_Recv(&value, 1, MPI_INT, from, tag + 6, comm, MPI_STATUS_IGNORE);
    CHECK_EQ(value, i);
  }
  MPI_Waitall(100, sends, MPI_STATUSES_IGNORE);
}

void use(const World& w, MPI_Comm comm) {
  run_threads(threads, [&](int t) { exchange(w, comm, t); });
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK_EQ(sum, w.size);
}

}  // namespace

int main() {
  const World w = init_threads();
  const std::string mine = std::to_string(w.rank + 1);
  const std::pair<const char*, std::string> no_tag{"mpi_assert_no_any_tag", "true"}, no_source{"mpi_assert_no_any_source", "true"},
      overtaking{"mpi_assert_allow_overtaking", "true"};
  MPI_Info infos[] = {
      MPI_INFO_NULL,
      info_of({no_tag, no_source}),
      info_of({no_tag}),
      info_of({{"vci", "3"}}),
      info_of({{"vci", mine}}),
      info_of({{"receiver_vci", mine}, {"sender_vci", "70"}}),
      info_of({no_tag, no_source, {"vci", mine}}),
      info_of({{"vci", "not a number"}}),
      w.rank == 0 ? info_of({no_tag, no_source, {"vci", "2"}}) : MPI_INFO_NULL,  // not what all want
  };
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (MPI_Info info : infos) {
    MPI_Comm comm, again, later;
    MPI_Request request;
    CHECK_OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    use(w, comm);
    MPI_Info inherit = info_of({{"inherit_vci", "true"}});
    CHECK_OK(MPI_Comm_dup_with_info(comm, inherit, &again));
    use(w, again);
    CHECK_OK(MPI_Comm_idup_with_info(comm, info, &later, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    use(w, later);
    MPI_Info_free(&inherit);
    // The same without a parent.
    MPI_Comm alone;
    CHECK_OK(MPI_Comm_create_from_group(world, "of a group", info, MPI_ERRORS_RETURN, &alone));
    use(w, alone);
    for (MPI_Comm made : {comm, alone}) {
      int flag = 0;
      MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
      const bool spread = info == infos[1] || info == infos[6] || (w.size == 1 && info == infos[8]);
      CHECK_CLASS(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, made, &flag, MPI_STATUS_IGNORE), spread ? MPI_ERR_RANK : MPI_SUCCESS);
    }
    for (MPI_Comm* made : {&comm, &again, &later, &alone}) MPI_Comm_free(made);
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  }
  MPI_Group_free(&world);
  // Overtaking allowed: everything arrives, in whatever order.
  MPI_Info free_order = info_of({overtaking, no_tag, no_source});
  MPI_Comm comm;
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, free_order, &comm);
  run_threads(threads, [&](int t) {
    long sum = 0;
    std::vector<long> in(200), out(200);
    std::vector<MPI_Request> requests(400);
    for (int i = 0; i < 200; ++i) {
      out[static_cast<std::size_t>(i)] = i;
      MPI_Irecv(&in[static_cast<std::size_t>(i)], 1, MPI_LONG, (w.rank + 1) % w.size, t, comm, &requests[static_cast<std::size_t>(2 * i)]);
      MPI_Isend(&out[static_cast<std::size_t>(i)], 1, MPI_LONG, (w.rank + w.size - 1) % w.size, t, comm, &requests[static_cast<std::size_t>(2 * i + 1)]);
    }
    MPI_Waitall(400, requests.data(), MPI_STATUSES_IGNORE);
    for (const long value : in) sum += value;
    CHECK_EQ(sum, 199L * 200 / 2);
  });
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int value = 0, flag = 0;
  CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, 0, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE), MPI_ERR_TAG);
  MPI_Request request;
  CHECK_CLASS(MPI_Recv_init(&value, 1, MPI_INT, 0, MPI_ANY_TAG, comm, &request), MPI_ERR_TAG);
  CHECK_CLASS(MPI_Iprobe(0, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE), MPI_ERR_TAG);
  MPI_Comm_free(&comm);
  MPI_Info_free(&free_order);
  return finish();
}
