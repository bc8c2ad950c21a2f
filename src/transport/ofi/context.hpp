// One VCI's part of the network over libfabric: a domain, an endpoint, a completion queue, and the buffers posted there.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/wire.hpp"

namespace heddle::ofi {

/// Opens the fabric that `info` describes, for all contexts of the process. Undone by `close_fabric`.
bool open_fabric(fi_info* info, std::string& problem);
void close_fabric() noexcept;
/// Where messages leave, for what is said of a peer that is not reached. Before the first context.
void set_own_place(const std::string& interface, const std::string& address);

/// Not thread-safe: whoever calls holds the VCI. Since each has a domain of its own, libfabric's locks are off.
///
/// Received messages lie in buffers that they share if the provider can do that (FI_MULTI_RECV), else in one each.
class Context final : public wire::Context {
 public:
  Context() = default;
  ~Context() override { Context::close(); }

  bool open(std::size_t largest, bool wait, std::string& problem) override;
  void close() noexcept override;
  wire::Address insert(std::string_view name) noexcept override;
  void watch(std::string_view name, std::uint32_t process) noexcept override;
  [[nodiscard]] std::string way(wire::Address address) const override;
  int send(wire::Address to, const void* data, std::size_t bytes, void* descriptor, wire::Operation& operation) noexcept override;
  int send_parts(wire::Address to, const iovec* parts, std::size_t count, wire::Operation& operation) noexcept override;
  int read(wire::Address from, void* to, std::size_t bytes, void* descriptor, std::uint64_t address, std::uint64_t key,
           wire::Operation& operation) noexcept override;
  int write(wire::Address to, const void* data, std::size_t bytes, void* descriptor, std::uint64_t address, std::uint64_t key,
            wire::Operation* operation) noexcept override {
    return post_write(to, data, bytes, descriptor, address, key, 0, 0, operation);
  }
  int write_with_data(wire::Address to, const void* data, std::size_t bytes, void* descriptor, std::uint64_t address, std::uint64_t key,
                      std::uint32_t immediate, wire::Operation* operation) noexcept override {
    return post_write(to, data, bytes, descriptor, address, key, FI_REMOTE_CQ_DATA, immediate, operation);
  }
  [[nodiscard]] bool has_atomic(wire::Atomic what, wire::AtomicType type, bool fetches) const noexcept override {
    return can_update_[fetches || what == wire::Atomic::compare_swap][static_cast<std::size_t>(what)][static_cast<std::size_t>(type)];
  }
  int atomic(wire::Address to, wire::Atomic what, wire::AtomicType type, const void* operand, const void* compare, void* before, void* descriptor,
             std::uint64_t address, std::uint64_t key, wire::Operation& operation) noexcept override;
  int poll(wire::Event* events, int n) noexcept override;
  bool register_memory(const void* address, std::size_t bytes, wire::Use use, wire::Registration& registration) noexcept override;
  void deregister(wire::Registration& registration) noexcept override;
  bool may_sleep() noexcept override;
  [[nodiscard]] bool has_left(wire::Address address) const noexcept override;
  void report_all_sends(bool all) noexcept override { inject_ = all ? 0 : info_->tx_attr->inject_size; }

 private:
  struct Receive : wire::Operation {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    bool posted = false;
  };
  /// Whether the kernel lets the network lock so much more memory. If there is a limit it is tried: some processes are exempt.
  bool may_lock(std::size_t bytes) noexcept;
  bool post(Receive& buffer) noexcept;
  bool post_all(std::string& problem);
  bool fail(const char* what, long code, std::string& problem);
  void learn_capabilities() noexcept;
  int post_write(wire::Address to, const void* data, std::size_t bytes, void* descriptor, std::uint64_t address, std::uint64_t key,
                 std::uint64_t flags, std::uint64_t immediate, wire::Operation* operation) noexcept;

  fi_info* info_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  fid_cq* queue_ = nullptr;
  fid_av* addresses_ = nullptr;
  std::vector<Receive*> receives_;
  std::vector<Receive*> to_post_;  ///< handed out in the last poll, or refused
  std::byte* receive_memory_ = nullptr;
  wire::Registration receive_registration_;
  bool multi_ = false, own_keys_ = false, virtual_addresses_ = false, bind_memory_ = false;
  std::size_t inject_ = 0, largest_ = 0;
  std::uint64_t next_key_ = 1;
  bool can_update_[2][wire::atomic_count][wire::atomic_type_count]{};  ///< [with the value before]
};

}  // namespace heddle::ofi
