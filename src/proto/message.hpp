// Probing: looking at unexpected messages, and taking one out of matching.
#pragma once

#include "proto/p2p.hpp"
#include "sys/handle.hpp"

namespace heddle {

namespace proto {
struct Unexpected;
}

/// A message that a matched probe took: only MPI_Mrecv can receive it. \see MPI-5.0 §3.8.2
struct Message : Object {
  static constexpr Kind object_kind = Kind::message;
  proto::Unexpected* message = nullptr;
  Vci* vci = nullptr;
  Comm* comm = nullptr;  ///< referenced
  [[nodiscard]] std::uintptr_t predefined_handle() const noexcept { return 0; }
};

template <>
struct HandleTraits<Message> {
  using handle = MPI_Message;
  static Message* builtin(std::uintptr_t) noexcept { return nullptr; }
};

/// What a probe reports.
struct Envelope {
  int source, tag;
  MPI_Count bytes;
};

/// True when a message waits that a receive of (source, tag) would take; describes it. Makes no progress. Thread-safe.
bool find_message(int source, int tag, Comm& comm, Envelope& envelope) noexcept;
/// The same, and takes the message. nullptr when there is none.
Message* take_message(int source, int tag, Comm& comm, Envelope& envelope) noexcept;
/// Receives a taken message; frees it.
Request* receive_message(Message& message, const Buffer& buffer) noexcept;

}  // namespace heddle
