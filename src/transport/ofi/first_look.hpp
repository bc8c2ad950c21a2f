// libfabric's first look at the machine, without the part that costs most.
#pragma once

namespace heddle::ofi {

/// While it exists, the libfabric of `handle` (from dlopen) does not get to open /proc/kallsyms.
///
/// The verbs provider of libfabric 1.12 to 1.2x reads all symbols of the kernel, twice, when the library is first asked for anything, to
/// find out whether network adapters may reach into graphics cards: 21,000 system calls and 0.1 to 0.15 s of a core in every process of
/// a job, on machines without any such adapter as well. There is no setting against it. On machines with InfiniBand this does nothing, for
/// there the answer counts. Where the library is built in a way that is not expected it does nothing either.
///
/// Not for use by two threads at once; other threads of the program may call the same libfabric meanwhile.
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
