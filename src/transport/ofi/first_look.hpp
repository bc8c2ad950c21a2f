// Keeps libfabric's first look at the machine from its most expensive part.
#pragma once

namespace heddle::ofi {

/// While it exists, the libfabric of `handle` (from dlopen) does not get to open /proc/kallsyms.
///
/// The verbs provider of libfabric 1.12 to 1.2x reads all kernel symbols, twice, at the library's first call, to find out whether network
/// adapters may access graphics memory: 21,000 system calls and 0.1 to 0.15 s of a core in every process of a job, also on machines
/// without such an adapter. No setting prevents it. On machines with InfiniBand this class does nothing, since there the answer
/// counts; nor does it where the library is built in an unexpected way.
///
/// Not thread-safe itself; other threads of the program may call the same libfabric meanwhile.
class FirstLook {
 public:
  explicit FirstLook(void* handle) noexcept;
  ~FirstLook();
  FirstLook(const FirstLook&) = delete;
  FirstLook& operator=(const FirstLook&) = delete;

 private:
  void** slot_ = nullptr;  ///< where the library finds fopen; nullptr: nothing was changed
};

}  // namespace heddle::ofi
