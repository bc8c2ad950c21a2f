// What the two sides of an intercommunicator tell each other when communicators are made out of it.
#pragma once

#include "coll/internal.hpp"
#include "core/comm.hpp"

namespace heddle {

/// Gives every process of both sides the id that rank 0 of the low side makes. Collective over both.
int inter_bcast(Comm& inter, ContextId* id) noexcept;
int inter_ibcast(Comm& inter, ContextId* id, Request** request, coll::Finish finish) noexcept;

/// Nobody leaves before everybody of both sides has come.
int inter_barrier(Comm& inter) noexcept;

/// MPI_Comm_create and MPI_Comm_split on an intercommunicator.
int inter_create(Comm& inter, const Group& group, Comm** out) noexcept;
int inter_split(Comm& inter, int color, int key, Comm** out) noexcept;

}  // namespace heddle
