// ranks: 1 2
// env: HEDDLE_SHOW_VCIS=1 HEDDLE_VCIS=8
// endpoints: none (reads what its own process says)
// With HEDDLE_SHOW_VCIS, one line for each communicator that the program gets, whichever function made it, and the line tells what the
// communicator ended up with: the VCI that a hint chose, that of a stream, the spread by source and tag.
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "../threads/team.hpp"

#include <mpix.h>

using namespace test;

namespace {

/// What this process writes to its standard error stream, from now until `said`.
class Captured {
 public:
  Captured() : file_(memfd_create("stderr", 0)), before_(dup(STDERR_FILENO)) { dup2(file_, STDERR_FILENO); }
  /// The lines; the stream is what it was before.
  std::vector<std::string> said() {
    dup2(before_, STDERR_FILENO);
    std::vector<std::string> lines(1);
    char c;
    for (off_t at = 0; pread(file_, &c, 1, at) == 1; ++at) {
      if (c == '\n') lines.emplace_back();
      else lines.back() += c;
    }
    lines.pop_back();
    close(file_);
    close(before_);
    return lines;
  }

 private:
  int file_, before_;
};

/// Checks that `lines` are about `wanted` communicators, each named once. Returns the last one.
std::string expect(std::vector<std::string> lines, std::size_t wanted) {
  std::map<std::string, int> times;
  for (const std::string& line : lines) {
    const std::size_t at = line.find("communicator ");
    if (at == std::string::npos) continue;
    // Endpoints of a communicator share its name; each is one rank.
    const std::size_t end = line.find(')', at);
    CHECK_EQ(++times[line.substr(at, end - at)], 1);
  }
  CHECK_EQ(times.size(), wanted);
  return lines.empty() ? "" : lines.back();
}

bool has(const std::string& line, const char* words) { return line.find(words) != std::string::npos; }

MPI_Info info_of(const char* key, const char* value) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, key, value);
  return info;
}

/// One communicator made by `make` is said once.
template <typename Make>
std::string made_by(Make&& make, std::size_t wanted = 1) {
  MPI_Comm comm = MPI_COMM_NULL;
  Captured err;
  make(&comm);
  const std::string line = expect(err.said(), wanted);
  if (comm != MPI_COMM_NULL) CHECK_OK(MPI_Comm_free(&comm));
  return line;
}

}  // namespace

int main() {
  Captured start;
  const World w = init_threads();
  const std::vector<std::string> first = start.said();
  expect(first, 2);  // MPI_COMM_WORLD and MPI_COMM_SELF
  CHECK(has(first[0], "MPI_COMM_WORLD"));
  CHECK(has(first[1], "MPI_COMM_SELF"));

  const MPI_Comm world = MPI_COMM_WORLD;
  made_by([&](MPI_Comm* out) { MPI_Comm_dup(world, out); });
  made_by([&](MPI_Comm* out) { MPI_Comm_split(world, 0, w.rank, out); });
  made_by([&](MPI_Comm* out) { MPI_Comm_split(world, MPI_UNDEFINED, 0, out); }, 0);
  const int dims[] = {w.size}, periods[] = {0};
  made_by([&](MPI_Comm* out) { MPI_Cart_create(world, 1, dims, periods, 0, out); });
  MPI_Group group;
  MPI_Comm_group(world, &group);
  made_by([&](MPI_Comm* out) { MPI_Comm_create(world, group, out); });
  made_by([&](MPI_Comm* out) { MPI_Comm_create_group(world, group, 7, out); });
  made_by([&](MPI_Comm* out) { MPI_Comm_create_from_group(group, "shown", MPI_INFO_NULL, MPI_ERRORS_RETURN, out); });
  MPI_Group_free(&group);
  const auto idup = [&](MPI_Info info) {
    return made_by([&](MPI_Comm* out) {
      MPI_Request request;
      if (info == MPI_INFO_NULL) MPI_Comm_idup(world, out, &request);
      else MPI_Comm_idup_with_info(world, info, out, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
  };
  idup(MPI_INFO_NULL);

  // What hints chose, the same for all and different.
  MPI_Info info = info_of("vci", "5");
  std::string line = made_by([&](MPI_Comm* out) { MPI_Comm_dup_with_info(world, info, out); });
  CHECK(has(line, "VCI 5 of 8"));
  CHECK(has(line, "from the hints"));
  CHECK(has(idup(info), "VCI 5 of 8"));
  MPI_Info_free(&info);
  info = info_of("vci", w.rank ? "6" : "7");
  line = made_by([&](MPI_Comm* out) { MPI_Comm_dup_with_info(world, info, out); });
  CHECK(has(line, w.rank ? "VCI 6 of 8" : "VCI 7 of 8"));
  MPI_Info_free(&info);
  info = info_of("mpi_assert_no_any_tag", "true");
  MPI_Info_set(info, "mpi_assert_no_any_source", "true");
  CHECK(has(made_by([&](MPI_Comm* out) { MPI_Comm_dup_with_info(world, info, out); }), "messages spread"));
  MPI_Info_free(&info);

  // Streams, on the first rank only; endpoints; an intercommunicator.
  MPIX_Stream stream = MPIX_STREAM_NULL;
  if (w.rank == 0) CHECK_OK(MPIX_Stream_create(MPI_INFO_NULL, &stream));
  line = made_by([&](MPI_Comm* out) { MPIX_Stream_comm_create(world, stream, out); });
  CHECK(has(line, w.rank == 0 ? "that of its stream" : "no stream"));
  if (w.rank == 0) CHECK_OK(MPIX_Stream_free(&stream));
  MPI_Comm endpoints[2];
  made_by([&](MPI_Comm*) { MPIX_Comm_create_endpoints(world, 2, MPI_INFO_NULL, endpoints); }, 2);
  run_threads(2, [&](int t) { CHECK_OK(MPI_Comm_free(&endpoints[t])); });
  if (w.size == 2) {
    made_by([&](MPI_Comm* out) { MPI_Intercomm_create(MPI_COMM_SELF, 0, world, 1 - w.rank, 3, out); });
  }
  return finish();
}
