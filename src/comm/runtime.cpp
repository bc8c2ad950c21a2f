#include "comm/runtime.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "comm/routing.hpp"
#include "core/comm.hpp"
#include "core/info.hpp"
#include "proto/startup.hpp"
#include "sys/bootstrap/bootstrap.hpp"
#include "sys/error.hpp"
#include "sys/log.hpp"
#include "sys/mistakes.hpp"
#include "sys/params.hpp"
#include "transport/process.hpp"
#include "transport/shm/node.hpp"
#include "vci/server.hpp"
#include "vci/wait.hpp"

namespace heddle {
namespace {

HEDDLE_PARAM_CHOICE(thread_level, "HEDDLE_THREAD_LEVEL",
                    "level of thread support that MPI_Init (not MPI_Init_thread) provides: single, funneled, serialized or "
                    "multiple",
                    "single", "funneled", "serialized", "multiple");

std::mutex life_mutex;        // guards starting and stopping: `users`, writes of `runtime` and `job_to_fill`
int users = 0;                // the world and the open sessions

/// Ends the job by way of the launcher. The message was printed by this process, so that it is not lost with a launcher's.
void abort_through_launcher(int exit_code, const char*) noexcept {
  sys::bootstrap::abort(exit_code, sys::bootstrap::said_already);
}

/// Communication, once up, stays up until the process ends. A later session finds it as the other processes know it: one of them
/// may be in that session already while another has yet to leave the one before, and messages must not be lost between.
/// Holds the id of the process that has it, so that the exit of a forked child leaves the parent's alone. 0: not up.
pid_t communicating = 0;  // guarded by life_mutex
bool late = false;        ///< exit() has come to `stop_at_exit` before MPI was finalized. Guarded by life_mutex

void stop_at_exit() noexcept {
  // Held: another thread starts or stops MPI while this one calls exit(), or this one does and a signal handler of its called exit().
  const std::unique_lock lock(life_mutex, std::try_to_lock);
  if (!lock || communicating != getpid()) return;
  if (users > 0) {  // other threads may still be at it, or a global object finalizes as it is destroyed
    late = true;
    return;
  }
  proto::stop_communication();
  processes.clear();
  communicating = 0;
}

/// Rank 0 speaks for all, whose environment is mostly the same; what follows a colon of mpiexec's may have one of its own.
void report_mistakes_of_job(const sys::Bootstrap& job) noexcept {
  if (job.rank == 0 || job.appnum > 0) sys::report_mistakes(job.rank == 0);
}

int exit_status = 0;            ///< what exit() was called with
std::atomic<pid_t> exiting{0};  ///< the process that has called it, after MPI_Init

void note_exit(int status, void* process) noexcept {
  if (reinterpret_cast<std::intptr_t>(process) != getpid()) return;  // a forked child, which has no part in the job
  exit_status = status;
  exiting.store(getpid(), std::memory_order_release);  // pairs with end_job_at_early_exit
}

/// A process that calls exit() between MPI_Init and MPI_Finalize leaves others that wait for it. Our mpiexec notices and says so; Slurm takes
/// a zero for success and lets the others wait for ever, and Hydra kills them and reports success. What has ended by a signal or `_exit`
/// does not come here.
void end_job_at_early_exit() noexcept {
  const sys::Bootstrap& job = heddle::job();
  if (exiting.load(std::memory_order_acquire) != getpid() || !is_running() || job.singleton || job.job_fd >= 0) return;
  char text[100];
  std::snprintf(text, sizeof text, "it has called exit(%d) without MPI_Finalize", exit_status);
  sys::bootstrap::abort(exit_status & 0xff ? exit_status : 1, text);
}

/// Handlers run in reverse: the one that a library registers as it is loaded, before the program begins, comes after those of the program and
/// the destructors of its global objects, either of which may finalize. (Loaded later, it comes before those that were there already.)
[[gnu::constructor]] void watch_for_early_exit() noexcept { std::atexit(end_job_at_early_exit); }

/// What the job is called in process names: FNV-1a of its id.
std::uint32_t number_of(const sys::Bootstrap& job) noexcept {
  std::uint32_t number = 0x811c9dc5u;
  for (const char c : job.job_id) number = (number ^ static_cast<unsigned char>(c)) * 0x01000193u;
  return number;
}

ProcessPlace locate(std::uint32_t rank) noexcept {
  const bool neighbor = job().is_local(static_cast<int>(rank));
  return {rank == runtime.self ? Route::self : neighbor && shm::enabled() ? Route::node : Route::network, neighbor};
}

void provide(int level) noexcept {
  runtime.thread_level.store(level, std::memory_order_relaxed);
  if (level == MPI_THREAD_MULTIPLE) expect_threads();
}

int start_locked() noexcept {
  sys::Bootstrap& job = job_to_fill();
  job = {};
  std::string text;
  if (!sys::bootstrap::init(job, text)) {
    sys::report_mistakes(true);  // each process for itself: one of them may be why
    return error(MPI_ERR_OTHER, "%s", text.c_str());
  }
  if (!communicating) {  // a later start finds the same
    runtime.rank = job.rank;
    runtime.size = job.size;
    runtime.local_rank = job.local_rank;
    runtime.local_size = job.local_size;
    runtime.appnum = job.appnum < 0 ? MPI_UNDEFINED : job.appnum;
    runtime.universe_size = job.universe_size < 0 ? MPI_UNDEFINED : job.universe_size;
    runtime.self = static_cast<ProcessIndex>(job.rank);
  }
  if (!job.singleton) {
    sys::set_log_rank(job.rank);
    sys::set_abort_hook(abort_through_launcher);
  }
  report_mistakes_of_job(job);
  if (!communicating) {
    if (processes.add_job(number_of(job), static_cast<std::uint32_t>(job.size), locate) == ProcessTable::unknown)
      return error(MPI_ERR_NO_MEM, "no memory for the table of %d processes", job.size);
    runtime.name = processes.name_of(runtime.self);
    if (!proto::start_communication(job, text)) {
      processes.clear();
      return error(MPI_ERR_OTHER, "%s", text.c_str());
    }
    communicating = getpid();
    [[maybe_unused]] static const int registered = std::atexit(stop_at_exit) | on_exit(note_exit, reinterpret_cast<void*>(std::intptr_t{getpid()}));
  } else {
    proto::resume_communication();
  }
  return MPI_SUCCESS;
}

int stop_locked() noexcept {
  using sys::bootstrap::Leaving;  // without a world, one session often follows another; after it, hardly ever
  end_server();  // from here on this thread looks after everything
  const Leaving leaving = world_phase() == Phase::before_init ? Leaving::for_now : Leaving::for_good;
  proto::finish_sending(leaving == Leaving::for_good);
  std::string text;
  if (!sys::bootstrap::finalize(leaving, text)) return error(MPI_ERR_OTHER, "%s", text.c_str());
  return MPI_SUCCESS;
}

}  // namespace

int start_runtime(int required) noexcept {
  std::lock_guard lock(life_mutex);
  if (users == 0) {
    runtime.threads.store(false, std::memory_order_relaxed);
    provide(required);
    if (const int code = start_locked()) return code;
    start_server_if_wanted();
  } else if (required > runtime.thread_level.load(std::memory_order_relaxed)) {
    // Below MULTIPLE no other thread of the program is inside the library now, or it would be wrong already.
    provide(required);
  }
  ++users;
  runtime.users.store(users, std::memory_order_release);
  return MPI_SUCCESS;
}

int stop_runtime() noexcept {
  std::lock_guard lock(life_mutex);
  const int code = users == 1 ? stop_locked() : MPI_SUCCESS;
  --users;
  if (!users && late) std::atexit(stop_at_exit);  // comes next
  runtime.users.store(users, std::memory_order_release);
  return code;
}

int default_thread_level() noexcept {
  constexpr int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
  return levels[thread_level.value()];  // as in the declaration
}

int init_world(int required) noexcept {
  static std::mutex once;  // two threads in MPI_Init: the second gets the error, not a half-made world
  std::lock_guard lock(once);
  switch (world_phase()) {
    case Phase::running: return error(MPI_ERR_OTHER, "MPI was initialized before; call MPI_Init or MPI_Init_thread once");
    case Phase::finalized:
      return error(MPI_ERR_OTHER, "MPI was finalized; only sessions (MPI_Session_init) can be opened after that");
    case Phase::before_init: break;
  }
  const int level = required >= MPI_THREAD_MULTIPLE     ? MPI_THREAD_MULTIPLE
                    : required >= MPI_THREAD_SERIALIZED ? MPI_THREAD_SERIALIZED
                    : required >= MPI_THREAD_FUNNELED   ? MPI_THREAD_FUNNELED
                                                        : MPI_THREAD_SINGLE;
  if (const int code = start_runtime(level)) return code;
  runtime.main_thread = pthread_self();
  if (const int code = make_predefined_comms()) {
    stop_runtime();
    return code;
  }
  show_routing(comm_world);
  show_routing(comm_self);
  fill_environment(info_env, 0, nullptr);
  runtime.world.store(Phase::running, std::memory_order_release);
  return MPI_SUCCESS;
}

int finalize_world() noexcept {
  switch (world_phase()) {
    case Phase::before_init: return error(MPI_ERR_OTHER, "MPI was not initialized; call MPI_Init first");
    case Phase::finalized: return error(MPI_ERR_OTHER, "MPI was finalized before");
    case Phase::running: break;
  }
  // First of all, while everything still works: the callbacks that programs hang on MPI_COMM_SELF for their own clean-up.
  if (const int code = delete_all_attributes(attributes_of(comm_self))) return code;
  if (const int code = delete_all_attributes(attributes_of(comm_world))) return code;
  const int code = stop_runtime();
  end_predefined_comms();
  runtime.world.store(Phase::finalized, std::memory_order_release);
  return code;
}

}  // namespace heddle
