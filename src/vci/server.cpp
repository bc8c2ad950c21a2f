#include "vci/server.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "sync/cpu.hpp"
#include "sys/clock.hpp"
#include "sys/log.hpp"
#include "sys/params.hpp"
#include "sys/topology.hpp"
#include "vci/vci.hpp"
#include "vci/wait.hpp"

namespace heddle {
namespace {

HEDDLE_PARAM_CHOICE(progress_by, "HEDDLE_PROGRESS",
                    "who makes progress while the program's threads are not in MPI: auto, a thread of the library's where something in use needs it "
                    "(one-sided communication); thread, always",
                    "auto", "thread");

using Process = detail::WaitingProcess;

// Between two looks at whether the program's threads are there. Twice the longest, and a wake-up, is what a message may have to wait.
constexpr long first_tick = 50'000, last_tick = 300'000;  ///< nanoseconds
constexpr long first_nap = 50'000, last_nap = 1'000'000;  ///< between two looks at work that nobody rings for
constexpr std::int64_t linger = 50'000;  ///< nanoseconds of looking after there was work: one request is often followed by the next
constexpr std::size_t stack_bytes = 512 << 10;

std::atomic<bool> stopping{false};  ///< release; pairs with the thread's acquire

/// What a look at all VCIs has found.
struct Found {
  bool work = false;
  bool company = false;  ///< somebody else has looked after VCIs since the last look, or is in one
};

/// The thread's own state.
class Server {
 public:
  void run() noexcept {
    while (await_absence()) {
      if (!serve()) continue;
      sleep();
    }
  }

 private:
  static bool is_stopping() noexcept { return stopping.load(std::memory_order_acquire); }

  /// Looks now and then, until no thread of the program has made progress between two looks. What nobody cares for is served meanwhile: a thread may
  /// be busy in one VCI and leave the others alone. False: it is time to end.
  bool await_absence() noexcept {
    for (long tick = first_tick;; tick = std::min(tick * 2, last_tick)) {
      const auto view = park::sleepers.server_view();
      if (is_stopping()) return false;
      if (!in_company_) return true;
      park::sleepers.pause_server(view, tick);
      const Found found = look();
      in_company_ = found.company;
      if (!found.work) continue;
      nap_ = first_nap;
      tick = first_tick / 2;
    }
  }

  /// Until there is nothing to do. False: somebody else has come, or it is time to end.
  bool serve() noexcept {
    std::int64_t idle_since = 0;
    bool worked = false;
    while (!is_stopping()) {
      const Found found = look();
      if ((in_company_ = found.company)) return false;
      if (found.work) {
        worked = true;
        idle_since = 0;
        nap_ = first_nap;
        continue;
      }
      if (!worked || Process::crowding().scarce()) return true;
      const std::int64_t now = Process::Clock::now_ns();
      if (!idle_since) idle_since = now;
      if (now - idle_since >= linger) return true;
      for (int i = 0; i < 16; ++i) sync::relax();
    }
    return false;
  }

  /// Until there is work, or company. It stays announced over rings for what turns out to be nothing.
  void sleep() noexcept {
    const bool among_sleepers = park::sleepers.announce_server();
    for (;;) {
      const auto view = park::sleepers.server_view();
      if (is_stopping()) break;
      const Found found = look();
      in_company_ = found.company;
      if (found.work || found.company) break;
      // The network wakes threads that sleep in MPI too, and what has come is mostly theirs.
      if (sleep_at_network(view) && (among_sleepers || park::sleepers.program_sleeps())) {
        in_company_ = true;
        break;
      }
    }
    park::sleepers.retract_server();
  }

  /// False: the sleep was on the word, for a network wakes nobody, or there is none.
  bool sleep_at_network(const park::Sleepers::ServerView& view) noexcept {
    long limit = park::sleepers.reliable() ? 1'000'000'000 : 1'000'000;
    if (work_is_left()) {
      limit = std::min(limit, nap_);
      nap_ = std::min(nap_ * 2, last_nap);
    }
    park::NetworkSources sources;
    constexpr park::Sleepers::Announcement for_all{.awaited = park::anything, .ticket = 0, .sentinel = true, .resting = false};
    if (Process::find_sources(for_all, sources)) {
      limit = Process::network().limit(sources, network_nap_, limit);
      if (!limit) return false;
      if (Process::network().sleep_server(view, sources, limit)) return true;
    }
    park::sleepers.sleep_server(view, limit);
    return false;
  }

  /// A step on every VCI that has work and that nobody else has made one on since the last look; on none after a round by somebody else.
  Found look() noexcept {
    Found found;
    const bool round = detail::round_made.load(std::memory_order_relaxed);
    if (round) detail::round_made.store(false, std::memory_order_relaxed);
    found.company = round;
    for_each_vci([&](Vci& vci) {
      if (is_owned(vci)) return;
      std::uint32_t& left = left_[number(vci.index)];
      const VciUse use = vci.use.load(std::memory_order_relaxed);
      if (use != VciUse::unused) {
        // A holder may be storing at this moment. Then one of the two stores is lost, and with it no more than a hint.
        if (use == VciUse::used) vci.use.store(VciUse::unused, std::memory_order_relaxed);
        left = 0;
        found.company = true;
        return;
      }
      if (round || !has_work(vci, left)) return;
      const std::uint32_t before = left;
      const bool free = try_submit(vci, [&](VciGuard& guard) {
        if (progress_beside_program(guard, left)) found.work = true;
        vci.use.store(VciUse::unused, std::memory_order_relaxed);
      });
      if (!free) found.company = true;
      else if (left > before) park::sleepers.call_program(number(vci.index));
    });
    return found;
  }

  /// Nobody else makes progress there (vci/owned.hpp). Relaxed: as `try_submit` would find.
  static bool is_owned(const Vci& vci) noexcept { return vci.owner.thread.load(std::memory_order_relaxed); }
  /// A hint, without the lock: there is something to do that is not the program's. \param left continuations that are
  static bool has_work(const Vci& vci, std::uint32_t left) noexcept {
    return has_local_work(vci, left) || vci.net.load(std::memory_order_relaxed);
  }
  static bool has_local_work(const Vci& vci, std::uint32_t left) noexcept {
    return vci.ring.pending() || vci.backlogged.load(std::memory_order_relaxed) || vci.moving.load(std::memory_order_relaxed) > left;
  }
  bool work_is_left() const noexcept {
    bool found = false;
    for_each_vci([&](Vci& vci) { found = found || (!is_owned(vci) && has_local_work(vci, left_[number(vci.index)])); });
    return found;
  }

  bool in_company_ = true;
  long nap_ = first_nap;
  park::Nap network_nap_;
  std::uint32_t left_[lanes] = {};  ///< for each VCI, continuations that the last step here left to the program
};

void* run(void*) noexcept {
  prctl(PR_SET_TIMERSLACK, 1);
  Server().run();
  return nullptr;
}

std::mutex mutex;  // guards what follows
int uses = 0;
bool runs = false;
pthread_t thread;
pid_t process = 0;  ///< that has started it: a forked child has no such thread

/// Where the program may run, whatever core the calling thread is bound to.
void allow_all_cores(pthread_attr_t& attributes) noexcept {
  const std::vector<int> cores = sys::topology().cores.list();
  if (cores.empty()) return;
  const auto most = static_cast<std::size_t>(cores.back()) + 1;
  cpu_set_t* const set = CPU_ALLOC(most);
  if (!set) return;
  CPU_ZERO_S(CPU_ALLOC_SIZE(most), set);
  for (const int core : cores) CPU_SET_S(static_cast<std::size_t>(core), CPU_ALLOC_SIZE(most), set);
  pthread_attr_setaffinity_np(&attributes, CPU_ALLOC_SIZE(most), set);
  CPU_FREE(set);
}

int create() noexcept {
  pthread_attr_t attributes;
  if (const int code = pthread_attr_init(&attributes)) return code;
  allow_all_cores(attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's signals go to its own threads
  int code = pthread_create(&thread, &attributes, run, nullptr);
  // The program's thread-local objects may need more stack than that, and the cores may have changed.
  if (code == EINVAL) code = pthread_create(&thread, nullptr, run, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (!code) pthread_setname_np(thread, "heddle-server");
  return code;
}

/// \pre `mutex` is held
void stop() noexcept {
  if (!runs || process != getpid()) return;
  stopping.store(true, std::memory_order_release);
  park::sleepers.call_server();
  pthread_join(thread, nullptr);
  runs = false;
  park::sleepers.leave([] { return false; });  // threads that sleep must not be without a sentinel
}

/// exit() without MPI_Finalize: the thread must be gone before objects are that it uses. Held: another thread, or the one that a signal handler
/// interrupted, is at it.
void stop_at_exit() noexcept {
  const std::unique_lock hold(mutex, std::try_to_lock);
  if (hold) stop();
}

bool start() noexcept {
  expect_threads();
  stopping.store(false, std::memory_order_relaxed);
  if (const int code = create()) {
    errno = code;
    return false;
  }
  process = getpid();
  [[maybe_unused]] static const int registered = std::atexit(stop_at_exit);
  return runs = true;
}

}  // namespace

bool acquire_server() noexcept {
  const std::lock_guard hold(mutex);
  if (!runs && !start()) return false;
  ++uses;
  return true;
}

void release_server() noexcept {
  const std::lock_guard hold(mutex);
  if (uses && !--uses) stop();
}

void start_server_if_wanted() noexcept {
  if (progress_by.value() != 0 && !acquire_server())
    HEDDLE_NOTICE_ONCE("HEDDLE_PROGRESS=thread, but no thread could be started: %s", std::strerror(errno));
}

void end_server() noexcept {
  const std::lock_guard hold(mutex);
  uses = 0;
  stop();
}

}  // namespace heddle
