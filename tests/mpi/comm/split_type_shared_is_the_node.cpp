// ranks: 1 2 4
// timeout: 60
// MPI_COMM_TYPE_SHARED gives the ranks of a node, ordered by key; who says MPI_UNDEFINED
// gets nothing, in every kind of split; resources nobody knows give nothing; an unguided split is a strict part or
// nothing.
#include "../support.hpp"

#include <algorithm>
#include <string_view>

using namespace test;

namespace {

MPI_Comm guided(int type, const char* key, const char* value, int rank) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, key, value);
  MPI_Comm comm = MPI_COMM_NULL;
  CHECK_OK(MPI_Comm_split_type(MPI_COMM_WORLD, type, rank, info, &comm));
  MPI_Info_free(&info);
  return comm;
}

int size_of(MPI_Comm comm) {
  int size = -1;
  MPI_Comm_size(comm, &size);
  return size;
}

// One, unless the ranks are endpoints. `here`: the ranks of this host, for processes of two hosts may have the same
// number.
int ranks_of_this_process(const World& w, const std::vector<int>& here) {
  const int own = getpid();
  std::vector<int> all(static_cast<std::size_t>(w.size));
  MPI_Allgather(&own, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
  return static_cast<int>(
      std::count_if(here.begin(), here.end(), [&](int r) { return all[static_cast<std::size_t>(r)] == own; }));
}

/// The ranks on this host, by its name.
std::vector<int> ranks_of_this_host(const World& w) {
  std::vector<char> own(MPI_MAX_PROCESSOR_NAME), all(own.size() * static_cast<std::size_t>(w.size));
  int length = 0;
  MPI_Get_processor_name(own.data(), &length);
  MPI_Allgather(own.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, all.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR,
                MPI_COMM_WORLD);
  std::vector<int> here;
  for (int r = 0; r < w.size; ++r)
    if (std::string_view(all.data() + static_cast<std::size_t>(r) * own.size()) == own.data()) here.push_back(r);
  return here;
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm comm;
  int rank = -1;
  const std::vector<int> here = ranks_of_this_host(w);
  const int local = static_cast<int>(here.size());
  const int place = static_cast<int>(std::find(here.begin(), here.end(), w.rank) - here.begin());
  CHECK_OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -w.rank, MPI_INFO_NULL, &comm));
  CHECK_EQ(size_of(comm), local);
  MPI_Comm_rank(comm, &rank);
  CHECK_EQ(rank, local - 1 - place);
  MPI_Comm_free(&comm);

  for (const int type : {MPI_COMM_TYPE_SHARED, MPI_COMM_TYPE_HW_UNGUIDED}) {
    const bool out = w.size > 1 && w.rank == w.size - 1;
    CHECK_OK(MPI_Comm_split_type(MPI_COMM_WORLD, out ? MPI_UNDEFINED : type, w.rank, MPI_INFO_NULL, &comm));
    if (out) CHECK(comm == MPI_COMM_NULL);
    if (!out && type == MPI_COMM_TYPE_SHARED)
      CHECK_EQ(size_of(comm), w.size > 1 && here.back() == w.size - 1 ? local - 1 : local);
    if (!out && type == MPI_COMM_TYPE_HW_UNGUIDED && comm != MPI_COMM_NULL) CHECK_LT(size_of(comm), w.size);
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  }

  // The hints of its info are the communicator's, as with every function that takes an info.
  comm = guided(MPI_COMM_TYPE_SHARED, "mpi_assert_no_any_tag", "true", w.rank);
  MPI_Info hints;
  char value[8] = "";
  int length = sizeof value, flag = 0;
  CHECK_OK(MPI_Comm_get_info(comm, &hints));
  CHECK_OK(MPI_Info_get_string(hints, "mpi_assert_no_any_tag", &length, value, &flag));
  CHECK(flag && std::string_view(value) == "true");
  MPI_Info_free(&hints);
  MPI_Comm_free(&comm);

  comm = guided(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "mpi_shared_memory", w.rank);
  CHECK(comm != MPI_COMM_NULL);
  CHECK_EQ(size_of(comm), local);
  MPI_Comm_free(&comm);
  comm = guided(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "no_such_resource", w.rank);
  CHECK(comm == MPI_COMM_NULL);
  if (!library_is_mpich()) {
    comm = guided(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://SELF", w.rank);
    CHECK_EQ(size_of(comm), ranks_of_this_process(w, here));
    MPI_Comm_free(&comm);
    comm = guided(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://WORLD", w.rank);
    CHECK_EQ(size_of(comm), w.size);
    MPI_Comm_free(&comm);
    comm = guided(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://NOWHERE", w.rank);
    CHECK(comm == MPI_COMM_NULL);
  }
  if (w.size == 1) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Comm_split_type(MPI_COMM_WORLD, 12345, 0, MPI_INFO_NULL, &comm), MPI_ERR_ARG);
  }
  return finish();
}
