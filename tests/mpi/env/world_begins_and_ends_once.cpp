// ranks: 1 2 4
// timeout: 30
// What is promised before MPI_Init, between, and after MPI_Finalize; attribute deletion on MPI_COMM_SELF at the start of
// MPI_Finalize; messages sent before MPI_Finalize and received meanwhile arrive.
#include <string>

#include "../support.hpp"

using namespace test;

namespace {

void flags(int initialized, int finalized) {
  int flag = -1;
  CHECK_OK(MPI_Initialized(&flag));
  CHECK_EQ(flag, initialized);
  CHECK_OK(MPI_Finalized(&flag));
  CHECK_EQ(flag, finalized);
}

// Callable at any time.
void inquiries() {
  int version = 0, subversion = 0, length = 0;
  CHECK_OK(MPI_Get_version(&version, &subversion));
  CHECK(version >= 5 || (version == 4 && subversion >= 1) || !library_is_heddle());
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  CHECK_OK(MPI_Get_library_version(text, &length));
  CHECK_EQ(length, std::strlen(text));
  CHECK(length > 0);
  int major = 0, minor = -1;
  CHECK_OK(MPI_Abi_get_version(&major, &minor));
  CHECK_EQ(major, 1);
  CHECK_EQ(minor, 0);
  MPI_Info info = MPI_INFO_NULL;
  char value[8];
  int found = 0, room = sizeof value;
  CHECK_OK(MPI_Info_create(&info));
  CHECK_OK(MPI_Info_set(info, "loom", "ok"));
  CHECK_OK(MPI_Info_get_string(info, "loom", &room, value, &found));
  CHECK_EQ(found, 1);
  CHECK_STR(value, "ok");
  CHECK_OK(MPI_Info_free(&info));
}

int deletions = 0;
int on_delete(MPI_Comm, int, void* value, void*) {
  int flag = -1;
  MPI_Finalized(&flag);
  CHECK_EQ(flag, 0);  // MPI is still there for the callback
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  CHECK_EQ(*static_cast<int*>(value), rank * 10 + (2 - deletions));  // last attached, first deleted
  ++deletions;
  return MPI_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  flags(0, 0);
  inquiries();
  CHECK_OK(MPI_Init(&argc, &argv));
  CHECK_EQ(argc, 1);
  flags(1, 0);
  inquiries();
  const World w = world();
  CHECK(w.rank >= 0 && w.rank < w.size);
  int one = 0, zero = -1;
  MPI_Comm_size(MPI_COMM_SELF, &one);
  MPI_Comm_rank(MPI_COMM_SELF, &zero);
  CHECK_EQ(one, 1);
  CHECK_EQ(zero, 0);

  char name[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  CHECK_OK(MPI_Get_processor_name(name, &length));
  CHECK_EQ(length, std::strlen(name));
  CHECK(length > 0);

  const double start = MPI_Wtime(), tick = MPI_Wtick();
  CHECK(tick > 0 && tick < 1e-3);
  double now = start;
  for (int i = 0; i < 100'000; ++i) {
    const double next = MPI_Wtime();
    CHECK(next >= now);
    now = next;
  }
  CHECK(now > start && now - start < 60);

  int* value = nullptr;
  int flag = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
  CHECK_EQ(flag, 1);
  CHECK(*value >= 32767);
  int token = 5, got = 0;
  MPI_Sendrecv(&token, 1, MPI_INT, w.rank, *value, &got, 1, MPI_INT, w.rank, *value, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQ(got, 5);  // the largest tag works
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag);
  CHECK_EQ(flag, 1);
  CHECK(*value == 0 || *value == 1);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag);
  if (flag) CHECK_EQ(*value, 0);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag);
  if (flag) CHECK(*value >= w.size);

  // Finalize delivers: the last messages are sent and received on the way out.
  std::vector<int> large(300'000, w.rank);
  std::vector<char> space(sizeof(int) * large.size() + MPI_BSEND_OVERHEAD);
  MPI_Request request;
  if (w.size > 1) {
    if (w.rank % 2 == 0 && w.rank + 1 < w.size) {
      MPI_Isend(large.data(), 300'000, MPI_INT, w.rank + 1, 1, MPI_COMM_WORLD, &request);
      MPI_Request_free(&request);
      MPI_Buffer_attach(space.data(), static_cast<int>(space.size()));
      MPI_Bsend(large.data(), 300'000, MPI_INT, w.rank + 1, 2, MPI_COMM_WORLD);
    } else if (w.rank % 2) {
      for (int tag = 1; tag <= 2; ++tag) {
        large.assign(large.size(), -1);
        MPI_Recv(large.data(), 300'000, MPI_INT, w.rank - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQ(large[299'999], w.rank - 1);
      }
    }
  }

  int keys[3], values[3];
  for (int i = 0; i < 3; ++i) {
    values[i] = w.rank * 10 + i;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &keys[i], nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, keys[i], &values[i]);
  }
  CHECK_OK(MPI_Finalize());
  CHECK_EQ(deletions, 3);
  flags(1, 1);
  inquiries();
  return 0;
}
