// The sets of the tool information interface that are empty so far: performance variables, events and categories. Numbers are 0,
// every index is out of range, every name unknown, and handles do not exist. MPI-5.0 sections 15.3.7 to 15.3.9.
#include <atomic>
#include <cstdint>

#include "generated/impl.hpp"
#include "mpi/mpit.hpp"

namespace heddle::mpi {
namespace {

int none(int* number) noexcept {
  if (const int code = tools_ready()) return code;
  if (!number) return MPI_T_ERR_INVALID;
  *number = 0;
  return MPI_SUCCESS;
}

int refused(int reason) noexcept {
  const int code = tools_ready();
  return code != MPI_SUCCESS ? code : reason;
}

int no_index() noexcept { return refused(MPI_T_ERR_INVALID_INDEX); }
int no_name() noexcept { return refused(MPI_T_ERR_INVALID_NAME); }
int no_handle() noexcept { return refused(MPI_T_ERR_INVALID_HANDLE); }

// Sessions of performance variables hold nothing: numbered from 1, and the highest number given is remembered.
std::atomic<std::uintptr_t> sessions{0};

bool is_session(MPI_T_pvar_session session) noexcept {
  const auto number = reinterpret_cast<std::uintptr_t>(session);
  return number != 0 && number <= sessions.load(std::memory_order_relaxed);
}

/// The answer of every function that takes a session and a variable's handle. All handles together are a valid, empty choice for
/// functions that start, stop and reset.
int on_variable(MPI_T_pvar_session session, MPI_T_pvar_handle handle, bool all_allowed) noexcept {
  if (const int code = tools_ready()) return code;
  if (!is_session(session)) return MPI_T_ERR_INVALID_SESSION;
  return all_allowed && handle == MPI_T_PVAR_ALL_HANDLES ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE;
}

}  // namespace

// --- performance variables -----------------------------------------------------------------------------------------
int T_pvar_get_num(int* num_pvar) { return none(num_pvar); }
int T_pvar_get_info(int, char*, int*, int*, int*, MPI_Datatype*, MPI_T_enum*, char*, int*, int*, int*, int*, int*) {
  return no_index();
}
int T_pvar_get_index(const char*, int, int*) { return no_name(); }

int T_pvar_session_create(MPI_T_pvar_session* session) {
  if (const int code = tools_ready()) return code;
  if (!session) return MPI_T_ERR_INVALID;
  *session = reinterpret_cast<MPI_T_pvar_session>(sessions.fetch_add(1, std::memory_order_relaxed) + 1);
  return MPI_SUCCESS;
}

int T_pvar_session_free(MPI_T_pvar_session* session) {
  if (const int code = tools_ready()) return code;
  if (!session || !is_session(*session)) return MPI_T_ERR_INVALID_SESSION;
  *session = MPI_T_PVAR_SESSION_NULL;
  return MPI_SUCCESS;
}

int T_pvar_handle_alloc(MPI_T_pvar_session session, int, void*, MPI_T_pvar_handle*, int*) {
  return refused(is_session(session) ? MPI_T_ERR_INVALID_INDEX : MPI_T_ERR_INVALID_SESSION);
}
int T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) {
  return on_variable(session, handle ? *handle : MPI_T_PVAR_HANDLE_NULL, false);
}
int T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) { return on_variable(session, handle, true); }
int T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) { return on_variable(session, handle, true); }
int T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void*) {
  return on_variable(session, handle, false);
}
int T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void*) {
  return on_variable(session, handle, false);
}
int T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) { return on_variable(session, handle, true); }
int T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void*) {
  return on_variable(session, handle, false);
}

// --- events --------------------------------------------------------------------------------------------------------
int T_source_get_num(int* num_sources) { return none(num_sources); }
int T_source_get_info(int, char*, int*, char*, int*, MPI_T_source_order*, MPI_Count*, MPI_Count*, MPI_Info*) {
  return no_index();
}
int T_source_get_timestamp(int, MPI_Count*) { return no_index(); }

int T_event_get_num(int* num_events) { return none(num_events); }
int T_event_get_info(int, char*, int*, int*, MPI_Datatype*, MPI_Aint*, int*, MPI_T_enum*, MPI_Info*, char*, int*, int*) {
  return no_index();
}
int T_event_get_index(const char*, int*) { return no_name(); }
int T_event_handle_alloc(int, void*, Info*, MPI_T_event_registration*) { return no_index(); }
int T_event_handle_set_info(MPI_T_event_registration, Info*) { return no_handle(); }
int T_event_handle_get_info(MPI_T_event_registration, MPI_Info*) { return no_handle(); }
int T_event_register_callback(MPI_T_event_registration, MPI_T_cb_safety, Info*, void*, MPI_T_event_cb_function) {
  return no_handle();
}
int T_event_callback_set_info(MPI_T_event_registration, MPI_T_cb_safety, Info*) { return no_handle(); }
int T_event_callback_get_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info*) { return no_handle(); }
int T_event_handle_free(MPI_T_event_registration, void*, MPI_T_event_free_cb_function) { return no_handle(); }
int T_event_set_dropped_handler(MPI_T_event_registration, MPI_T_event_dropped_cb_function) { return no_handle(); }
int T_event_read(MPI_T_event_instance, int, void*) { return no_handle(); }
int T_event_copy(MPI_T_event_instance, void*) { return no_handle(); }
int T_event_get_timestamp(MPI_T_event_instance, MPI_Count*) { return no_handle(); }
int T_event_get_source(MPI_T_event_instance, int*) { return no_handle(); }

// --- categories ----------------------------------------------------------------------------------------------------
int T_category_get_num(int* num_cat) { return none(num_cat); }
int T_category_get_info(int, char*, int*, char*, int*, int*, int*, int*) { return no_index(); }
int T_category_get_num_events(int, int*) { return no_index(); }
int T_category_get_index(const char*, int*) { return no_name(); }
int T_category_get_cvars(int, int, int*) { return no_index(); }
int T_category_get_pvars(int, int, int*) { return no_index(); }
int T_category_get_events(int, int, int*) { return no_index(); }
int T_category_get_categories(int, int, int*) { return no_index(); }
int T_category_changed(int* update_number) { return none(update_number); }  // they never change

}  // namespace heddle::mpi
