// The table of records: a module's operations are found by their kind, and nothing else is.
#include "transport/module.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace heddle {
namespace {

struct Holder : Held {
  int calls = 0;
};
constexpr RecordOperation operations[] = {
    {"counts", 0, true, [](Held& held, Record&) noexcept { ++static_cast<Holder&>(held).calls; }},
    {"has_no_handler", 8, true, nullptr},
};
constexpr Module module{3, "of a test", operations};

TEST(Module, a_record_reaches_the_handler_of_its_operation) {
  register_module(module);
  Record record{};
  record.kind = {3, 0};
  Holder holder;
  handle_record(holder, record);
  EXPECT_EQ(holder.calls, 1);
}

TEST(Module, of_all_kinds_those_of_registered_operations_are_found_and_no_others) {
  register_module(module);
  for (unsigned word = 0; word < 1U << 16; ++word) {
    const auto kind = std::bit_cast<RecordKind>(static_cast<std::uint16_t>(word));
    const RecordOperation* expected = kind.module == 3 && kind.operation < 2 ? &operations[kind.operation] : nullptr;
    ASSERT_EQ(find_operation(kind), expected) << word;
  }
}

TEST(Module, registering_the_same_module_again_changes_nothing) {
  register_module(module);
  register_module(module);
  EXPECT_EQ(find_operation({3, 0}), &operations[0]);
}

TEST(ModuleDeathTest, two_modules_of_one_number_end_the_process) {
  register_module(module);
  static constexpr RecordOperation others[] = {{"other", 0, true, nullptr}};
  static constexpr Module second{3, "another", others};
  EXPECT_DEATH(register_module(second), "module another has the number 3, which another module has already");
}

TEST(ModuleDeathTest, a_record_that_nobody_handles_ends_the_job) {
  register_module(module);
  Holder holder;
  Record record{};
  record.kind = {3, 1};
  EXPECT_DEATH(handle_record(holder, record), "a record of unknown kind 3.1 arrived");
  record.kind = {255, 0};
  EXPECT_DEATH(handle_record(holder, record), "a record of unknown kind 255.0 arrived");
}

}  // namespace
}  // namespace heddle
