#include "proto/startup.hpp"

#include "proto/network.hpp"
#include "proto/protocol_state.hpp"
#include "proto/send_buffer.hpp"
#include "sys/bootstrap/bootstrap.hpp"
#include "sys/segment.hpp"
#include "transport/shm/node.hpp"
#include "vci/wait.hpp"

namespace heddle::proto {

void report_wait(Vci* vci, const WaitSubject& subject, std::int64_t seconds) noexcept;  // hang_report.cpp

bool start_communication(const sys::Bootstrap& job, std::string& problem) {
  unsigned vcis = configured_vcis();
  read_limits();
  register_point_to_point();
  // Both publish what their peers need; then everybody meets once.
  if (!shm::start(job, vcis, fit_limits, problem) || !net::start(network_host(), job, runtime.self, network::eager_overhead, vcis, problem)) {
    sys::unlink_segment();
    return false;
  }
  if (((shm::needs_fence() || net::needs_fence()) && !sys::bootstrap::fence(problem)) || !shm::meet(job, problem)) {
    sys::unlink_segment();
    return false;
  }
  start_waiting(job.local_size, job.node_cores, report_wait);
  if (!start_vcis(vcis)) return false;
  if (!net::needs_fence()) return true;
  lock_vcis();  // before the network's helper enters them beside the program's threads
  if (!net::meet(problem)) return false;
  park::sleepers.expect_threads();  // the network's own
  return park::network_sleep.open(shm::header->doorbell, problem);
}

namespace {
bool rings_are_drained() noexcept {
  bool drained = true;
  for_each_vci([&](Vci& vci) {
    submit(vci, [&](VciGuard&) { drained = drained && vci.ring.is_drained(); });
  });
  return drained;
}
}  // namespace

void finish_sending(bool for_good) noexcept {
  wait_until(nullptr, [] { return !has_backlog() && !has_freed_operations() && !has_buffered_sends(); });
  // Whoever sent what is kept here, and is not in MPI_Finalize, may still cancel it, and wants an answer.
  do {
    shm::say(shm::Stage::finishing);
    net::begin_finish();
    wait_until(nullptr, [] { return rings_are_drained() && !has_backlog() && !is_awaited() && net::finished(); });
    shm::say(for_good ? shm::Stage::away : shm::Stage::paused);
  } while (!rings_are_drained());
}

void resume_communication() noexcept { shm::say(shm::Stage::running); }

void stop_communication() noexcept {
  net::stop();
  park::network_sleep.close();
  for_each_vci([](Vci& vci) { discard_unexpected(vci); });
  stop_vcis();
  net::close();
  shm::stop();
}

}  // namespace heddle::proto
