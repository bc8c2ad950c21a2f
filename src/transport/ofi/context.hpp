// One VCI's own piece of the network: a domain, an endpoint, a completion queue, and the buffers posted there.
#pragma once

#include <rdma/fabric.h>
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

namespace heddle::ofi {

/// Opens the fabric that `choice.info` describes, for all contexts of the process. Undone by `close_fabric`.
bool open_fabric(fi_info* info, std::string& problem);
void close_fabric() noexcept;

/// What libfabric gives back when something that was posted is done. First member of everything posted.
struct Operation {
  enum class Kind : std::uint8_t { send, receive, read };
  fi_context2 room{};  ///< the provider's
  Kind kind;
};

/// A completion.
struct Event {
  Operation* operation;
  std::uint64_t flags;
  std::size_t bytes;    ///< of a received message
  std::byte* data;      ///< of a received message; valid until the context is polled again
  int error;            ///< 0, or a positive libfabric code
};

/// Memory that the network may read or write. `mr` is null where the provider needs no registration.
struct Registration {
  fid_mr* mr = nullptr;
  std::uint64_t key = 0;
  std::uint64_t base = 0;  ///< what the other end adds its offset to
};

/// Not thread-safe: whoever calls holds the VCI. Since each has a domain of its own, libfabric's locks are off.
///
/// Received messages lie in buffers that many of them share where the provider can do that (FI_MULTI_RECV), else in one each.
class Context {
 public:
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { close(); }

  /// \param largest message that will be sent or received. \param wait whether `wait_fd` is wanted
  bool open(std::size_t largest, bool wait, std::string& problem);
  void close() noexcept;

  /// This endpoint's address, for `insert` at the other end.
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  /// Makes a peer's address known. FI_ADDR_UNSPEC when it cannot be.
  fi_addr_t insert(const void* name) noexcept;

  /// Posts a message. 0: `operation` comes back from `poll` when the buffer is free again. 1: it is free at once.
  /// -FI_EAGAIN: nothing happened, try after `poll`. Other negative: failed.
  int send(fi_addr_t to, const void* data, std::size_t bytes, void* descriptor, Operation& operation) noexcept;
  /// The same of a message in up to three parts, none of which needs registration. Never 1: the parts stay in use until the operation is back.
  int send_parts(fi_addr_t to, const iovec* parts, std::size_t count, Operation& operation) noexcept;
  /// Whether `send_parts` works here.
  [[nodiscard]] bool sends_parts() const noexcept { return sends_parts_; }
  /// Posts a read of the peer's registered memory. As `send`, but never 1.
  int read(fi_addr_t from, void* to, std::size_t bytes, void* descriptor, std::uint64_t address, std::uint64_t key,
           Operation& operation) noexcept;

  /// Completions, at most `n`; frees what earlier receive events pointed to. Negative: the queue itself failed.
  int poll(Event* events, int n) noexcept;

  /// Registers memory for `access` (FI_REMOTE_READ, FI_READ, FI_SEND, FI_RECV). False when the provider refuses.
  bool register_memory(const void* address, std::size_t bytes, std::uint64_t access, Registration& registration) noexcept;
  static void deregister(Registration& registration) noexcept;
  /// What `send` and `read` want as descriptor of local memory.
  static void* descriptor(const Registration& registration) noexcept {
    return registration.mr ? fi_mr_desc(registration.mr) : nullptr;
  }
  [[nodiscard]] bool registers_local() const noexcept { return registers_local_; }
  [[nodiscard]] bool reads() const noexcept { return reads_; }
  [[nodiscard]] std::size_t largest_read() const noexcept { return largest_read_; }

  /// A descriptor that is readable when `poll` has something, -1 when the provider has none. Before sleeping on it
  /// `may_sleep` must have said true.
  [[nodiscard]] int wait_fd() const noexcept { return wait_fd_; }
  bool may_sleep() noexcept;

 private:
  struct Receive : Operation {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    Registration registration;
    bool posted = false;
  };
  bool post(Receive& buffer) noexcept;
  bool post_all(std::string& problem);
  bool fail(const char* what, long code, std::string& problem);

  fi_info* info_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  fid_cq* queue_ = nullptr;
  fid_av* addresses_ = nullptr;
  std::string name_;
  std::vector<Receive*> receives_;
  std::vector<Receive*> to_post_;  ///< handed out in the last poll, or refused
  std::byte* receive_memory_ = nullptr;
  Registration receive_registration_;
  bool multi_ = false, registers_local_ = false, own_keys_ = false, virtual_addresses_ = false, bind_memory_ = false, reads_ = false, sends_parts_ = false;
  std::size_t inject_ = 0, largest_ = 0, largest_read_ = 0;
  std::uint64_t next_key_ = 1;
  int wait_fd_ = -1;
};

}  // namespace heddle::ofi
