// The command line of the stress programs: options that are followed by a number, and switches.
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <variant>

#include "check.h"

namespace test {

struct Option {
  std::string_view name;  // with its dashes
  std::variant<int*, long long*, unsigned long*, bool*> value;
};

// Fails the test on what is none of `options`.
inline void read_options(int argc, char** argv, std::initializer_list<Option> options) {
  for (int i = 1; i < argc; ++i) {
    const Option* found = nullptr;
    for (const Option& option : options)
      if (option.name == argv[i]) found = &option;
    if (!found) check_fail(__FILE__, __LINE__, "unknown option %s", argv[i]);
    if (bool* const* flag = std::get_if<bool*>(&found->value)) {
      **flag = true;
      continue;
    }
    if (i + 1 == argc) check_fail(__FILE__, __LINE__, "option %s needs a number", argv[i]);
    const long long number = std::atoll(argv[++i]);
    std::visit([&](auto* value) { *value = static_cast<std::remove_pointer_t<decltype(value)>>(number); }, found->value);
  }
}

}  // namespace test
