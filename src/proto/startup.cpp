#include "proto/startup.hpp"

#include "proto/protocol_state.hpp"
#include "proto/send_buffer.hpp"
#include "sys/bootstrap/bootstrap.hpp"
#include "sys/segment.hpp"
#include "transport/shm/node.hpp"
#include "vci/wait.hpp"

namespace heddle::proto {

bool has_freed_sends() noexcept;  // request.cpp

bool start_communication(const sys::Bootstrap& job, std::string& problem) {
  unsigned vcis = configured_vcis();
  read_limits();
  if (!shm::start(job, vcis, fit_limits, problem)) {
    sys::unlink_segment();
    return false;
  }
  start_waiting(job.local_size, job.node_cores);
  return start_vcis(vcis);
}

void finish_sending() noexcept {
  wait_until(nullptr, [] { return !has_backlog() && !has_freed_sends() && !has_buffered_sends(); });
}

void stop_communication() noexcept {
  stop_vcis();
  shm::stop();
}

}  // namespace heddle::proto
