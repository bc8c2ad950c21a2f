// The tool information interface: parameters are control variables, everything else is properly empty.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstring>
#include <string>
#include <vector>

namespace {

class Tool : public ::testing::Test {
 protected:
  void SetUp() override {
    int provided = 0;
    ASSERT_EQ(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided), MPI_SUCCESS);
    ASSERT_EQ(provided, MPI_THREAD_MULTIPLE);
  }
  void TearDown() override { ASSERT_EQ(MPI_T_finalize(), MPI_SUCCESS); }
};

TEST(ToolLife, NothingWorksOutsideOfIt) {
  int n = 0;
  EXPECT_EQ(MPI_T_cvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
  EXPECT_EQ(MPI_T_pvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
  EXPECT_EQ(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
}

TEST_F(Tool, EveryVariableIsFoundByItsNameAndCanBeRead) {
  int count = 0;
  ASSERT_EQ(MPI_T_cvar_get_num(&count), MPI_SUCCESS);
  ASSERT_GT(count, 0);
  for (int i = 0; i < count; ++i) {
    int name_length = 0, help_length = 0, bind = 0, scope = 0, verbosity = 0, index = -1, elements = 0;
    ASSERT_EQ(MPI_T_cvar_get_info(i, nullptr, &name_length, nullptr, nullptr, nullptr, nullptr, &help_length, nullptr, nullptr),
              MPI_SUCCESS);
    std::string name(static_cast<std::size_t>(name_length), '?'), help(static_cast<std::size_t>(help_length), '?');
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum values = MPI_T_ENUM_NULL;
    ASSERT_EQ(MPI_T_cvar_get_info(i, name.data(), &name_length, &verbosity, &type, &values, help.data(), &help_length, &bind,
                                  &scope),
              MPI_SUCCESS);
    EXPECT_EQ(std::strlen(name.c_str()) + 1, static_cast<std::size_t>(name_length));
    EXPECT_EQ(name.rfind("HEDDLE_", 0), 0u) << name;
    EXPECT_GT(help_length, 1) << name << " has no help";
    ASSERT_EQ(MPI_T_cvar_get_index(name.c_str(), &index), MPI_SUCCESS);
    EXPECT_EQ(index, i);
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    ASSERT_EQ(MPI_T_cvar_handle_alloc(i, nullptr, &handle, &elements), MPI_SUCCESS);
    ASSERT_GT(elements, 0);
    std::vector<char> value(static_cast<std::size_t>(elements) * 8);
    EXPECT_EQ(MPI_T_cvar_read(handle, value.data()), MPI_SUCCESS);
    EXPECT_EQ(MPI_T_cvar_handle_free(&handle), MPI_SUCCESS);
    EXPECT_EQ(handle, MPI_T_CVAR_HANDLE_NULL);
  }
  EXPECT_EQ(MPI_T_cvar_get_info(count, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
            MPI_T_ERR_INVALID_INDEX);
}

TEST_F(Tool, LimitsOfAlgorithmsAreToBeSetAlikeOnAllRanks) {
  const auto scope_of = [](const char* name) {
    int index = -1, scope = -1;
    EXPECT_EQ(MPI_T_cvar_get_index(name, &index), MPI_SUCCESS) << name;
    EXPECT_EQ(MPI_T_cvar_get_info(index, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &scope),
              MPI_SUCCESS);
    return scope;
  };
  for (const char* name : {"HEDDLE_BCAST_TREE_LIMIT", "HEDDLE_BCAST_SEGMENT", "HEDDLE_ALLREDUCE_RING_LIMIT",
                           "HEDDLE_GATHER_TREE_LIMIT"})
    EXPECT_EQ(scope_of(name), MPI_T_SCOPE_ALL_EQ) << name;
  EXPECT_EQ(scope_of("HEDDLE_SPIN_US"), MPI_T_SCOPE_LOCAL);
  EXPECT_EQ(scope_of("HEDDLE_NET"), MPI_T_SCOPE_READONLY);
}

TEST_F(Tool, AVariableSetBeforeInitKeepsItsValue) {
  int index = -1, elements = 0;
  ASSERT_EQ(MPI_T_cvar_get_index("HEDDLE_CHECK", &index), MPI_SUCCESS);
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  ASSERT_EQ(MPI_T_cvar_handle_alloc(index, nullptr, &handle, &elements), MPI_SUCCESS);
  for (const int wanted : {0, 1}) {
    int got = -1;
    ASSERT_EQ(MPI_T_cvar_write(handle, &wanted), MPI_SUCCESS);
    ASSERT_EQ(MPI_T_cvar_read(handle, &got), MPI_SUCCESS);
    EXPECT_EQ(got, wanted);
  }
}

TEST_F(Tool, ANameIsCutToTheBufferAndItsFullLengthReturned) {
  int index = -1, length = 4;
  char name[8] = "???????";
  ASSERT_EQ(MPI_T_cvar_get_index("HEDDLE_CHECK", &index), MPI_SUCCESS);
  ASSERT_EQ(MPI_T_cvar_get_info(index, name, &length, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
            MPI_SUCCESS);
  EXPECT_STREQ(name, "HED");
  EXPECT_EQ(length, static_cast<int>(sizeof "HEDDLE_CHECK"));
}

TEST_F(Tool, StaleAndForeignHandlesAreRefused) {
  int value = 0, elements = 0;
  EXPECT_EQ(MPI_T_cvar_read(MPI_T_CVAR_HANDLE_NULL, &value), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_cvar_read(reinterpret_cast<MPI_T_cvar_handle>(&value), &value), MPI_T_ERR_INVALID_HANDLE);
  MPI_T_pvar_handle pvar = MPI_T_PVAR_HANDLE_NULL;
  EXPECT_EQ(MPI_T_pvar_handle_alloc(MPI_T_PVAR_SESSION_NULL, 0, nullptr, &pvar, &elements), MPI_T_ERR_INVALID_SESSION);
}

TEST_F(Tool, TheOtherSetsAreEmptyAndSaySo) {
  int n = -1;
  for (auto* get : {MPI_T_pvar_get_num, MPI_T_category_get_num, MPI_T_event_get_num, MPI_T_source_get_num}) {
    ASSERT_EQ(get(&n), MPI_SUCCESS);
    EXPECT_EQ(n, 0);
  }
  EXPECT_EQ(MPI_T_category_get_index("anything", &n), MPI_T_ERR_INVALID_NAME);
  EXPECT_EQ(MPI_T_category_get_cvars(0, 0, nullptr), MPI_T_ERR_INVALID_INDEX);
  MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
  ASSERT_EQ(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &n), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_pvar_session_free(&session), MPI_SUCCESS);
}

TEST_F(Tool, YesAndNoAreAnEnumeration) {
  int index = -1, number = 0, length = 0;
  MPI_T_enum values = MPI_T_ENUM_NULL;
  ASSERT_EQ(MPI_T_cvar_get_index("HEDDLE_CHECK", &index), MPI_SUCCESS);
  ASSERT_EQ(MPI_T_cvar_get_info(index, nullptr, nullptr, nullptr, nullptr, &values, nullptr, nullptr, nullptr, nullptr),
            MPI_SUCCESS);
  ASSERT_EQ(MPI_T_enum_get_info(values, &number, nullptr, &length), MPI_SUCCESS);
  ASSERT_EQ(number, 2);
  for (int i = 0; i < number; ++i) {
    char name[8];
    int value = -1;
    ASSERT_EQ(MPI_T_enum_get_item(values, i, &value, name, &(length = sizeof name)), MPI_SUCCESS);
    EXPECT_STREQ(name, value ? "yes" : "no");
  }
}

}  // namespace
