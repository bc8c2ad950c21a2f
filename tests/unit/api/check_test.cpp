// The checks that stand in front of every function, and the conversions around it.
#include "mpi/check.hpp"

#include <gtest/gtest.h>

#include <climits>
#include <cstdio>
#include <memory>
#include <string>

namespace heddle {
namespace {

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING];
  error_text(code, text);
  return text;
}

std::unique_ptr<Comm> comm_of(int size, const char* name = "") {
  auto comm = std::make_unique<Comm>();
  comm->size = comm->peer_count = size;
  comm->rank = 0;
  std::snprintf(comm->name, sizeof comm->name, "%s", name);
  return comm;
}

TEST(CountArray, ReadsIntsAndCountsAlike) {
  const int small[] = {1, -2, INT_MAX};
  const MPI_Count large[] = {1, -2, MPI_Count{1} << 40};
  EXPECT_EQ(CountArray(small)[1], -2);
  EXPECT_EQ(CountArray(small)[2], INT_MAX);
  EXPECT_EQ(CountArray(large)[1], -2);
  EXPECT_EQ(CountArray(large)[2], MPI_Count{1} << 40);
  EXPECT_TRUE(CountArray(static_cast<const int*>(nullptr)).is_null());
}

TEST(Narrow, GivesUndefinedOrAnErrorForWhatDoesNotFit) {
  int out = 0;
  check::narrow_or_undefined(INT_MAX, &out);
  EXPECT_EQ(out, INT_MAX);
  check::narrow_or_undefined(MPI_Count{INT_MAX} + 1, &out);
  EXPECT_EQ(out, MPI_UNDEFINED);
  check::narrow_or_undefined(MPI_UNDEFINED, &out);
  EXPECT_EQ(out, MPI_UNDEFINED);

  out = 7;
  EXPECT_EQ(check::narrow(INT_MIN, &out, "size"), MPI_SUCCESS);
  EXPECT_EQ(out, INT_MIN);
  const int code = check::narrow(MPI_Count{INT_MIN} - 1, &out, "size");
  EXPECT_EQ(error_class(code), MPI_ERR_VALUE_TOO_LARGE);
  EXPECT_NE(text_of(code).find("_c form"), std::string::npos);
  EXPECT_EQ(out, INT_MIN) << "nothing is stored when the value does not fit";
}

TEST(Ranks, OutsideTheCommunicatorAreNamedWithItsNameAndSize) {
  const auto comm = comm_of(4, "ocean");
  for (const int good : {0, 3, int{MPI_PROC_NULL}}) {
    EXPECT_EQ(check::dest(good, *comm, "dest"), MPI_SUCCESS);
    EXPECT_EQ(check::source(good, *comm, "source"), MPI_SUCCESS);
  }
  EXPECT_EQ(check::source(MPI_ANY_SOURCE, *comm, "source"), MPI_SUCCESS);
  for (const int bad : {4, -5, INT_MIN, int{MPI_ANY_SOURCE}}) {
    const int code = check::dest(bad, *comm, "dest");
    EXPECT_EQ(error_class(code), MPI_ERR_RANK) << bad;
    EXPECT_NE(text_of(code).find("dest"), std::string::npos);
  }
  const std::string text = text_of(check::dest(17, *comm, "dest"));
  for (const char* part : {"17", "'ocean'", "of size 4", "0 to 3"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(error_class(check::rank(MPI_PROC_NULL, *comm, "rank")), MPI_ERR_RANK);
}

TEST(Ranks, OfAnIntercommunicatorAreThoseOfTheRemoteGroup) {
  const auto comm = comm_of(2);
  comm->inter = true;
  comm->remote_size = comm->peer_count = 5;
  EXPECT_EQ(check::dest(4, *comm, "dest"), MPI_SUCCESS);
  EXPECT_EQ(error_class(check::dest(5, *comm, "dest")), MPI_ERR_RANK);
  for (const int good : {0, 4, int{MPI_ROOT}, int{MPI_PROC_NULL}})
    EXPECT_EQ(check::root(good, *comm, "root"), MPI_SUCCESS) << good;
  EXPECT_EQ(error_class(check::root(5, *comm, "root")), MPI_ERR_ROOT);
}

TEST(Roots, OfAnIntracommunicatorAreItsRanks) {
  const auto comm = comm_of(2);
  EXPECT_EQ(check::root(1, *comm, "root"), MPI_SUCCESS);
  for (const int bad : {2, -1, int{MPI_ROOT}, int{MPI_PROC_NULL}})
    EXPECT_EQ(error_class(check::root(bad, *comm, "root")), MPI_ERR_ROOT) << bad;
}

TEST(Tags, AreNotNegativeAndAnyTagIsForReceivesOnly) {
  EXPECT_EQ(check::tag(INT_MAX, "tag"), MPI_SUCCESS);
  EXPECT_EQ(error_class(check::tag(-1, "tag")), MPI_ERR_TAG);
  EXPECT_EQ(error_class(check::tag(MPI_ANY_TAG, "tag")), MPI_ERR_TAG);
  EXPECT_EQ(check::rtag(MPI_ANY_TAG, "tag"), MPI_SUCCESS);
  EXPECT_EQ(error_class(check::rtag(-1, "tag")), MPI_ERR_TAG);
}

TEST(Buffers, MayBeNullOnlyWithoutDataOrWithAbsoluteAddresses) {
  Datatype& type = *resolve<Datatype>(MPI_INT);
  int value = 0;
  EXPECT_EQ(check::buffer(&value, 1, type, "buf"), MPI_SUCCESS);
  EXPECT_EQ(check::buffer(nullptr, 0, type, "buf"), MPI_SUCCESS);
  EXPECT_EQ(error_class(check::buffer(nullptr, 1, type, "buf")), MPI_ERR_BUFFER);
  Datatype absolute;
  absolute.size = 4;
  absolute.true_lb = reinterpret_cast<MPI_Aint>(&value);
  EXPECT_EQ(check::buffer(MPI_BOTTOM, 1, absolute, "buf"), MPI_SUCCESS);
  EXPECT_EQ(check::buffer(MPI_IN_PLACE, 0, type, "buf"), MPI_SUCCESS);
  const int code = check::buffer(MPI_IN_PLACE, 1, type, "buf");
  EXPECT_EQ(error_class(code), MPI_ERR_BUFFER);
  EXPECT_NE(text_of(code).find("buf is MPI_IN_PLACE"), std::string::npos) << text_of(code);
}

TEST(Handles, ThatAreNotWhatTheyShouldBeAreRefusedByName) {
  const std::string null = text_of(check::bad_info(MPI_INFO_NULL, "info"));
  EXPECT_NE(null.find("MPI_INFO_NULL"), std::string::npos) << null;
  EXPECT_EQ(error_class(check::bad_comm(MPI_COMM_NULL, "comm")), MPI_ERR_COMM);
  EXPECT_EQ(error_class(check::bad_type(MPI_DATATYPE_NULL, "datatype")), MPI_ERR_TYPE);
  EXPECT_EQ(error_class(check::bad_op(MPI_OP_NULL, "op")), MPI_ERR_OP);
  EXPECT_EQ(error_class(check::bad_group(MPI_GROUP_NULL, "group")), MPI_ERR_GROUP);
  EXPECT_EQ(error_class(check::bad_errhandler(MPI_ERRHANDLER_NULL, "errhandler")), MPI_ERR_ERRHANDLER);
  EXPECT_EQ(error_class(check::bad_session(MPI_SESSION_NULL, "session")), MPI_ERR_SESSION);
}

TEST(Significance, FollowsTheRootAndInPlace) {
  const auto comm = comm_of(3);
  int buffer = 0;
  EXPECT_TRUE(check::at_root(0, *comm));
  EXPECT_FALSE(check::at_root(1, *comm));
  EXPECT_TRUE(check::at_leaf(&buffer, 0, *comm));
  EXPECT_FALSE(check::at_leaf(MPI_IN_PLACE, 0, *comm));
  comm->inter = true;
  comm->remote_size = 1;
  EXPECT_TRUE(check::at_root(MPI_ROOT, *comm));
  EXPECT_FALSE(check::at_root(0, *comm));
  EXPECT_TRUE(check::at_leaf(&buffer, 0, *comm));
  EXPECT_FALSE(check::at_leaf(&buffer, MPI_PROC_NULL, *comm));
}

// --- through the C functions: those that need no MPI_Init ------------------------------------------------------------
TEST(FastTests, AgreeWithTheChecksThatExplain) {
  // Whatever the fast test lets through must be right by the checks in full; the reverse only costs time.
  const auto comm = comm_of(2);
  for (const int rank : {INT_MIN, -4, -3, -2, -1, 0, 1, 2, INT_MAX}) {
    if (check::is_dest(rank, *comm)) { EXPECT_EQ(check::dest(rank, *comm, "dest"), MPI_SUCCESS) << rank; }
    if (check::is_source(rank, *comm)) { EXPECT_EQ(check::source(rank, *comm, "source"), MPI_SUCCESS) << rank; }
    if (check::is_tag(rank)) { EXPECT_EQ(check::tag(rank, "tag"), MPI_SUCCESS) << rank; }
    if (check::is_rtag(rank)) { EXPECT_EQ(check::rtag(rank, "tag"), MPI_SUCCESS) << rank; }
    const void* place = reinterpret_cast<const void*>(static_cast<std::intptr_t>(rank));
    Datatype& type = *resolve<Datatype>(MPI_INT);
    if (check::is_buffer(place, 1, type)) { EXPECT_EQ(check::buffer(place, 1, type, "buf"), MPI_SUCCESS) << rank; }
    if (check::is_count(rank)) { EXPECT_EQ(check::count(rank, "count"), MPI_SUCCESS) << rank; }
  }
}

TEST(Integers, StandForHandlesAndBack) {
  EXPECT_EQ(MPI_Comm_toint(MPI_COMM_WORLD), 0x101);
  EXPECT_EQ(MPI_Comm_fromint(0x101), MPI_COMM_WORLD);
  EXPECT_EQ(MPI_Type_fromint(MPI_Type_toint(MPI_UINT64_T)), MPI_UINT64_T);
  EXPECT_EQ(MPI_Win_fromint(MPI_Win_toint(MPI_WIN_NULL)), MPI_WIN_NULL);
  MPI_Info info = MPI_INFO_NULL;
  ASSERT_EQ(MPI_Info_create(&info), MPI_SUCCESS);
  const int number = MPI_Info_toint(info);
  EXPECT_GE(number, 4096);
  EXPECT_EQ(MPI_Info_fromint(number), info);
  ASSERT_EQ(MPI_Info_free(&info), MPI_SUCCESS);
  EXPECT_EQ(MPI_Info_fromint(number), MPI_INFO_NULL) << "the object is gone";
  EXPECT_EQ(MPI_Info_fromint(INT_MAX), MPI_INFO_NULL);
  EXPECT_EQ(MPI_Info_fromint(-1), MPI_INFO_NULL);
}

TEST(Abi, IsVersionOneAndDescribesItsIntegers) {
  int major = 0, minor = -1, flag = 0, length = 8;
  ASSERT_EQ(MPI_Abi_get_version(&major, &minor), MPI_SUCCESS);
  EXPECT_EQ(major, 1);
  EXPECT_EQ(minor, 0);
  MPI_Info info = MPI_INFO_NULL;
  ASSERT_EQ(MPI_Abi_get_info(&info), MPI_SUCCESS);
  for (const char* key : {"mpi_aint_size", "mpi_count_size", "mpi_offset_size"}) {
    char value[8] = "";
    ASSERT_EQ(MPI_Info_get_string(info, key, &(length = sizeof value), value, &flag), MPI_SUCCESS);
    EXPECT_TRUE(flag) << key;
    EXPECT_STREQ(value, "8") << key;
  }
  ASSERT_EQ(MPI_Info_free(&info), MPI_SUCCESS);
}

TEST(Abi, FortranInfoSaysWhatTheLibrarySupports) {
  MPI_Info info = MPI_INFO_NULL;
  ASSERT_EQ(MPI_Abi_get_fortran_info(&info), MPI_SUCCESS);
  ASSERT_NE(info, MPI_INFO_NULL);
  const std::pair<const char*, const char*> expected[] = {
      {"mpi_logical_size", "4"},          {"mpi_integer_size", "4"},        {"mpi_real_size", "4"},
      {"mpi_double_precision_size", "8"}, {"mpi_integer8_supported", "true"}, {"mpi_double_complex_supported", "true"}};
  for (const auto& [key, wanted] : expected) {
    char value[8] = "";
    int length = sizeof value, flag = 0;
    ASSERT_EQ(MPI_Info_get_string(info, key, &length, value, &flag), MPI_SUCCESS);
    EXPECT_TRUE(flag) << key;
    EXPECT_STREQ(value, wanted) << key;
  }
  ASSERT_EQ(MPI_Info_free(&info), MPI_SUCCESS);
}

TEST(Abi, FortranBooleansAreOneAndZeroUntilTheyAreSet) {
  const std::int32_t truth = -1, falsehood = 0;
  std::int32_t t = 5, f = 5;
  std::int8_t t1 = 5, f1 = 5;
  int is_set = 0;
  ASSERT_EQ(MPI_Abi_get_fortran_booleans(4, &t, &f, &is_set), MPI_SUCCESS);
  EXPECT_TRUE(is_set);
  EXPECT_EQ(t, 1);
  EXPECT_EQ(f, 0);
  ASSERT_EQ(MPI_Abi_get_fortran_booleans(1, &t1, &f1, &is_set), MPI_SUCCESS);
  EXPECT_EQ(t1, 1);
  EXPECT_EQ(f1, 0);
  ASSERT_EQ(MPI_Abi_set_fortran_booleans(4, const_cast<std::int32_t*>(&truth), const_cast<std::int32_t*>(&falsehood)),
            MPI_SUCCESS);
  ASSERT_EQ(MPI_Abi_get_fortran_booleans(4, &t, &f, &is_set), MPI_SUCCESS);
  EXPECT_TRUE(is_set);
  EXPECT_EQ(t, -1);
  EXPECT_EQ(f, 0);
}

TEST(Statuses, RememberElementsSetInThem) {
  MPI_Status status{};
  MPI_Count elements = 0;
  ASSERT_EQ(MPI_Status_set_elements_c(&status, MPI_DOUBLE, MPI_Count{1} << 33), MPI_SUCCESS);
  ASSERT_EQ(MPI_Get_elements_c(&status, MPI_DOUBLE, &elements), MPI_SUCCESS);
  EXPECT_EQ(elements, MPI_Count{1} << 33);
  int small = 0;
  ASSERT_EQ(MPI_Get_elements(&status, MPI_DOUBLE, &small), MPI_SUCCESS);
  EXPECT_EQ(small, MPI_UNDEFINED) << "does not fit an int";
  ASSERT_EQ(MPI_Status_set_elements(&status, MPI_DOUBLE_INT, 3), MPI_SUCCESS);
  ASSERT_EQ(MPI_Get_elements(&status, MPI_DOUBLE_INT, &small), MPI_SUCCESS);
  EXPECT_EQ(small, 3) << "one pair and half of another";
}

}  // namespace
}  // namespace heddle
