// The client side of PMIx (prterun, Open MPI's mpirun, Slurm's --mpi=pmix), through libpmix, which is looked for at run
// time: a program that was built without it, or runs where it is missing, loses nothing but these launchers.
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>

#include "sys/bootstrap/backend.hpp"
#include "sys/bootstrap/job_id.hpp"
#include "sys/bootstrap/patience.hpp"
#include "sys/bootstrap/pmi1_wire.hpp"
#include "sys/bootstrap/pmix_library.hpp"
#include "sys/params.hpp"

#ifdef HEDDLE_HAVE_PMIX

namespace heddle::sys::bootstrap {
namespace {

constexpr const char* key_prefix = "heddle.";
constexpr int get_retries = 1000;  // a millisecond apart
HEDDLE_PARAM_INT(get_timeout_s, "HEDDLE_PMIX_TIMEOUT", 60, 1, 1'000'000,
                 "seconds that a PMIx server may take to find what another process has put");

struct FreeValue {
  void operator()(pmix_value_t* value) const {
    if (value->type == PMIX_STRING)
      std::free(value->data.string);
    else if (value->type == PMIX_BYTE_OBJECT)
      std::free(value->data.bo.bytes);
    else if (value->type == PMIX_PROC)
      std::free(value->data.proc);
    std::free(value);
  }
};
using Value = std::unique_ptr<pmix_value_t, FreeValue>;

/// An attribute that is a condition of the call it is given to.
pmix_info_t flag(const char* key) {
  pmix_info_t info{};
  std::snprintf(info.key, sizeof info.key, "%s", key);
  info.value.type = PMIX_BOOL;
  info.value.data.flag = true;
  return info;
}

/// An answer that may arrive after the wait has ended: shared by the waiter and the library's callback.
struct Answer {
  std::mutex lock;
  std::condition_variable here;
  bool complete = false;
  pmix_status_t status = PMIX_SUCCESS;
  std::optional<std::string> bytes;  ///< empty: not the bytes that we put

  static void arrived(pmix_status_t status, pmix_value_t* value, void* shared) {
    const std::unique_ptr<std::shared_ptr<Answer>> owner(static_cast<std::shared_ptr<Answer>*>(shared));
    Answer& answer = **owner;
    const std::lock_guard hold(answer.lock);
    answer.status = status;
    if (status == PMIX_SUCCESS && value != nullptr && value->type == PMIX_BYTE_OBJECT)
      answer.bytes.emplace(value->data.bo.bytes, value->data.bo.size);
    answer.complete = true;
    answer.here.notify_one();
  }
  static void ended(pmix_status_t status, void* shared) { arrived(status, nullptr, shared); }
};

pmix_info_t range_of_session() {
  pmix_info_t info{};
  std::snprintf(info.key, sizeof info.key, "%s", PMIX_RANGE);
  info.value.type = PMIX_DATA_RANGE;
  info.value.data.range = PMIX_RANGE_SESSION;
  return info;
}

/// The last value of `key` in what one process put before one fence.
std::optional<std::string> find_put(std::string_view puts, std::string_view key) {
  std::optional<std::string> value;
  while (puts.starts_with('=')) {
    const std::size_t space = puts.find(' '), end = puts.find(' ', space + 1);
    if (end == std::string_view::npos) break;
    const auto length = parse_number(puts.substr(space + 1, end - space - 1));
    if (!length || *length < 0 || static_cast<std::size_t>(*length) > puts.size() - end - 1) break;
    if (puts.substr(1, space - 1) == key) value = std::string(puts.substr(end + 1, static_cast<std::size_t>(*length)));
    puts.remove_prefix(end + 1 + static_cast<std::size_t>(*length));
  }
  return value;
}

class Pmix final : public Backend {
 public:
  bool start(Bootstrap& job, std::string& error) override;
  bool put(std::string_view key, std::string_view value, std::string& error) override;
  bool fence(std::string& error) override;
  bool await_fetches(std::string& error) override;
  bool get(int rank, std::string_view key, std::optional<std::string>& value, std::string& error) override;
  bool publish(std::string_view service, std::string_view port, std::string& error) override;
  bool lookup(std::string_view service, std::optional<std::string>& port, std::string& error) override;
  bool unpublish(std::string_view service, std::string& error) override;
  bool finalize(Leaving leaving, std::string& error) override;
  void abort(int code, std::string_view message) noexcept override;
  bool launcher_gone() noexcept override { return gone_.load(std::memory_order_relaxed); }

 private:
  /// Describes what failed, in the library's words and ours.
  bool failed(const char* what, pmix_status_t status, std::string& error) const;
  std::optional<unsigned> number(std::uint32_t rank, const char* key);
  /// A fence over all processes, without the values.
  bool meet(const char* what, std::string& error);
  pmix_status_t ask(const pmix_proc_t& whose, const std::string& name, std::optional<std::string>& puts);
  bool find_local_ranks(Bootstrap& job, std::string& error);

  static void on_lost_server(std::size_t, pmix_status_t, const pmix_proc_t*, pmix_info_t[], std::size_t, pmix_info_t[],
                             std::size_t, pmix_event_notification_cbfunc_fn_t answer, void* answer_to);

  PmixLibrary library_{};
  pmix_proc_t me_{};
  std::optional<Bootstrap> known_;  ///< of the first start
  bool away_ = false;               ///< `finalize` was called, the server does not know
  pid_t process_ = 0;
  std::string unsaid_;              ///< put since the last fence: `=KEY LENGTH BYTES` for each
  int fences_ = 0;                  ///< of this process, restarts included; each has one value of every rank

  // Relaxed everywhere: a flag on its own, nothing is read through it. Static: the callback has no other way to find
  // it, and a process has one launcher.
  static inline std::atomic<bool> gone_{false};
};

bool Pmix::failed(const char* what, pmix_status_t status, std::string& error) const {
  error = "rank " + std::to_string(me_.rank) + ": " + what + ": " + library_.error_string(status) + " (PMIx, " +
          library_.path + ")";
  if (status == PMIX_ERR_LOST_CONNECTION || status == PMIX_ERR_UNREACH || status == PMIX_ERR_COMM_FAILURE)
    error += "; the launcher has died or is ending the job";
  return false;
}

void Pmix::on_lost_server(std::size_t, pmix_status_t, const pmix_proc_t*, pmix_info_t[], std::size_t, pmix_info_t[],
                          std::size_t, pmix_event_notification_cbfunc_fn_t answer, void* answer_to) {
  gone_.store(true, std::memory_order_relaxed);
  if (answer != nullptr) answer(PMIX_EVENT_ACTION_COMPLETE, nullptr, 0, nullptr, nullptr, answer_to);
}

std::optional<unsigned> Pmix::number(std::uint32_t rank, const char* key) {
  pmix_proc_t whose = me_;
  whose.rank = rank;
  pmix_info_t only_here = flag(PMIX_OPTIONAL);
  pmix_value_t* raw = nullptr;
  if (library_.get(&whose, key, &only_here, 1, &raw) != PMIX_SUCCESS || raw == nullptr) return std::nullopt;
  const Value value(raw);
  switch (value->type) {
    case PMIX_UINT32:
      return value->data.uint32;
    case PMIX_UINT16:
      return value->data.uint16;
    case PMIX_PROC_RANK:
      return value->data.rank;
    case PMIX_INT:
      return static_cast<unsigned>(value->data.integer);
    case PMIX_UINT:
      return value->data.uint;
    default:
      return std::nullopt;
  }
}

/// A program that a rank starts inherits everything a PMIx server asks for, would be taken for the rank, and would wait in a fence that nobody
/// else enters. So a rank leaves a mark in its environment. False in a program that finds another process's mark.
bool mark_process(std::string& error) {
  constexpr const char* name = "PMIX_HEDDLE_PROCESS";
  const char *job = getenv("PMIX_NAMESPACE"), *rank = getenv("PMIX_RANK"), *found = getenv(name);
  const std::string as = std::string(job != nullptr ? job : "") + " " + (rank != nullptr ? rank : "") + " ";
  const std::string mark = as + std::to_string(getpid());
  if (found != nullptr && mark != found && std::string_view(found).starts_with(as)) {
    error = "this program was started by rank " + std::string(rank != nullptr ? rank : "?") + " of a job (process " + (found + as.size()) +
            "), whose variables it has inherited, and is no rank itself: HEDDLE_SINGLETON=1 runs it on its own";
    return false;
  }
  setenv(name, mark.c_str(), 1);
  return true;
}

bool Pmix::start(Bootstrap& job, std::string& error) {
  if (away_) {
    away_ = false;
    job = *known_;
    return true;
  }
  if (!mark_process(error) || !load_pmix(library_, error)) return false;
  const pmix_status_t status = library_.init(&me_, nullptr, 0);
  if (status != PMIX_SUCCESS) {
    error = "the PMIx server of this job (PMIX_NAMESPACE is set) cannot be reached: " +
            std::string(library_.error_string(status)) + " (" + library_.path +
            "). A program started by a rank inherits the variables only; HEDDLE_SINGLETON=1 runs it on its own";
    return false;
  }
  pmix_status_t code = PMIX_ERR_LOST_CONNECTION;
  library_.register_event_handler(&code, 1, nullptr, 0, &Pmix::on_lost_server, nullptr, nullptr);
  if (known_) {  // servers need not tell it twice (Slurm's does not)
    job = *known_;
    return true;
  }
  job = Bootstrap{};
  job.kind = BootstrapKind::pmix;
  job.singleton = false;
  job.rank = static_cast<int>(me_.rank);
  const auto size = number(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
  if (!size || *size <= me_.rank) {
    error = "the PMIx server does not say how many processes the job has (" + std::string(PMIX_JOB_SIZE) + ")";
    return false;
  }
  job.size = static_cast<int>(*size);
  job.universe_size = static_cast<int>(number(PMIX_RANK_WILDCARD, PMIX_UNIV_SIZE).value_or(static_cast<unsigned>(-1)));
  job.appnum = static_cast<int>(number(me_.rank, PMIX_APPNUM).value_or(static_cast<unsigned>(-1)));
  job.job_id = file_name_part(me_.nspace);
  if (!find_local_ranks(job, error)) return false;
  known_ = job;
  process_ = getpid();
  return true;
}

/// The server knows who is here; where the others are is never asked (`mapping` stays empty): that would be one answer
/// a node or a rank, in every process.
bool Pmix::find_local_ranks(Bootstrap& job, std::string& error) {
  pmix_proc_t all = me_;
  all.rank = PMIX_RANK_WILDCARD;
  pmix_info_t only_here = flag(PMIX_OPTIONAL);
  pmix_value_t* raw = nullptr;
  const pmix_status_t status = library_.get(&all, PMIX_LOCAL_PEERS, &only_here, 1, &raw);
  const Value value(raw);
  if (status != PMIX_SUCCESS || value == nullptr || value->type != PMIX_STRING || value->data.string == nullptr)
    return failed("the server does not say which ranks are on this node", status, error);
  std::string_view rest = value->data.string;
  std::vector<int> local;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (const auto rank = parse_number(rest.substr(0, comma))) local.push_back(*rank);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  std::sort(local.begin(), local.end());
  const auto here = std::lower_bound(local.begin(), local.end(), job.rank);
  if (here == local.end() || *here != job.rank) {
    error = "the PMIx server's list of the ranks on this node, \"" + std::string(value->data.string) +
            "\", lacks this rank, " + std::to_string(job.rank);
    return false;
  }
  job.local_rank = static_cast<int>(here - local.begin());
  job.local_size = static_cast<int>(local.size());
  // Any number that differs from node to node: ranks on one node have their lowest in common.
  job.node = static_cast<int>(number(me_.rank, PMIX_NODEID).value_or(static_cast<unsigned>(local.front())));
  job.listed_local_ranks = std::move(local);
  return true;
}

bool Pmix::put(std::string_view key, std::string_view value, std::string&) {
  unsaid_ += "=" + std::string(key) + " " + std::to_string(value.size()) + " ";
  unsaid_ += value;
  return true;
}

// What a process puts between two fences is one value of PMIx, and there is one for every fence. A server asked for a
// key that is not there waits for it; these always are, and cost one message however many keys they hold. It also makes
// overwriting work, which servers and their clients' caches do not.
bool Pmix::fence(std::string& error) {
  const std::string name = key_prefix + std::to_string(fences_);
  unsaid_ += '.';  // never empty: some servers lose such values
  pmix_value_t stored{};
  stored.type = PMIX_BYTE_OBJECT;
  stored.data.bo.bytes = unsaid_.data();
  stored.data.bo.size = unsaid_.size();
  pmix_status_t status = library_.put(PMIX_GLOBAL, name.c_str(), &stored);
  if (status == PMIX_SUCCESS) status = library_.commit();
  if (status != PMIX_SUCCESS) return failed("sending values to the server", status, error);
  unsaid_.clear();
  // Without PMIX_COLLECT_DATA: values stay where they are until somebody asks for them.
  if (!meet("the fence", error)) return false;
  ++fences_;
  return true;
}

bool Pmix::await_fetches(std::string& error) { return meet("the second fence", error); }

bool Pmix::meet(const char* what, std::string& error) {
  const auto answer = std::make_shared<Answer>();
  auto shared = std::make_unique<std::shared_ptr<Answer>>(answer);
  pmix_status_t status = library_.fence_nb(nullptr, 0, nullptr, 0, &Answer::ended, shared.get());
  if (status == PMIX_OPERATION_SUCCEEDED) return true;  // there will be no callback, as with an error
  if (status != PMIX_SUCCESS) return failed(what, status, error);
  shared.release();  // the callback's
  Patience patience(known_->rank, known_->size, speaks_in_fences(*known_));
  std::unique_lock hold(answer->lock);
  while (!answer->here.wait_for(hold, std::chrono::seconds(1), [&] { return answer->complete; }))
    if (!patience.wait_on(error)) return false;
  status = answer->status;
  return status == PMIX_SUCCESS || failed(what, status, error);
}

/// Waits for the server itself, because the servers' own time limit (PMIX_TIMEOUT) covers some of their reasons to wait
/// only.
pmix_status_t Pmix::ask(const pmix_proc_t& whose, const std::string& name, std::optional<std::string>& puts) {
  const auto answer = std::make_shared<Answer>();
  auto shared = std::make_unique<std::shared_ptr<Answer>>(answer);
  const pmix_status_t status = library_.get_nb(&whose, name.c_str(), nullptr, 0, &Answer::arrived, shared.get());
  if (status != PMIX_SUCCESS) return status;  // there will be no callback
  shared.release();                           // the callback's
  std::unique_lock hold(answer->lock);
  const std::chrono::seconds limit(get_timeout_s.value());
  if (!answer->here.wait_for(hold, limit, [&] { return answer->complete; })) return PMIX_ERR_TIMEOUT;
  puts = std::move(answer->bytes);
  return answer->status;
}

bool Pmix::get(int rank, std::string_view key, std::optional<std::string>& value, std::string& error) {
  pmix_proc_t whose = me_;
  whose.rank = static_cast<pmix_rank_t>(rank);
  value.reset();
  for (int fence = fences_ - 1; fence >= 0 && !value; --fence) {
    const std::string name = key_prefix + std::to_string(fence);
    std::optional<std::string> puts;
    pmix_status_t status = ask(whose, name, puts);
    // The value exists, but Slurm's server sometimes denies it when several ranks of its node ask at once.
    for (int again = 0; status == PMIX_ERR_NOT_FOUND && again < get_retries; ++again) {
      usleep(1000);
      status = ask(whose, name, puts);
    }
    if (status != PMIX_SUCCESS) {
      failed(("fetching a value of rank " + std::to_string(rank)).c_str(), status, error);
      if (status == PMIX_ERR_TIMEOUT)
        error += "; there was no answer in " + std::to_string(get_timeout_s.value()) +
                 " seconds (HEDDLE_PMIX_TIMEOUT): that rank has left MPI already, or the launcher's daemon on its node "
                 "is gone";
      return false;
    }
    if (!puts) return failed("the server returned a damaged value", PMIX_ERR_BAD_PARAM, error);
    value = find_put(*puts, key);
  }
  return true;
}

bool Pmix::publish(std::string_view service, std::string_view port, std::string& error) {
  std::optional<std::string> known;
  if (!lookup(service, known, error)) return false;
  if (known) {  // some servers overwrite
    error = "the service name \"" + std::string(service) + "\" is published already";
    return false;
  }
  pmix_info_t info[2] = {};
  std::snprintf(info[0].key, sizeof info[0].key, "%.*s", static_cast<int>(service.size()), service.data());
  std::string text(port);
  info[0].value.type = PMIX_STRING;
  info[0].value.data.string = text.data();
  info[1] = range_of_session();
  const pmix_status_t status = library_.publish(info, 2);
  if (status == PMIX_SUCCESS) return true;
  return failed(("the service name \"" + std::string(service) + "\" cannot be published").c_str(), status, error);
}

bool Pmix::lookup(std::string_view service, std::optional<std::string>& port, std::string& error) {
  pmix_pdata_t data{};
  std::snprintf(data.key, sizeof data.key, "%.*s", static_cast<int>(service.size()), service.data());
  pmix_info_t range = range_of_session();
  const pmix_status_t status = library_.lookup(&data, 1, &range, 1);
  port.reset();
  if (status == PMIX_ERR_NOT_FOUND) return true;
  if (status != PMIX_SUCCESS) return failed("looking a service name up", status, error);
  if (data.value.type == PMIX_STRING && data.value.data.string != nullptr) {
    port = data.value.data.string;
    std::free(data.value.data.string);
  }
  return true;
}

bool Pmix::unpublish(std::string_view service, std::string& error) {
  // The server does not say whether the name was there.
  std::optional<std::string> port;
  if (!lookup(service, port, error)) return false;
  if (!port) {
    error = "the service name \"" + std::string(service) + "\" is not published";
    return false;
  }
  std::string name(service);
  char* keys[] = {name.data(), nullptr};
  pmix_info_t range = range_of_session();
  const pmix_status_t status = library_.unpublish(keys, &range, 1);
  return status == PMIX_SUCCESS || failed("withdrawing a service name", status, error);
}

// A process that leaves and comes back confuses servers: PRRTE's takes it out of a fence that another process of its
// node has entered meanwhile, when it notices the end of the first connection after that; Slurm's forgets what it had
// put. So one that may come back stays connected until it exits. (It must leave in the end: prterun takes an exit
// without that for a failure, `_exit` too. That is why MPI_Finalize does not wait for it.)
bool Pmix::finalize(Leaving leaving, std::string& error) {
  if (leaving == Leaving::for_now) {
    away_ = true;
    static Pmix* only = this;  // a process has one launcher
    [[maybe_unused]] static const int registered = std::atexit([] {
      if (only->away_ && only->process_ == getpid()) only->library_.finalize(nullptr, 0);
    });
    return true;
  }
  const pmix_status_t status = library_.finalize(nullptr, 0);
  return status == PMIX_SUCCESS || failed("leaving the job", status, error);
}

void Pmix::abort(int code, std::string_view message) noexcept {
  announce_abort(static_cast<int>(me_.rank), code, message);
  library_.abort(exit_code_of(code), "", nullptr, 0);
}

}  // namespace

std::unique_ptr<Backend> make_pmix() { return std::make_unique<Pmix>(); }

}  // namespace heddle::sys::bootstrap

#else

namespace heddle::sys::bootstrap {
std::unique_ptr<Backend> make_pmix() { return nullptr; }
}  // namespace heddle::sys::bootstrap

#endif
