// Sessions. MPI-5.0 §11.3
#include "comm/session.hpp"

#include <cstdio>
#include <cstring>

#include "core/info.hpp"
#include "generated/impl.hpp"

namespace heddle::mpi {

int Session_init(Info* info, Errhandler& errhandler, MPI_Session* session) {
  if (const int code = check_errhandler(errhandler, Errhandler::Action::session_function)) return code;
  Session* made = nullptr;
  if (const int code = open_session(info, &errhandler, &made)) return code;
  *session = to_handle(made);
  return MPI_SUCCESS;
}

int Session_finalize(MPI_Session* session) {
  Session* object = resolve<Session>(*session);
  if (!object) return error(MPI_ERR_SESSION, "the handle is MPI_SESSION_NULL or was finalized before");
  if (const int code = close_session(object)) return code;
  *session = MPI_SESSION_NULL;
  return MPI_SUCCESS;
}

int Session_get_num_psets(Session&, Info*, int* npset_names) {
  *npset_names = process_set_count();
  return MPI_SUCCESS;
}

int Session_get_nth_pset(Session&, Info*, int n, int* pset_len, char* pset_name) {
  const char* name = process_set_name(n);
  if (!name)
    return error(MPI_ERR_ARG, "process set number %d is asked for; there are %d, numbered from 0", n, process_set_count());
  if (*pset_len < 0) return error(MPI_ERR_ARG, "the buffer length, %d, is negative", *pset_len);
  if (*pset_len > 0) {
    if (!pset_name) return error(MPI_ERR_ARG, "the name buffer is a null pointer");
    std::snprintf(pset_name, static_cast<std::size_t>(*pset_len), "%s", name);
  }
  *pset_len = static_cast<int>(std::strlen(name)) + 1;
  return MPI_SUCCESS;
}

int Session_get_info(Session& session, MPI_Info* info_used) {
  Info* info = session_info(session);
  if (!info) return error(MPI_ERR_NO_MEM, "no memory for an info object");
  *info_used = to_handle(info);
  return MPI_SUCCESS;
}

int Session_get_pset_info(Session&, const char* pset_name, MPI_Info* info) {
  Info* made = nullptr;
  if (const int code = process_set_info(pset_name, &made)) return code;
  *info = to_handle(made);
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
