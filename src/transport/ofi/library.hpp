// libfabric, loaded at run time: a job that needs no network runs where it is not installed.
#pragma once

#include <rdma/fabric.h>
#include <signal.h>

#include <cstddef>
#include <string>

namespace heddle::ofi {

/// The functions of libfabric that are symbols; all others are reached through the objects that these make.
/// The library allocates its structures (`fi_dupinfo(nullptr)`), so that a version with longer ones than our headers' (2.x) works
/// too.
struct Library {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
  decltype(&::fi_version) version = nullptr;
  std::string path;  ///< of the file that was loaded
};

/// Restores the program's signal handlers at its end. The libraries of some adapters (PSM2, PSM3), which libfabric loads even without such an
/// adapter, replace the handlers of SIGINT, SIGTERM, SIGSEGV and others by ones that print a backtrace and call `exit`. Ctrl-C then no
/// longer reached a program's own handler, and a SIGTERM inside MPI hung in our exit handlers.
class KeptSignals {
 public:
  KeptSignals() noexcept;
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;
  ~KeptSignals();

 private:
  struct sigaction before_[_NSIG];
};

/// Sets the default for the largest message that ofi_rxm copies through its own buffers, instead of using a protocol of its own on top of
/// ours. Call before `load`.
void prefer_rxm_buffer(std::size_t bytes) noexcept;

/// Loads libfabric (parameter HEDDLE_OFI_LIBRARY) on the first call; nullptr with a text for the user when it is not there.
/// Thread-safe. The library stays loaded until the process ends.
const Library* load(std::string& problem);

/// The text of a libfabric error code (either sign).
const char* error_text(long code) noexcept;

}  // namespace heddle::ofi
