// Communicators. MPI-5.0 §7.4, §7.8
#include "core/comm.hpp"

#include <cstdio>
#include <cstring>

#include "comm/create.hpp"
#include "core/hints.hpp"
#include "generated/impl.hpp"
#include "mpi/check.hpp"
#include "mpi/split_type.hpp"
#include "sys/error.hpp"
#include "vci/request.hpp"

namespace heddle::mpi {
namespace {

int give_group(const Group& group, MPI_Group* handle) noexcept {
  Group* copy = clone_group(group);
  if (!copy) return error(MPI_ERR_NO_MEM, "no memory for a group");
  *handle = to_handle(copy);
  return MPI_SUCCESS;
}

/// Gives a new communicator, or none, to the user.
/// `made` is a reference: the call that makes it is an argument beside it, evaluated before or after.
int give(int code, Comm* const& made, MPI_Comm* handle) noexcept {
  if (!code) *handle = made ? give_comm(*made) : MPI_COMM_NULL;
  return code;
}

int not_to_be_freed(MPI_Comm comm) noexcept {
  if (resolve<Threadcomm>(comm)) return error(MPI_ERR_COMM, "a thread communicator is given back by MPIX_Threadcomm_free");
  return error(MPI_ERR_COMM, "the handle is MPI_COMM_NULL or was freed before");
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
  if (comm1.session != comm2.session)
    return error(MPI_ERR_COMM,
                 "comm1 and comm2 come from different sessions, or one of them from the world model; objects of different sessions "
                 "cannot be used together (MPI-5.0 section 11.3)");
  *result = compare_comms(comm1, comm2);
  return MPI_SUCCESS;
}

int Comm_dup(Comm& comm, MPI_Comm* newcomm) {
  Comm* made = nullptr;
  return give(comm_dup(comm, false, nullptr, &made), made, newcomm);
}

int Comm_dup_with_info(Comm& comm, Info* info, MPI_Comm* newcomm) {
  Comm* made = nullptr;
  return give(comm_dup(comm, true, info, &made), made, newcomm);
}

namespace {
int idup(Comm& comm, bool hinted, Info* info, MPI_Comm* newcomm, MPI_Request* request) noexcept {
  Comm* made = nullptr;
  Request* started = nullptr;
  const int code = comm_idup(comm, hinted, info, &made, &started);
  if (code) return code;
  *request = to_handle(started);
  *newcomm = to_handle(made);
  return MPI_SUCCESS;
}
}  // namespace

int Comm_idup(Comm& comm, MPI_Comm* newcomm, MPI_Request* request) { return idup(comm, false, nullptr, newcomm, request); }

int Comm_idup_with_info(Comm& comm, Info* info, MPI_Comm* newcomm, MPI_Request* request) {
  return idup(comm, true, info, newcomm, request);
}

int Comm_create(Comm& comm, Group& group, MPI_Comm* newcomm) {
  Comm* made = nullptr;
  return give(comm_create(comm, group, &made), made, newcomm);
}

int Comm_create_group(Comm& comm, Group& group, int tag, MPI_Comm* newcomm) {
  Comm* made = nullptr;
  return give(comm_create_group(comm, group, tag, &made), made, newcomm);
}

int Comm_create_from_group(Group& group, const char* stringtag, Info* info, Errhandler& errhandler, MPI_Comm* newcomm) {
  if (const int code = check_errhandler(errhandler, Errhandler::Action::comm_function)) return code;
  Comm* made = nullptr;
  return give(comm_create_from_group(group, stringtag, info, &errhandler, &made), made, newcomm);
}

int Comm_split(Comm& comm, int color, int key, MPI_Comm* newcomm) {
  Comm* made = nullptr;
  return give(comm_split(comm, color, key, &made), made, newcomm);
}

int Comm_split_type(Comm& comm, int split_type, int key, Info* info, MPI_Comm* newcomm) {
  Comm* made = nullptr;
  return give(split_by_type(comm, split_type, key, info, &made), made, newcomm);
}

int Intercomm_create(Comm& local_comm, int local_leader, Comm* peer_comm, int remote_leader, int tag,
                     MPI_Comm* newintercomm) {
  Comm* made = nullptr;
  return give(intercomm_create(local_comm, local_leader, peer_comm, remote_leader, tag, &made), made, newintercomm);
}

int Intercomm_create_from_groups(Group& local_group, int local_leader, Group& remote_group, int remote_leader,
                                 const char* stringtag, Info* info, Errhandler& errhandler, MPI_Comm* newintercomm) {
  if (const int code = check_errhandler(errhandler, Errhandler::Action::comm_function)) return code;
  Comm* made = nullptr;
  return give(intercomm_create_from_groups(local_group, local_leader, remote_group, remote_leader, stringtag, info,
                                           &errhandler, &made),
              made, newintercomm);
}

int Intercomm_merge(Comm& intercomm, int high, MPI_Comm* newintracomm) {
  if (const int code = only_inter(intercomm)) return code;
  Comm* made = nullptr;
  return give(intercomm_merge(intercomm, high != 0, &made), made, newintracomm);
}

int Comm_free(MPI_Comm* comm) {
  Comm* object = check::object_of(*comm);
  if (!object) return not_to_be_freed(*comm);
  if (const int code = free_comm(*object)) return code;
  *comm = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

int Comm_disconnect(MPI_Comm* comm) {
  Comm* object = check::object_of(*comm);
  if (!object) return not_to_be_freed(*comm);
  if (const int code = disconnect_comm(*object)) return code;
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

int Comm_get_name(MPI_Comm comm, char* comm_name, int* resultlen) {
  if (comm == MPI_COMM_NULL) {
    *resultlen = std::snprintf(comm_name, MPI_MAX_OBJECT_NAME, "MPI_COMM_NULL");
    return MPI_SUCCESS;
  }
  Comm* object = check::comm(comm);
  if (!object) return check::bad_comm(comm, "comm");
  std::lock_guard lock(object->mutex);
  *resultlen = static_cast<int>(std::strlen(object->name));
  std::memcpy(comm_name, object->name, static_cast<std::size_t>(*resultlen) + 1);
  return MPI_SUCCESS;
}

// Processes that MPI_Comm_spawn started have a parent; it does not start any yet.
int Comm_get_parent(MPI_Comm* parent) {
  *parent = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
