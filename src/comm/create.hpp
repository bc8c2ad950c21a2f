// Making communicators out of others. Every function here is collective over the processes that the standard names, and
// `*out` is nullptr where MPI returns MPI_COMM_NULL.
//
// The leader of the new communicator (rank 0 of its group) makes the context id, and it travels in the one exchange that
// each function needs anyway: no agreement rounds, so any number of threads may do this at once on different parents.
#pragma once

#include "core/comm.hpp"

namespace heddle {

struct Request;

/// `hinted`: of MPI_Comm_dup_with_info, where all members say what they want though it be nothing.
int comm_dup(Comm& parent, bool hinted, Info* info, Comm** out) noexcept;
/// `*out` may be used once `*request` is complete.
int comm_idup(Comm& parent, bool hinted, Info* info, Comm** out, Request** request) noexcept;
int comm_split(Comm& parent, int color, int key, Comm** out) noexcept;
int comm_split_type(Comm& parent, int split_type, int key, Info* info, Comm** out) noexcept;
int comm_create(Comm& parent, const Group& group, Comm** out) noexcept;
int comm_create_group(Comm& parent, const Group& group, int tag, Comm** out) noexcept;
int comm_create_from_group(const Group& group, const char* string_tag, Info* info, Errhandler* errhandler,
                           Comm** out) noexcept;

int intercomm_create(Comm& local, int local_leader, Comm* peer, int remote_leader, int tag, Comm** out) noexcept;
int intercomm_create_from_groups(const Group& local, int local_leader, const Group& remote, int remote_leader,
                                 const char* string_tag, Info* info, Errhandler* errhandler, Comm** out) noexcept;
int intercomm_merge(Comm& inter, bool high, Comm** out) noexcept;

/// MPI_Comm_free: runs the delete callbacks, then drops the user's reference.
int free_comm(Comm& comm) noexcept;

/// MPI_Comm_disconnect: when it returns, every process of both sides has come so far. \see MPI-5.0 §11.10.4
int disconnect_comm(Comm& comm) noexcept;

/// An intracommunicator of `group` (nullptr or empty: none, *out = nullptr) that takes over the reference, with what children inherit
/// of their parent.
int make_child(Comm& parent, ContextId context, Group* group, Comm** out) noexcept;

/// Makes an intercommunicator out of parts whose id is agreed; takes over the references to the groups. `low`: see Comm::low.
/// `errhandler` may be nullptr. `high_context`: see set_context.
int make_intercomm(ContextId context, Group* local, Group* remote, bool low, Errhandler* errhandler, Comm** out,
                   ContextId high_context = 0) noexcept;

/// The handle for the user of a communicator that is ready: from now on nothing of it changes.
MPI_Comm give_comm(Comm& made) noexcept;

/// The rank in `group` of the calling member of `parent`. A group's own idea of it is that of the endpoint it came from, and a
/// program may use one group for all its endpoints.
int own_rank(const Group& group, const Comm& parent) noexcept;

/// An id to offer in an exchange in which somebody else may turn out to be the leader: what is not taken is offered again by
/// this thread's next exchange.
class ContextOffer {
 public:
  /// \param width of the new communicator, or a bound of it
  explicit ContextOffer(std::uint32_t width) noexcept;
  ~ContextOffer();
  ContextOffer(const ContextOffer&) = delete;
  ContextOffer& operator=(const ContextOffer&) = delete;
  [[nodiscard]] ContextId id() const noexcept { return id_; }  ///< 0: out of ids
  void taken() noexcept { id_ = 0; }

 private:
  ContextId id_;
  bool wide_;
};

/// A second message space of the members of `group`, for making communicators: `context` must be theirs alone. Stands on the stack
/// for the time of a blocking exchange.
class CreationSpace {
 public:
  CreationSpace(ContextId context, const Group& group, int rank) noexcept;
  /// That of a communicator: its tags cannot meet those of the program's or the collectives' messages. Ranks are the parent's
  /// (on an intercommunicator, peers are those of the remote group).
  explicit CreationSpace(Comm& parent) noexcept;
  /// That of a string: MPI_Comm_create_from_group. Ranks are the group's. `tag` is the one to send with.
  CreationSpace(const Group& group, const char* string, int* tag) noexcept;
  ~CreationSpace();
  CreationSpace(const CreationSpace&) = delete;
  CreationSpace& operator=(const CreationSpace&) = delete;

  Comm& comm() noexcept { return comm_; }

 private:
  Comm comm_;
};

}  // namespace heddle
