#include "rma/kernel_copy.hpp"

#include <cerrno>
#include <cstring>

#include "core/pieces.hpp"
#include "sys/log.hpp"
#include "transport/shm/node.hpp"

namespace heddle::rma {

KernelCopy::KernelCopy(ProcessIndex process, bool write) noexcept : pid_(shm::find(process)->pid), process_(process), write_(write) {}

void KernelCopy::add(std::byte* here, std::uint64_t there, std::size_t bytes) noexcept {
  bytes_ += bytes;
  if (count_) {  // neighbours on both sides go as one
    iovec &local = local_[count_ - 1], &remote = remote_[count_ - 1];
    if (static_cast<std::byte*>(local.iov_base) + local.iov_len == here && reinterpret_cast<std::uintptr_t>(remote.iov_base) + remote.iov_len == there) {
      local.iov_len += bytes;
      remote.iov_len += bytes;
      return;
    }
  }
  local_[count_] = {here, bytes};
  remote_[count_] = {reinterpret_cast<void*>(there), bytes};
  if (++count_ == room) finish();
}

void KernelCopy::add(const Buffer& here, const Buffer& there) noexcept {
  for_each_block(here, there, [&](std::byte* from, std::int64_t to, std::int64_t bytes) { add(from, static_cast<std::uint64_t>(to), static_cast<std::size_t>(bytes)); });
}

void KernelCopy::finish() noexcept {
  // The kernel stops within a call after 2 GiB less a page; a short count says how far it got.
  for (unsigned first = 0; bytes_;) {
    const ssize_t n = write_ ? process_vm_writev(pid_, local_ + first, count_ - first, remote_ + first, count_ - first, 0)
                             : process_vm_readv(pid_, local_ + first, count_ - first, remote_ + first, count_ - first, 0);
    if (n <= 0)
      sys::fatal("the kernel refuses to copy %zu bytes %s the memory of rank %u at %p (%s): the target has freed its window's memory, or is gone", bytes_, write_ ? "to" : "from",
                 process_, remote_[first].iov_base, std::strerror(errno));
    bytes_ -= static_cast<std::size_t>(n);
    for (auto left = static_cast<std::size_t>(n); left;) {
      const std::size_t part = left < local_[first].iov_len ? left : local_[first].iov_len;
      local_[first] = {static_cast<std::byte*>(local_[first].iov_base) + part, local_[first].iov_len - part};
      remote_[first] = {static_cast<std::byte*>(remote_[first].iov_base) + part, remote_[first].iov_len - part};
      left -= part;
      if (!local_[first].iov_len) ++first;
    }
  }
  count_ = 0;
}

}  // namespace heddle::rma
