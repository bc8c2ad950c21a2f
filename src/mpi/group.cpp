// Groups. MPI-5.0 §7.3
#include "core/group.hpp"

#include "comm/session.hpp"
#include "generated/impl.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {
namespace {

/// Gives a new group to the user.
/// `made` is a reference: the call that makes it is an argument beside it, evaluated before or after.
int give(int code, Group* const& made, MPI_Group* newgroup) noexcept {
  if (!code) *newgroup = to_handle(made);
  return code;
}

}  // namespace

int Group_size(Group& group, int* size) {
  *size = group.size;
  return MPI_SUCCESS;
}

int Group_rank(Group& group, int* rank) {
  *rank = group.rank;
  return MPI_SUCCESS;
}

int Group_translate_ranks(Group& group1, int n, const int ranks1[], Group& group2, int ranks2[]) {
  return translate_ranks(group1, n, ranks1, group2, ranks2);
}

int Group_compare(Group& group1, Group& group2, int* result) {
  *result = compare_groups(group1, group2);
  return MPI_SUCCESS;
}

int Group_union(Group& group1, Group& group2, MPI_Group* newgroup) {
  Group* made = nullptr;
  return give(group_union(group1, group2, &made), made, newgroup);
}

int Group_intersection(Group& group1, Group& group2, MPI_Group* newgroup) {
  Group* made = nullptr;
  return give(group_intersection(group1, group2, &made), made, newgroup);
}

int Group_difference(Group& group1, Group& group2, MPI_Group* newgroup) {
  Group* made = nullptr;
  return give(group_difference(group1, group2, &made), made, newgroup);
}

int Group_incl(Group& group, int n, const int ranks[], MPI_Group* newgroup) {
  Group* made = nullptr;
  return give(group_incl(group, n, ranks, &made), made, newgroup);
}

int Group_excl(Group& group, int n, const int ranks[], MPI_Group* newgroup) {
  Group* made = nullptr;
  return give(group_excl(group, n, ranks, &made), made, newgroup);
}

int Group_range_incl(Group& group, int n, int ranges[][3], MPI_Group* newgroup) {
  Group* made = nullptr;
  return give(group_range_incl(group, n, ranges, &made), made, newgroup);
}

int Group_range_excl(Group& group, int n, int ranges[][3], MPI_Group* newgroup) {
  Group* made = nullptr;
  return give(group_range_excl(group, n, ranges, &made), made, newgroup);
}

int Group_free(MPI_Group* group) {
  Group* object = resolve<Group>(*group);
  if (!object) return error(MPI_ERR_GROUP, "the handle is MPI_GROUP_NULL or was freed before");
  // MPI_GROUP_EMPTY may be freed: the set operations return it, and the user need not look.
  release_group(object);
  *group = MPI_GROUP_NULL;
  return MPI_SUCCESS;
}

int Group_from_session_pset(Session& session, const char* pset_name, MPI_Group* newgroup) {
  Group* made = nullptr;
  const int code = process_set_group(pset_name, &made);
  if (code == MPI_SUCCESS) made->session = &session;
  return give(code, made, newgroup);
}

}  // namespace heddle::mpi
