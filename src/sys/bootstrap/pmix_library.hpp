#pragma once

#include <string>

#if __has_include(<pmix.h>)
#define HEDDLE_HAVE_PMIX 1
#include <pmix.h>

namespace heddle::sys::bootstrap {

/// The functions of libpmix that we call, found at run time, and the file they came from.
struct PmixLibrary {
  decltype(&PMIx_Init) init;
  decltype(&PMIx_Finalize) finalize;
  decltype(&PMIx_Abort) abort;
  decltype(&PMIx_Put) put;
  decltype(&PMIx_Commit) commit;
  decltype(&PMIx_Fence_nb) fence_nb;
  decltype(&PMIx_Get) get;
  decltype(&PMIx_Get_nb) get_nb;
  decltype(&PMIx_Publish) publish;
  decltype(&PMIx_Lookup) lookup;
  decltype(&PMIx_Unpublish) unpublish;
  decltype(&PMIx_Register_event_handler) register_event_handler;
  decltype(&PMIx_Error_string) error_string;
  std::string path;
  void* handle;
};

/// Loads libpmix: HEDDLE_PMIX_LIBRARY when set, else the one that the launcher itself has loaded (versions then match,
/// and a launcher in a prefix of its own needs no settings), else the system's. False: `error` says what to install.
/// Called again, it replaces the library by a fresh copy: version 5 crashes when it is finalized a second time.
/// \pre no call of the library is under way
bool load_pmix(PmixLibrary& library, std::string& error);

}  // namespace heddle::sys::bootstrap

#endif
