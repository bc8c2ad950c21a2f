// Communicators. MPI-5.0 §7.4, §7.8
#include "core/comm.hpp"

#include <cstring>

#include "core/hints.hpp"
#include "generated/impl.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {
namespace {

int give_group(const Group& group, MPI_Group* handle) noexcept {
  Group* copy = clone_group(group);
  if (!copy) return error(MPI_ERR_NO_MEM, "no memory for a group");
  *handle = to_handle(copy);
  return MPI_SUCCESS;
}

int only_inter(const Comm& comm) noexcept {
  if (comm.inter) return MPI_SUCCESS;
  return error(MPI_ERR_COMM, "the communicator is no intercommunicator: it has no remote group");
}

}  // namespace

int Comm_size(Comm& comm, int* size) {
  *size = comm.size;
  return MPI_SUCCESS;
}

int Comm_rank(Comm& comm, int* rank) {
  *rank = comm.rank;
  return MPI_SUCCESS;
}

int Comm_compare(Comm& comm1, Comm& comm2, int* result) {
  *result = compare_comms(comm1, comm2);
  return MPI_SUCCESS;
}

int Comm_free(MPI_Comm* comm) {
  Comm* object = resolve<Comm>(*comm);
  if (!object) return error(MPI_ERR_COMM, "the handle is MPI_COMM_NULL or was freed before");
  if (const int code = free_comm(*object)) return code;
  *comm = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

int Comm_group(Comm& comm, MPI_Group* group) { return give_group(*comm.group, group); }

int Comm_test_inter(Comm& comm, int* flag) {
  *flag = comm.inter;
  return MPI_SUCCESS;
}

int Comm_remote_size(Comm& comm, int* size) {
  if (const int code = only_inter(comm)) return code;
  *size = comm.remote_size;
  return MPI_SUCCESS;
}

int Comm_remote_group(Comm& comm, MPI_Group* group) {
  if (const int code = only_inter(comm)) return code;
  return give_group(*comm.remote_group, group);
}

int Comm_set_info(Comm& comm, Info* info) {
  take_hints(comm, info);
  return MPI_SUCCESS;
}

int Comm_get_info(Comm& comm, MPI_Info* info_used) {
  Info* info = hints_of(comm);
  if (!info) return error(MPI_ERR_NO_MEM, "no memory for an info object");
  *info_used = to_handle(info);
  return MPI_SUCCESS;
}

int Comm_set_name(Comm& comm, const char* comm_name) {
  set_comm_name(comm, comm_name);
  return MPI_SUCCESS;
}

int Comm_get_name(Comm& comm, char* comm_name, int* resultlen) {
  std::lock_guard lock(comm.mutex);
  *resultlen = static_cast<int>(std::strlen(comm.name));
  std::memcpy(comm_name, comm.name, static_cast<std::size_t>(*resultlen) + 1);
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
