// Copies between address spaces by the kernel (CMA), many blocks in one call.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "core/buffer.hpp"
#include "transport/address.hpp"

namespace heddle::rma {

/// Blocks that go one way between this process and another of the node, which CMA reaches. Ends the job when the kernel refuses: the memory is
/// gone. Not thread-safe.
class KernelCopy {
 public:
  KernelCopy(ProcessIndex process, bool write) noexcept;
  KernelCopy(const KernelCopy&) = delete;
  KernelCopy& operator=(const KernelCopy&) = delete;
  ~KernelCopy() { finish(); }

  void add(std::byte* here, std::uint64_t there, std::size_t bytes) noexcept;
  /// All blocks of `there`, whose addresses are the other process's.
  void add(const Buffer& here, const Buffer& there) noexcept;
  /// Makes the call, if there is anything to copy.
  void finish() noexcept;

 private:
  static constexpr unsigned room = 64;
  iovec local_[room], remote_[room];
  unsigned count_ = 0;
  std::size_t bytes_ = 0;
  const pid_t pid_;
  const ProcessIndex process_;
  const bool write_;
};

}  // namespace heddle::rma
