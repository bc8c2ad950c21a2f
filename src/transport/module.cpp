#include "transport/module.hpp"

#include "sys/log.hpp"

namespace heddle {

constinit std::array<std::span<const RecordOperation>, most_modules> detail::record_table{};

void register_module(const Module& module) noexcept {
  if (module.number >= most_modules) sys::fatal("module %s has the number %u; there are %zu", module.name, module.number, most_modules);
  std::span<const RecordOperation>& place = detail::record_table[module.number];
  if (!place.empty() && place.data() != module.operations.data())
    sys::fatal("module %s has the number %u, which another module has already", module.name, module.number);
  place = module.operations;
}

void handle_record(Held& held, Record& record) noexcept {
  const RecordOperation* const operation = find_operation(record.kind);
  if (!operation || !operation->handle) [[unlikely]]
    sys::fatal("a record of unknown kind %u.%u arrived: the ranks of this job run different versions of the library", record.kind.module,
               record.kind.operation);
  operation->handle(held, record);
}

}  // namespace heddle
