// A rank that knows only the bootstrap: what the tests of this folder start. One command a process:
//
//   hello              one line: all that init found out
//   exchange N         puts values of N and of odd sizes, fences, checks everybody's; twice
//   names              publish, look up, withdraw
//   memory             meets the others in the job's shared memory, without any exchange
//   abort CODE TEXT    says "ready", waits for a line of input, aborts
//   abort-now CODE TEXT  the last rank aborts, the others wait in a fence
//   leave CODE         init, then exit without finalize
//   late CODE          the last rank exits before init, the others fence
//   hang               init, fence, "ready", then sleeps for good
//   orphan             as hang, but leaves when the launcher is gone
//   family             as hang, with children and grandchildren that are hard to find; says their process ids
//   fetch FILE         says "ready"; when FILE exists, those on another node than rank 0 fetch what rank 0 put; the others leave
//   parent COMMAND     rank 0 runs a command, the others wait for it; fails as the command does
//   again              init and finalize, twice; what was put the first time is there the second
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "sys/bootstrap/bootstrap.hpp"

namespace {

using namespace heddle::sys;

Bootstrap job;
std::string problem;

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "client rank %d: %s\n", job.rank, text.c_str());
  std::fflush(stderr);
  _exit(3);
}

void require(bool good) {
  if (!good) fail(problem);
}

void check(bool good, const char* what) {
  if (!good) fail(std::string("check failed: ") + what);
}

/// Bytes that every rank can predict, with all 256 values in them.
std::string pattern(int rank, std::size_t bytes, int round) {
  std::string value(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i)
    value[i] =
        static_cast<char>((i * 131 + static_cast<std::size_t>(rank) * 7 + static_cast<std::size_t>(round)) >> (i % 3));
  return value;
}

void exchange(std::size_t bytes) {
  for (int round = 0; round < 2; ++round) {
    const std::string name = "big" + std::to_string(round);
    require(bootstrap::put(name, pattern(job.rank, bytes, round), problem));
    require(bootstrap::put("odd", pattern(job.rank, static_cast<std::size_t>(job.rank % 5), round), problem));
    require(bootstrap::fence(problem));
    std::optional<std::string> value;
    for (int rank = 0; rank < job.size; ++rank) {
      require(bootstrap::get(rank, name, value, problem));
      check(value == pattern(rank, bytes, round), "the value put by another rank");
      require(bootstrap::get(rank, "odd", value, problem));
      check(value == pattern(rank, static_cast<std::size_t>(rank % 5), round), "a short or empty value");
    }
    require(bootstrap::get(0, "nobody-put-this", value, problem));
    check(!value, "a missing key is missing");
    require(bootstrap::fence(problem));
  }
}

void names() {
  std::optional<std::string> port;
  const std::string service = "a service, with % and spaces", where = "port #1 = /x\ny";
  if (job.rank == 0) require(bootstrap::publish(service, where, problem));
  require(bootstrap::fence(problem));
  require(bootstrap::lookup(service, port, problem));
  check(port == where, "lookup finds what was published");
  require(bootstrap::fence(problem));
  if (job.rank == 0) {
    check(!bootstrap::publish(service, "elsewhere", problem), "a name can be published once");
    require(bootstrap::unpublish(service, problem));
    check(!bootstrap::unpublish(service, problem), "a withdrawn name cannot be withdrawn again");
  }
  require(bootstrap::fence(problem));
  require(bootstrap::lookup(service, port, problem));
  check(!port, "a withdrawn name is not found");
  require(bootstrap::fence(problem));
}

void memory() {
  check(job.job_fd >= 0, "there is job memory");
  check((fcntl(job.job_fd, F_GETFD) & FD_CLOEXEC) != 0, "programs that a rank starts do not inherit it");
  check(posix_fallocate(job.job_fd, 0, 4096) == 0, "it can grow");
  void* at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, job.job_fd, 0);
  check(at != MAP_FAILED, "it can be mapped");
  auto* arrived = static_cast<std::atomic<int>*>(at);
  arrived->fetch_add(1, std::memory_order_relaxed);
  for (long poll = 0; arrived->load(std::memory_order_relaxed) < job.size; ++poll) {
    check(poll < 100'000'000, "all ranks arrive");
    sched_yield();
  }
}

void say_ready() {
  std::printf("ready %d %d\n", job.rank, static_cast<int>(getpid()));
  std::fflush(stdout);
}

[[noreturn]] void sleep_for_good() {
  for (;;) pause();
}

/// A child, its child, and one that has left for a session of its own and lost its parents.
void start_family() {
  const auto announce = [] {
    std::printf("member %d\n", static_cast<int>(getpid()));
    std::fflush(stdout);
  };
  if (fork() == 0) {
    if (fork() == 0) {
      setsid();
      announce();
      sleep_for_good();
    }
    announce();
    sleep_for_good();
  }
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    announce();
    sleep_for_good();
  }
}

void hello() {
  static constexpr const char* kinds[] = {"none", "singleton", "pmi1", "pmi2", "pmix"};
  std::string locals;
  for (const int rank : job.local_ranks()) locals += (locals.empty() ? "" : ",") + std::to_string(rank);
  std::printf(
      "rank=%d size=%d local=%d/%d locals=%s appnum=%d universe=%d kind=%s singleton=%d cores=%d memory=%d "
      "id=%s\n",
      job.rank, job.size, job.local_rank, job.local_size, locals.c_str(), job.appnum, job.universe_size,
      kinds[static_cast<int>(job.kind)], job.singleton, job.node_cores, job.job_fd >= 0, job.job_id.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "hello";
  const char* argument = argc > 2 ? argv[2] : "0";
  if (command == "late" && std::atoi(std::getenv("PMI_RANK")) == std::atoi(std::getenv("PMI_SIZE")) - 1)
    return std::atoi(argument);
  if (!bootstrap::init(job, problem)) fail(problem);
  check(!bootstrap::launcher_gone(), "the launcher is there");
  if (command == "leave") _exit(std::atoi(argument));
  if (command == "hello") hello();
  if (command == "exchange") exchange(std::strtoul(argument, nullptr, 10));
  if (command == "names") names();
  if (command == "memory") memory();
  if (command == "abort-now") {
    require(bootstrap::fence(problem));
    if (job.rank == job.size - 1) bootstrap::abort(std::atoi(argument), argc > 3 ? argv[3] : "");
    (void)bootstrap::fence(problem);
    sleep_for_good();
  }
  if (command == "late") require(bootstrap::fence(problem));
  if (command == "hang" || command == "family" || command == "abort" || command == "orphan") {
    if (command == "family") start_family();
    require(bootstrap::fence(problem));
    say_ready();
    if (command == "abort" && job.rank == job.size - 1) {
      char line[64];
      if (std::fgets(line, sizeof line, stdin) == nullptr) fail("no input");
      bootstrap::abort(std::atoi(argument), argc > 3 ? argv[3] : "");
    }
    while (command == "orphan" && !bootstrap::launcher_gone()) usleep(1000);
    if (command == "orphan") _exit(0);
    sleep_for_good();
  }
  if (command == "fetch") {
    require(bootstrap::put("kept", "value", problem));
    require(bootstrap::fence(problem));
    say_ready();
    std::optional<std::string> value;
    if (!job.is_local(0)) {
      while (access(argument, F_OK) != 0) usleep(1000);
      require(bootstrap::get(0, "kept", value, problem));
      check(value == "value", "what rank 0 put, which has nothing more to do");
    }
    require(bootstrap::await_fetches(problem));
  }
  if (command == "parent") {
    const int status = job.rank == 0 ? std::system(argument) : 0;
    require(bootstrap::fence(problem));
    check(status == 0, "the command has succeeded");
  }
  if (command == "again") {
    require(bootstrap::put("kept", pattern(job.rank, 100, 0), problem));
    require(bootstrap::fence(problem));
    require(bootstrap::finalize(bootstrap::Leaving::for_now, problem));
    if (!bootstrap::init(job, problem)) fail(problem);
    require(bootstrap::fence(problem));
    std::optional<std::string> value;
    const int next = (job.rank + 1) % job.size;
    require(bootstrap::get(next, "kept", value, problem));
    check(value == pattern(next, 100, 0), "a value from before");
    require(bootstrap::fence(problem));
  }
  require(bootstrap::finalize(bootstrap::Leaving::for_now, problem));
  return 0;
}
