#include "transport/net/helper.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sys/clock.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"
#include "transport/net/engine.hpp"
#include "transport/net/liveness.hpp"

namespace heddle::net {

std::atomic<std::uint32_t> ticks{0};

namespace {

HEDDLE_PARAM_INT(gather_us, "HEDDLE_NET_GATHER_US", 100, 10, 1'000'000, "microseconds after which gathered messages leave though their sender does not call MPI");

constexpr std::int64_t tick_ns = 1'000'000'000;
constexpr int quiet_ticks = 50;  ///< without anything gathered, after which the thread sleeps

Common* common = nullptr;
pthread_t thread;
int event_fd = -1;
bool running = false;
// What is asked of the thread. Written by anyone, taken by the thread; a write to event_fd follows where it may sleep.
std::atomic<bool> stopping{false}, flushing{false};

void wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(event_fd, &one, sizeof one);  // fails only when it is full of wakes
}

void tick_all() noexcept {
  ticks.fetch_add(1, std::memory_order_relaxed);
  common->host->for_each_engine(true, [](Held& held, Engine& engine) noexcept { engine.tick(held); });
}

bool find_silent(int seconds, ProcessIndex& process, std::string& host) noexcept {
  if (common->factory->find_silent && common->factory->find_silent(seconds, process, host)) return true;
  bool found = false;
  common->host->for_each_engine(true, [&](Held&, Engine& engine) noexcept { found |= engine.find_silent(seconds, process, host); });
  return found;
}

/// Whether peers' hosts answer: who only receives has sent nothing that could stay unconfirmed. Every quarter of the time allowed, and the
/// answer has to be "silent" twice, so that a machine that was suspended gets one look to catch up.
class HostWatch {
 public:
  void tick() noexcept {
    const std::int64_t allowed = common->patience;
    if (allowed <= 0 || ++ticks_ < std::max<std::int64_t>(allowed / 4, 1)) return;
    ticks_ = 0;
    ProcessIndex rank = 0;
    std::string host;
    if (!find_silent(static_cast<int>(allowed), rank, host)) {
      silent_ = 0;
    } else if (++silent_ == 2) {
      await_the_launcher(common->self.rank);
      sys::fatal("the host of rank %u (%s) has not answered for %lld s: it is down, or the network between is cut (HEDDLE_NET_TIMEOUT sets "
                 "the time; 0: wait for ever)", rank, host.c_str(), static_cast<long long>(allowed));
    }
  }

 private:
  std::int64_t ticks_ = 0;
  int silent_ = 0;
};

/// Sends what is gathered. True if anything was: whoever holds a VCI now has just gathered it, and need not come back, so this must.
bool flush_all() noexcept {
  if (!common->host->has_gathered()) return false;
  common->host->for_each_engine(false, [](Held& held, Engine& engine) noexcept {
    if (engine.has_gathered()) engine.flush(held);
  });
  return true;
}

void* run(void*) noexcept {
  prctl(PR_SET_NAME, "heddle-net");
  prctl(PR_SET_TIMERSLACK, 1);
  int quiet = 0;
  HostWatch hosts;
  std::int64_t next_tick = sys::now_ns() + tick_ns;
  while (!stopping.load(std::memory_order_acquire)) {
    const bool flushes = flushing.load(std::memory_order_acquire);
    std::int64_t now = sys::now_ns();
    if (now >= next_tick) {
      tick_all();
      hosts.tick();
      next_tick = now + tick_ns;
    }
    const std::int64_t pause = flushes ? gather_us.value() * 1000 : next_tick - now;
    const timespec limit{pause / 1'000'000'000, pause % 1'000'000'000};
    pollfd woken{event_fd, POLLIN, 0};
    if (ppoll(&woken, 1, &limit, nullptr) > 0) {
      std::uint64_t wakes;
      [[maybe_unused]] const auto taken = ::read(event_fd, &wakes, sizeof wakes);
    }
    if (!flushes) continue;
    if (flush_all()) quiet = 0;
    else if (++quiet >= quiet_ticks) {
      quiet = 0;
      flushing.store(false, std::memory_order_seq_cst);
      // A sender that gathered between our look and the store believed us awake.
      if (flush_all()) flushing.store(true, std::memory_order_relaxed);
    }
  }
  return nullptr;
}

}  // namespace

bool start_helper(Common& shared, std::string& problem) noexcept {
  common = &shared;
  event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  stopping.store(false, std::memory_order_relaxed);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's signals go to its own threads
  const int code = event_fd < 0 ? errno : pthread_create(&thread, nullptr, run, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (code) problem = std::string("starting the network's helper thread: ") + std::strerror(code);
  return running = code == 0;
}

void stop_helper() noexcept {
  if (!running) return;
  stopping.store(true, std::memory_order_release);
  wake();
  pthread_join(thread, nullptr);
  ::close(event_fd);
  running = false;
}

void wake_helper_to_flush() noexcept {
  // Sequential consistency pairs with the thread's store before its last look: one of us sees the other.
  if (!flushing.exchange(true, std::memory_order_seq_cst)) wake();
}

}  // namespace heddle::net
