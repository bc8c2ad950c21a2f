#include "core/attribute.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <vector>

#include "sys/error.hpp"

namespace heddle {
namespace {

/// What the callbacks saw, in order.
struct Trace {
  std::vector<long> deleted, copied;
  int delete_result = MPI_SUCCESS, copy_result = MPI_SUCCESS;
  int copy_flag = 1;
  std::mutex* must_be_free = nullptr;
};

long number(void* value) { return static_cast<long>(reinterpret_cast<std::intptr_t>(value)); }
void* value_of(long n) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(n)); }

int on_copy(MPI_Comm, int, void* extra, void* in, void* out, int* flag) {
  auto& trace = *static_cast<Trace*>(extra);
  trace.copied.push_back(number(in));
  *static_cast<void**>(out) = value_of(number(in) + 1000);
  *flag = trace.copy_flag;
  return trace.copy_result;
}

int on_delete(MPI_Comm, int, void* value, void* extra) {
  auto& trace = *static_cast<Trace*>(extra);
  if (trace.must_be_free) {
    EXPECT_TRUE(trace.must_be_free->try_lock()) << "a callback may call MPI on the same object";
    trace.must_be_free->unlock();
  }
  trace.deleted.push_back(number(value));
  return trace.delete_result;
}

using Callback = void (*)();

class AttributeTest : public testing::Test {
 protected:
  Trace trace;
  AttributeMap map;
  std::mutex mutex;
  AttributeOwner owner{KeyvalKind::comm, nullptr, map, mutex};

  int key(Callback copy = reinterpret_cast<Callback>(on_copy), Callback del = reinterpret_cast<Callback>(on_delete)) {
    int made = MPI_KEYVAL_INVALID;
    EXPECT_EQ(create_keyval(KeyvalKind::comm, copy, del, &trace, &made), MPI_SUCCESS);
    return made;
  }
  long get(int keyval) {
    void* value = nullptr;
    int found = 0;
    EXPECT_EQ(get_attribute(owner, keyval, &value, &found), MPI_SUCCESS);
    return found ? number(value) : -1;
  }
};

TEST_F(AttributeTest, DeletionRunsNewestFirstWithoutTheLock) {
  trace.must_be_free = &mutex;
  const int a = key(), b = key(), c = key();
  for (const auto& [keyval, value] : {std::pair{b, 1L}, {c, 2L}, {a, 3L}})
    ASSERT_EQ(set_attribute(owner, keyval, value_of(value)), MPI_SUCCESS);
  ASSERT_EQ(set_attribute(owner, b, value_of(4)), MPI_SUCCESS);  // counts as set now
  EXPECT_EQ(trace.deleted, std::vector<long>{1});
  ASSERT_EQ(delete_all_attributes(owner), MPI_SUCCESS);
  EXPECT_EQ(trace.deleted, (std::vector<long>{1, 4, 3, 2}));
  EXPECT_TRUE(map.entries.empty());
}

TEST_F(AttributeTest, CopyTakesWhatTheCallbacksSay) {
  const int user = key(), dup = key(reinterpret_cast<Callback>(1)), none = key(nullptr);
  for (const auto& [keyval, value] : {std::pair{user, 1L}, {dup, 2L}, {none, 3L}})
    ASSERT_EQ(set_attribute(owner, keyval, value_of(value)), MPI_SUCCESS);
  AttributeMap copy;
  std::mutex copy_mutex;
  ASSERT_EQ(copy_attributes(owner, copy), MPI_SUCCESS);
  ASSERT_EQ(copy.entries.size(), 2u);
  EXPECT_EQ(number(copy.entries.at(user).value), 1001);
  EXPECT_EQ(number(copy.entries.at(dup).value), 2);

  trace.copy_flag = 0;
  AttributeMap second;
  ASSERT_EQ(copy_attributes(owner, second), MPI_SUCCESS);
  EXPECT_EQ(second.entries.count(user), 0u);

  trace.copy_result = MPI_ERR_OTHER;
  AttributeMap third;
  EXPECT_EQ(copy_attributes(owner, third), MPI_ERR_OTHER);
}

TEST_F(AttributeTest, AFailingDeleteCallbackKeepsTheAttribute) {
  const int k = key();
  ASSERT_EQ(set_attribute(owner, k, value_of(5)), MPI_SUCCESS);
  trace.delete_result = MPI_ERR_INTERN;
  EXPECT_EQ(delete_attribute(owner, k), MPI_ERR_INTERN);
  EXPECT_EQ(set_attribute(owner, k, value_of(6)), MPI_ERR_INTERN);
  EXPECT_EQ(delete_all_attributes(owner), MPI_ERR_INTERN);
  EXPECT_EQ(get(k), 5);
  trace.delete_result = MPI_SUCCESS;
  EXPECT_EQ(delete_attribute(owner, k), MPI_SUCCESS);
  EXPECT_EQ(get(k), -1);
}

TEST_F(AttributeTest, CallbacksOutliveTheFreedKey) {
  int k = key();
  const int old = k;
  ASSERT_EQ(set_attribute(owner, k, value_of(5)), MPI_SUCCESS);
  ASSERT_EQ(free_keyval(KeyvalKind::comm, &k), MPI_SUCCESS);
  EXPECT_EQ(k, MPI_KEYVAL_INVALID);
  EXPECT_EQ(error_class(set_attribute(owner, old, value_of(6))), MPI_ERR_KEYVAL);
  EXPECT_EQ(error_class(free_keyval(KeyvalKind::comm, &k)), MPI_ERR_KEYVAL);
  ASSERT_EQ(delete_all_attributes(owner), MPI_SUCCESS);
  EXPECT_EQ(trace.deleted, std::vector<long>{5});
  void* value;
  int found;
  EXPECT_EQ(error_class(get_attribute(owner, old, &value, &found)), MPI_ERR_KEYVAL);
}

TEST_F(AttributeTest, AKeyServesOneKindOfObject) {
  int k = 0;
  ASSERT_EQ(create_keyval(KeyvalKind::type, nullptr, nullptr, nullptr, &k), MPI_SUCCESS);
  EXPECT_EQ(error_class(set_attribute(owner, k, nullptr)), MPI_ERR_KEYVAL);
  EXPECT_EQ(error_class(free_keyval(KeyvalKind::win, &k)), MPI_ERR_KEYVAL);
  EXPECT_EQ(free_keyval(KeyvalKind::type, &k), MPI_SUCCESS);
}

}  // namespace
}  // namespace heddle
