#include "guard.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

namespace heddle::mpiexec {
namespace {

constexpr int rounds = 20;  // processes can fork while we scan; each round catches the children of the one before

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

template <typename Use>
void for_each_process(Use&& use) {
  DIR* processes = opendir("/proc");
  if (processes == nullptr) return;
  while (const dirent* entry = readdir(processes)) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid > 1) use(pid);
  }
  closedir(processes);
}

bool kill_by_environment(const std::string& job_id) {
  const std::string mark = "HEDDLE_JOB_ID=" + job_id;
  bool found = false;
  for_each_process([&](pid_t pid) {
    if (pid == getpid()) return;
    const std::string environment = text_of("/proc/" + std::to_string(pid) + "/environ");
    if (environment.find(mark) == std::string::npos) return;
    found = kill(pid, SIGKILL) == 0 || found;
  });
  return found;
}

[[noreturn]] void stand_guard(int pipe, const pid_t* groups, int ranks, const std::string& job_id) {
  setsid();  // the terminal's signals are for the launcher
  prctl(PR_SET_NAME, "heddle-guard");
  dup2(pipe, 3);
  close_range(4, ~0U, 0);
  const int nothing = open("/dev/null", O_RDWR);
  for (int number = 0; number < 3; ++number) dup2(nothing, number);
  close(nothing);
  char order = 0;
  ssize_t got = 0;
  do got = read(3, &order, 1);
  while (got < 0 && errno == EINTR);
  if (got == 1) _exit(0);  // dismissed
  for (int rank = 0; rank < ranks; ++rank)
    if (groups[rank] > 1) kill(-groups[rank], SIGKILL);
  for (int round = 0; round < rounds && kill_by_environment(job_id); ++round) usleep(10'000);
  _exit(0);
}

}  // namespace

Guard::Guard(const std::string& job_id, int ranks) {
  bytes_ = static_cast<std::size_t>(ranks) * sizeof(pid_t);
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  groups_ = static_cast<pid_t*>(memory);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    close(ends[1]);
    stand_guard(ends[0], groups_, ranks, job_id);
  }
  close(ends[0]);
  pipe_ = ends[1];
}

void Guard::set_group(int rank, pid_t group) {
  if (groups_ != nullptr) groups_[rank] = group;
}

void Guard::dismiss() {
  if (pipe_ >= 0) {
    const char order = 'q';
    [[maybe_unused]] const ssize_t sent = write(pipe_, &order, 1);  // fails if it is gone already
    close(pipe_);
    pipe_ = -1;
  }
  if (pid_ > 0) {
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }
  if (groups_ != nullptr) munmap(groups_, bytes_);
  groups_ = nullptr;
}

bool signal_children(int signal, pid_t except) {
  bool found = false;
  const std::string self = std::to_string(getpid());
  // The kernel's own list where it has one (CONFIG_PROC_CHILDREN), else all processes' parents.
  std::ifstream list("/proc/self/task/" + self + "/children");
  if (list) {
    for (pid_t child = 0; list >> child;)
      if (child != except) found = kill(child, signal) == 0 || found;
    return found;
  }
  for_each_process([&](pid_t pid) {
    const std::string stat = text_of("/proc/" + std::to_string(pid) + "/stat");
    const std::size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || name_end + 4 > stat.size()) return;
    if (std::atoi(stat.c_str() + name_end + 4) == getpid() && pid != except) found = kill(pid, signal) == 0 || found;
  });
  return found;
}

}  // namespace heddle::mpiexec
