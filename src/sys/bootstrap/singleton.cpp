// A process that nobody launched: rank 0 of 1, with the same interface as in a job.
#include <cstdio>
#include <map>

#include "sys/bootstrap/backend.hpp"
#include "sys/bootstrap/job_id.hpp"

namespace heddle::sys::bootstrap {
namespace {

class Singleton final : public Backend {
 public:
  bool start(Bootstrap& job, std::string&) override {
    job = Bootstrap{};
    job.kind = BootstrapKind::singleton;
    job.job_id = random_job_id();
    return true;
  }
  bool put(std::string_view key, std::string_view value, std::string&) override {
    values_.insert_or_assign(std::string(key), std::string(value));
    return true;
  }
  bool fence(std::string&) override { return true; }
  bool get(int rank, std::string_view key, std::optional<std::string>& value, std::string&) override {
    const auto found = values_.find(key);
    if (rank == 0 && found != values_.end()) value = found->second;
    return true;
  }
  bool publish(std::string_view service, std::string_view port, std::string& error) override {
    if (names_.try_emplace(std::string(service), port).second) return true;
    error = "the service name \"" + std::string(service) + "\" is published already";
    return false;
  }
  bool lookup(std::string_view service, std::optional<std::string>& port, std::string&) override {
    const auto found = names_.find(service);
    if (found != names_.end()) port = found->second;
    return true;
  }
  bool unpublish(std::string_view service, std::string& error) override {
    const auto found = names_.find(service);
    if (found == names_.end()) {
      error = "the service name \"" + std::string(service) + "\" is not published";
      return false;
    }
    names_.erase(found);
    return true;
  }
  bool finalize(Leaving, std::string&) override { return true; }
  void abort(int code, std::string_view message) noexcept override {
    if (message.empty())
      std::fprintf(stderr, "heddle: MPI_Abort with code %d\n", code);
    else
      std::fprintf(stderr, "heddle: MPI_Abort with code %d: %.*s\n", code, static_cast<int>(message.size()),
                   message.data());
  }
  bool launcher_gone() noexcept override { return false; }

 private:
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::string, std::less<>> names_;
};

}  // namespace

std::unique_ptr<Backend> make_singleton() { return std::make_unique<Singleton>(); }

}  // namespace heddle::sys::bootstrap
