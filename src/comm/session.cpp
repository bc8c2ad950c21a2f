#include "comm/session.hpp"

#include <cstring>

#include "comm/runtime.hpp"
#include "proto/send_buffer.hpp"
#include "sys/error.hpp"

namespace heddle {
namespace {

constexpr const char* sets[] = {"mpi://WORLD", "mpi://SELF"};

struct Level {
  const char* name;
  int value;
};
constexpr Level levels[] = {{"MPI_THREAD_SINGLE", MPI_THREAD_SINGLE},
                            {"MPI_THREAD_FUNNELED", MPI_THREAD_FUNNELED},
                            {"MPI_THREAD_SERIALIZED", MPI_THREAD_SERIALIZED},
                            {"MPI_THREAD_MULTIPLE", MPI_THREAD_MULTIPLE}};

/// The index of the named set, or -1. URIs compare without regard to case (MPI-5.0 §11.3.2).
int find_set(const char* name) noexcept {
  for (int n = 0; n < process_set_count(); ++n)
    if (!strcasecmp(name, sets[n])) return n;
  return -1;
}

int unknown_set(const char* name) noexcept {
  return error(MPI_ERR_ARG, "there is no process set \"%.200s\"; this job has mpi://WORLD and mpi://SELF", name);
}

}  // namespace

int open_session(Info* info, Errhandler* errhandler, Session** out) noexcept {
  // Sessions belong to parts of a program that know nothing of each other, so without a wish the safe level is given.
  int level = MPI_THREAD_MULTIPLE;
  std::string value;
  if (info && info->find("thread_level", &value)) {
    bool known = false;
    for (const Level& candidate : levels)
      if (value == candidate.name) level = candidate.value, known = true;
    if (!known)
      return error(MPI_ERR_INFO_VALUE, "thread_level is \"%s\"; it must be MPI_THREAD_SINGLE, _FUNNELED, _SERIALIZED or "
                   "_MULTIPLE", value.c_str());
  }
  Session* session = pool<Session>().create();
  if (!session) return error(MPI_ERR_NO_MEM, "no memory for a session");
  // One thread at a time, or one for good, means: with what belongs to this session. Other threads may be in others meanwhile (MPI-5.0 §11.6.2,
  // threads and the Sessions Model), so all are given what MULTIPLE gives. SINGLE says that the process has no other thread.
  if (const int code = start_runtime(level == MPI_THREAD_SINGLE ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE)) {
    pool<Session>().destroy(session);
    return code;
  }
  session->thread_level = level;
  session->errhandler.set(errhandler);
  *out = session;
  return MPI_SUCCESS;
}

int close_session(Session* session) noexcept {
  end_send_buffer(session);
  if (!session->release()) return MPI_SUCCESS;
  pool<Session>().destroy(session);
  return stop_runtime();
}

Info* session_info(const Session& session) noexcept {
  Info* info = new_info();
  if (!info) return nullptr;
  for (const Level& level : levels)
    if (session.thread_level == level.value) info->put("thread_level", level.name);
  info->put("mpi_memory_alloc_kinds", memory_alloc_kinds);
  return info;
}

int process_set_count() noexcept { return static_cast<int>(std::size(sets)); }

const char* process_set_name(int n) noexcept { return n >= 0 && n < process_set_count() ? sets[n] : nullptr; }

int process_set_group(const char* name, Group** group) noexcept {
  const int set = find_set(name);
  if (set < 0) return unknown_set(name);
  *group = set == 0 ? make_strided_group(0, 1, runtime.size) : make_strided_group(runtime.self, 1, 1);
  return *group ? MPI_SUCCESS : error(MPI_ERR_NO_MEM, "no memory for a group");
}

int process_set_info(const char* name, Info** info) noexcept {
  const int set = find_set(name);
  if (set < 0) return unknown_set(name);
  *info = new_info();
  if (!*info) return error(MPI_ERR_NO_MEM, "no memory for an info object");
  (*info)->put("mpi_size", std::to_string(set == 0 ? runtime.size : 1));
  return MPI_SUCCESS;
}

}  // namespace heddle
