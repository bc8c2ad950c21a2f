#include "transport/ofi/context.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "sys/params.hpp"
#include "transport/host_address.hpp"
#include "transport/ofi/library.hpp"
#include "transport/ofi/tcp_watch.hpp"

namespace heddle::ofi {
namespace {

HEDDLE_PARAM_SIZE(receive_size, "HEDDLE_NET_BUFFER", 256 << 10, 4096, 1 << 30, "bytes of each of the four buffers in which a VCI receives from the network");

constexpr int shared_buffers = 4;   ///< each shared by many messages
constexpr int single_buffers = 64;  ///< if each message needs its own
/// What ofi_rxm registers for its send buffers with the first message: 1024 of 16 KiB; as much again to receive.
constexpr std::size_t send_pool_bytes = std::size_t{20} << 20;

fi_info* chosen = nullptr;
fid_fabric* fabric = nullptr;
std::string* own_place = new std::string;  ///< never destroyed: who exits may still name a peer
static_assert(sizeof(fi_context2) <= sizeof(wire::Operation::room) && FI_EAGAIN == EAGAIN && FI_ADDR_UNSPEC == wire::no_address);

// As wire::AtomicType and wire::Atomic.
constexpr fi_datatype types[wire::atomic_type_count] = {FI_INT32, FI_UINT32, FI_INT64, FI_UINT64, FI_FLOAT, FI_DOUBLE};
constexpr fi_op operations[wire::atomic_count] = {FI_SUM, FI_MIN, FI_MAX, FI_BAND, FI_BOR, FI_BXOR, FI_ATOMIC_WRITE, FI_ATOMIC_READ, FI_CSWAP};

std::mutex open_mutex;  ///< opening is rare, and providers keep lists of their own

template <typename Fid>
void close_fid(Fid*& object) noexcept {
  if (object) fi_close(&object->fid);
  object = nullptr;
}

/// What the provider is told.
std::uint64_t access_of(wire::Use use) noexcept {
  switch (use) {
    case wire::Use::at_this_end: return FI_SEND | FI_READ | FI_WRITE;
    case wire::Use::receive: return FI_RECV;
    case wire::Use::read_into: return FI_READ;
    case wire::Use::write_from: return FI_WRITE;
    case wire::Use::read_by_peers: return FI_REMOTE_READ;
    case wire::Use::written_by_peers: return FI_REMOTE_WRITE;
    case wire::Use::read_and_written_by_peers: return FI_REMOTE_READ | FI_REMOTE_WRITE;
  }
  return 0;
}

/// How much memory the process may lock; RLIM_INFINITY without a limit.
rlim_t lock_limit() noexcept {
  rlimit limit{};
  return getrlimit(RLIMIT_MEMLOCK, &limit) ? RLIM_INFINITY : limit.rlim_cur;
}

}  // namespace

bool open_fabric(fi_info* info, std::string& problem) {
  const Library* library = load(problem);
  if (!library) return false;
  chosen = info;
  // Asked for again: providers report the weakest rule they follow, but keep a stronger one that was requested.
  chosen->domain_attr->threading = FI_THREAD_DOMAIN;
  const KeptSignals kept;
  if (const int code = library->fabric(chosen->fabric_attr, &fabric, nullptr)) {
    problem = std::string("opening the network ") + chosen->fabric_attr->name + ": " + error_text(code);
    return false;
  }
  return true;
}

void close_fabric() noexcept { close_fid(fabric); }

void set_own_place(const std::string& interface, const std::string& address) {
  *own_place = address.empty() ? interface : interface + " " + address;
}

bool Context::fail(const char* what, long code, std::string& problem) {
  problem = std::string("the network provider ") + info_->fabric_attr->prov_name + " on " + info_->domain_attr->name + ": " + what +
            ": " + error_text(code);
  const rlim_t limit = lock_limit();
  if (capabilities_.registers_local && (code == FI_ENOMEM || code == -FI_ENOMEM) && limit != RLIM_INFINITY)
    problem += ". It works on memory that cannot be swapped out, about 40 MiB for each VCI and what is sent and received, and the limit "
               "(`ulimit -l`) is " + std::to_string(limit >> 10) + " KiB: raise it, for the launcher's daemons as well, or let "
               "HEDDLE_OFI_PROVIDER=\"tcp;ofi_rxm\" do without";
  close();
  return false;
}

bool Context::may_lock(std::size_t bytes) noexcept {
  if (!capabilities_.registers_local || lock_limit() == RLIM_INFINITY) return true;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  wire::Registration trial;
  const bool may = register_memory(memory, bytes, wire::Use::at_this_end, trial);
  deregister(trial);
  munmap(memory, bytes);  // a provider's registration cache drops this one at the next registration
  return may;
}

/// What the domain can do.
void Context::learn_capabilities() noexcept {
  const std::uint64_t mode = static_cast<std::uint64_t>(info_->domain_attr->mr_mode);
  capabilities_.registers_local = mode & FI_MR_LOCAL;
  own_keys_ = !(mode & FI_MR_PROV_KEY);
  virtual_addresses_ = mode & FI_MR_VIRT_ADDR;
  bind_memory_ = mode & FI_MR_ENDPOINT;
  inject_ = info_->tx_attr->inject_size;
  const bool reaches = (info_->caps & FI_RMA) && info_->domain_attr->mr_key_size <= sizeof(std::uint64_t);
  capabilities_.reads = capabilities_.writes = reaches;
  capabilities_.sends_parts = !capabilities_.registers_local && info_->tx_attr->iov_limit >= 3;
  capabilities_.largest_read = capabilities_.largest_write = info_->ep_attr->max_msg_size;
  // Where an adapter serves the target. Elsewhere the provider does, when somebody there makes progress.
  const char* const provider = info_->fabric_attr->prov_name;
  const bool verbs = !std::strncmp(provider, "verbs", 5);
  capabilities_.passive_target = reaches && (verbs || !std::strcmp(provider, "cxi"));
  // Over verbs ofi_rxm (libfabric 1.17) reports an empty message instead of the data.
  capabilities_.writes_with_data = reaches && !verbs && info_->domain_attr->cq_data_size >= sizeof(wire::Event::immediate);
  if (!reaches || !(info_->caps & FI_ATOMIC)) return;
  for (std::size_t what = 0; what < wire::atomic_count; ++what)
    for (std::size_t type = 0; type < wire::atomic_type_count; ++type)
      for (const bool fetches : {false, true}) {
        const bool compares = static_cast<wire::Atomic>(what) == wire::Atomic::compare_swap;
        if (!fetches && (compares || static_cast<wire::Atomic>(what) == wire::Atomic::read)) continue;
        fi_atomic_attr attr{};
        const std::uint64_t flags = compares ? FI_COMPARE_ATOMIC : fetches ? FI_FETCH_ATOMIC : 0;
        const bool can = !fi_query_atomic(domain_, types[type], operations[what], &attr, flags) && attr.count >= 1;
        can_update_[fetches][what][type] = can;
        capabilities_.atomics |= can;
      }
}

bool Context::open(std::size_t largest, bool wait, std::string& problem) {
  const std::lock_guard hold(open_mutex);
  info_ = chosen;
  largest_ = largest;
  int code = fi_domain(fabric, info_, &domain_, nullptr);
  if (code) return fail("opening a domain", code, problem);

  learn_capabilities();

  fi_cq_attr cq{};
  cq.format = FI_CQ_FORMAT_DATA;
  cq.size = info_->tx_attr->size + info_->rx_attr->size;
  cq.wait_obj = wait ? FI_WAIT_FD : FI_WAIT_NONE;
  code = fi_cq_open(domain_, &cq, &queue_, nullptr);
  if (code && wait) {
    cq.wait_obj = FI_WAIT_NONE;
    code = fi_cq_open(domain_, &cq, &queue_, nullptr);
  }
  if (code) return fail("opening a completion queue", code, problem);
  wait_fd_ = -1;
  if (cq.wait_obj == FI_WAIT_FD && fi_control(&queue_->fid, FI_GETWAIT, &wait_fd_)) wait_fd_ = -1;

  fi_av_attr av{};
  av.type = info_->domain_attr->av_type == FI_AV_UNSPEC ? FI_AV_MAP : info_->domain_attr->av_type;
  code = fi_av_open(domain_, &av, &addresses_, nullptr);
  if (code && av.type == FI_AV_MAP) {
    av.type = FI_AV_TABLE;
    code = fi_av_open(domain_, &av, &addresses_, nullptr);
  }
  if (code) return fail("opening an address vector", code, problem);

  if ((code = fi_endpoint(domain_, info_, &endpoint_, nullptr))) return fail("opening an endpoint", code, problem);
  if ((code = fi_ep_bind(endpoint_, &addresses_->fid, 0))) return fail("binding the address vector", code, problem);
  if ((code = fi_ep_bind(endpoint_, &queue_->fid, FI_TRANSMIT | FI_RECV))) return fail("binding the completion queue", code, problem);
  multi_ = info_->caps & FI_MULTI_RECV && !fi_setopt(&endpoint_->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &largest, sizeof largest);
  if ((code = fi_enable(endpoint_))) return fail("enabling the endpoint", code, problem);
  // If ofi_rxm cannot get its send buffers it answers "try again" for ever.
  if (!may_lock(send_pool_bytes)) return fail("memory to send from", FI_ENOMEM, problem);

  char name[512];
  std::size_t length = sizeof name;
  if ((code = fi_getname(&endpoint_->fid, name, &length))) return fail("asking for the endpoint's address", code, problem);
  name_.assign(name, length);
  if (!std::strstr(info_->fabric_attr->prov_name, "verbs")) watch_own(name_);  // whose ports look like TCP's but are not
  return post_all(problem);
}

bool Context::post_all(std::string& problem) {
  const int count = multi_ ? shared_buffers : single_buffers;
  std::size_t each = multi_ ? static_cast<std::size_t>(receive_size.value()) : largest_;
  if (each < 2 * largest_ && multi_) each = 2 * largest_;
  each = (each + 63) & ~std::size_t{63};
  receive_memory_ = static_cast<std::byte*>(std::aligned_alloc(4096, (each * static_cast<std::size_t>(count) + 4095) & ~std::size_t{4095}));
  if (!receive_memory_) return fail("memory to receive in", FI_ENOMEM, problem);
  if (capabilities_.registers_local && !register_memory(receive_memory_, each * static_cast<std::size_t>(count), wire::Use::receive, receive_registration_))
    return fail("registering memory to receive in", FI_ENOMEM, problem);
  for (int i = 0; i < count; ++i) {
    auto* buffer = new (std::nothrow) Receive;
    if (!buffer) return fail("memory to receive in", FI_ENOMEM, problem);
    buffer->memory = receive_memory_ + static_cast<std::size_t>(i) * each;
    buffer->bytes = each;
    receives_.push_back(buffer);
    if (!post(*buffer)) return fail("posting a receive", FI_EAGAIN, problem);
  }
  return true;
}

bool Context::post(Receive& buffer) noexcept {
  const iovec where{buffer.memory, buffer.bytes};
  void* descriptor = receive_registration_.descriptor;
  fi_msg message{};
  message.msg_iov = &where;
  message.desc = &descriptor;
  message.iov_count = 1;
  message.addr = FI_ADDR_UNSPEC;
  message.context = static_cast<wire::Operation*>(&buffer);
  return fi_recvmsg(endpoint_, &message, multi_ ? FI_MULTI_RECV : 0) == 0;
}

void Context::close() noexcept {
  close_fid(endpoint_);
  deregister(receive_registration_);
  close_fid(queue_);
  close_fid(addresses_);
  close_fid(domain_);
  for (Receive* buffer : receives_) delete buffer;
  receives_.clear();
  to_post_.clear();
  std::free(receive_memory_);
  receive_memory_ = nullptr;
  wait_fd_ = -1;
}

wire::Address Context::insert(std::string_view name) noexcept {
  fi_addr_t address = FI_ADDR_UNSPEC;
  return fi_av_insert(addresses_, name.data(), 1, &address, 0, nullptr) == 1 ? address : FI_ADDR_UNSPEC;
}

int Context::send(wire::Address to, const void* data, std::size_t bytes, void* descriptor, wire::Operation& operation) noexcept {
  if (bytes <= inject_) {
    const auto code = fi_inject(endpoint_, data, bytes, to);
    return code ? static_cast<int>(code) : 1;
  }
  return static_cast<int>(fi_send(endpoint_, data, bytes, descriptor, to, &operation));
}

int Context::send_parts(wire::Address to, const iovec* parts, std::size_t count, wire::Operation& operation) noexcept {
  return static_cast<int>(fi_sendv(endpoint_, parts, nullptr, count, to, &operation));
}

int Context::read(wire::Address from, void* to, std::size_t bytes, void* descriptor, std::uint64_t address, std::uint64_t key,
                  wire::Operation& operation) noexcept {
  return static_cast<int>(fi_read(endpoint_, to, bytes, descriptor, from, address, key, &operation));
}

/// Its completion says that the bytes are in place.
int Context::post_write(wire::Address to, const void* data, std::size_t bytes, void* descriptor, std::uint64_t address, std::uint64_t key,
                        std::uint64_t flags, std::uint64_t immediate, wire::Operation* operation) noexcept {
  const iovec from{const_cast<void*>(data), bytes};
  const fi_rma_iov there{address, bytes, key};
  fi_msg_rma message{};
  message.msg_iov = &from;
  message.desc = &descriptor;
  message.iov_count = message.rma_iov_count = 1;
  message.addr = to;
  message.rma_iov = &there;
  message.context = operation;
  message.data = immediate;
  const auto code = static_cast<int>(fi_writemsg(endpoint_, &message, flags | FI_COMPLETION | FI_DELIVERY_COMPLETE));
  return code == -FI_EOPNOTSUPP || code == -FI_EBADFLAGS ? -ENOSYS : code;
}

int Context::atomic(wire::Address to, wire::Atomic what, wire::AtomicType type, const void* operand, const void* compare, void* before,
                    void* descriptor, std::uint64_t address, std::uint64_t key, wire::Operation& operation) noexcept {
  const fi_ioc from{const_cast<void*>(operand), 1}, with{const_cast<void*>(compare), 1};
  fi_ioc result{before, 1};
  const fi_rma_ioc there{address, 1, key};
  fi_msg_atomic message{};
  message.msg_iov = &from;
  message.desc = &descriptor;
  message.iov_count = message.rma_iov_count = 1;
  message.addr = to;
  message.rma_iov = &there;
  message.datatype = types[static_cast<std::size_t>(type)];
  message.op = operations[static_cast<std::size_t>(what)];
  message.context = &operation;
  long code;
  if (compare) code = fi_compare_atomicmsg(endpoint_, &message, &with, &descriptor, 1, &result, &descriptor, 1, FI_COMPLETION);
  else if (before) code = fi_fetch_atomicmsg(endpoint_, &message, &result, &descriptor, 1, FI_COMPLETION);
  else code = fi_atomicmsg(endpoint_, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE);
  return static_cast<int>(code);
}

int Context::poll(wire::Event* events, int n) noexcept {
  if (!to_post_.empty()) [[unlikely]] {
    std::vector<Receive*> again;
    for (Receive* buffer : to_post_)
      if (!post(*buffer)) again.push_back(buffer);
    to_post_.swap(again);
  }
  fi_cq_data_entry entries[16];
  const auto got = fi_cq_read(queue_, entries, static_cast<std::size_t>(n < 16 ? n : 16));
  if (got == -FI_EAGAIN) return 0;
  if (got == -FI_EAVAIL) {
    fi_cq_err_entry failed{};
    if (fi_cq_readerr(queue_, &failed, 0) <= 0) return 0;
    auto* operation = static_cast<wire::Operation*>(failed.op_context);
    if (!operation) return 0;
    const bool receives = !operation->done;
    events[0] = {receives ? nullptr : operation, 0, nullptr, failed.err ? failed.err : FI_EIO};
    // A cancelled or truncated receive; its buffer may still hold earlier messages only where several share it.
    if (receives) to_post_.push_back(static_cast<Receive*>(operation));
    return 1;
  }
  if (got < 0) return static_cast<int>(got);
  int found = 0;
  for (int i = 0; i < got; ++i) {
    const fi_cq_data_entry& entry = entries[i];
    auto* operation = static_cast<wire::Operation*>(entry.op_context);
    // A peer's write; messages carry no data. Providers set either flag, some of them also where the writer completes.
    if (entry.flags & (FI_REMOTE_CQ_DATA | FI_REMOTE_WRITE) && !(operation && operation->done)) {
      events[found++] = {nullptr, 0, nullptr, 0, static_cast<std::uint32_t>(entry.data)};
      continue;
    }
    if (!operation) continue;
    if (!operation->done) {
      auto* buffer = static_cast<Receive*>(operation);
      if (!multi_ || entry.flags & FI_MULTI_RECV) to_post_.push_back(buffer);  // posted again when its messages are handled
      if (multi_ && !(entry.flags & FI_RECV)) continue;                        // the notice alone
      events[found++] = {nullptr, entry.len, multi_ ? static_cast<std::byte*>(entry.buf) : buffer->memory, 0};
    } else {
      events[found++] = {operation, entry.len, nullptr, 0};
    }
  }
  return found;
}

bool Context::register_memory(const void* address, std::size_t bytes, wire::Use use, wire::Registration& registration) noexcept {
  registration = {};
  const std::uint64_t access = access_of(use);
  fid_mr* region = nullptr;
  if (fi_mr_reg(domain_, address, bytes, access, 0, own_keys_ ? next_key_++ : 0, 0, &region, nullptr)) return false;
  registration.memory = region;
  if (bind_memory_ && (fi_mr_bind(region, &endpoint_->fid, 0) || fi_mr_enable(region))) {
    deregister(registration);
    return false;
  }
  registration.descriptor = fi_mr_desc(region);
  registration.key = fi_mr_key(region);
  registration.base = virtual_addresses_ ? reinterpret_cast<std::uint64_t>(address) : 0;
  return registration.key != FI_KEY_NOTAVAIL;
}

void Context::deregister(wire::Registration& registration) noexcept {
  auto* region = static_cast<fid_mr*>(registration.memory);
  close_fid(region);
  registration = {};
}

void Context::watch(std::string_view name, std::uint32_t process) noexcept { watch_peer(name.data(), process); }

std::string Context::way(wire::Address address) const {
  std::string text = *own_place;
  sockaddr_storage name{};
  std::size_t length = sizeof name;
  if (fi_av_lookup(addresses_, address, &name, &length)) return text;
  if (const std::string there = text_of(reinterpret_cast<const sockaddr&>(name)); !there.empty()) text += " to " + there;
  return text;
}

bool Context::has_left(wire::Address address) const noexcept {
  // libfabric does not tell: a send to a process that is gone is told to try again, for ever. But its host says that nobody listens.
  const char* const provider = info_->fabric_attr->prov_name;
  if (std::strcmp(provider, "tcp;ofi_rxm") && std::strcmp(provider, "tcp") && std::strncmp(provider, "net", 3) && std::strcmp(provider, "sockets"))
    return false;
  char name[512];
  std::size_t length = sizeof name;
  return !fi_av_lookup(addresses_, address, name, &length) && length <= sizeof name && refuses_connections(name, length);
}

bool Context::may_sleep() noexcept {
  fid* waited = &queue_->fid;
  return fi_trywait(fabric, &waited, 1) == 0;
}

}  // namespace heddle::ofi
