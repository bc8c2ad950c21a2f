// Info objects. MPI-5.0 §10
#include "core/info.hpp"

#include "generated/impl.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {
namespace {

int give(Info* made, MPI_Info* info) noexcept {
  if (!made) return error(MPI_ERR_NO_MEM, "no memory for an info object");
  *info = to_handle(made);
  return MPI_SUCCESS;
}

}  // namespace

int Info_create(MPI_Info* info) { return give(new_info(), info); }

int Info_create_env(int argc, char* argv[], MPI_Info* info) {
  Info* made = new_info();
  if (made) fill_environment(*made, argc, argv);
  return give(made, info);
}

int Info_set(Info& info, const char* key, const char* value) { return info_set(info, key, value); }

int Info_delete(Info& info, const char* key) { return info_delete(info, key); }

int Info_get(Info& info, const char* key, int valuelen, char* value, int* flag) {
  return info_get(info, key, valuelen, value, flag);
}

int Info_get_valuelen(Info& info, const char* key, int* valuelen, int* flag) {
  return info_get_value_length(info, key, valuelen, flag);
}

int Info_get_string(Info& info, const char* key, int* buflen, char* value, int* flag) {
  return info_get_string(info, key, buflen, value, flag);
}

int Info_get_nkeys(Info& info, int* nkeys) {
  *nkeys = info_count(info);
  return MPI_SUCCESS;
}

int Info_get_nthkey(Info& info, int n, char* key) { return info_get_nth_key(info, n, key); }

int Info_dup(Info& info, MPI_Info* newinfo) { return give(clone_info(info), newinfo); }

int Info_free(MPI_Info* info) {
  Info* object = resolve<Info>(*info);
  if (!object) return error(MPI_ERR_INFO, "the handle is MPI_INFO_NULL or was freed before");
  if (object->predefined_value) return error(MPI_ERR_INFO, "MPI_INFO_ENV cannot be freed");
  release_info(object);
  *info = MPI_INFO_NULL;
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
