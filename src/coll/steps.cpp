// Carries out or records the steps of the algorithms.
#include "coll/steps.hpp"

#include "core/status.hpp"

#include "sys/error.hpp"

namespace heddle::coll {
namespace {

Step message(Step::Kind kind, int peer, const void* from, void* to, MPI_Count count, Datatype& type) noexcept {
  Step step;
  step.kind = kind;
  step.peer = peer;
  step.from = from;
  step.to = to;
  step.count = count;
  step.type = &type;
  return step;
}

}  // namespace

void Steps::record(const Step& step) noexcept {
  if (schedule_->append(step)) [[likely]]
    return;
  out_of_memory_ = true;
  fail(error(MPI_ERR_NO_MEM, "%s: no memory for its schedule", name_));
}

void Steps::pend(Request* request, MPI_Count bytes, int peer) noexcept {
  if (pending_count_ == pending_capacity_) [[unlikely]] {
    const std::size_t bytes_now = sizeof(Pending) * pending_capacity_;
    auto* grown = static_cast<Pending*>(std::malloc(2 * bytes_now));
    if (!grown) {  // this may wait for ever if the rest of the round is needed, but memory is out anyway
      fail(error(MPI_ERR_NO_MEM, "%s: no memory for a message", name_));
      (void)heddle::wait(request);
      return;
    }
    std::memcpy(static_cast<void*>(grown), pending_, bytes_now);
    if (pending_ != own_pending_) std::free(pending_);
    pending_ = grown;
    pending_capacity_ *= 2;
  }
  pending_[pending_count_++] = {request, bytes, peer};
}

void Steps::check(const MPI_Status& status, MPI_Count expected, int peer) noexcept {
  const MPI_Count got = status_bytes(status);
  if (got != expected) [[unlikely]]
    fail(size_mismatch(name_, comm_, peer, got, expected));
}

void Steps::send(const void* buffer, MPI_Count count, Datatype& type, int to) noexcept {
  if (schedule_) return record(message(Step::Kind::send, to, buffer, nullptr, count, type));
  pend(isend({buffer, count, type}, to, tag_, comm_, Space::collective), -1, to);
}

void Steps::recv(void* buffer, MPI_Count count, Datatype& type, int from) noexcept {
  if (schedule_) return record(message(Step::Kind::recv, from, nullptr, buffer, count, type));
  pend(irecv({buffer, count, type}, from, tag_, comm_, Space::collective), count * type.size, from);
}

void Steps::wait() noexcept {
  if (schedule_) return record(Step{});
  for (std::uint32_t i = 0; i < pending_count_; ++i) {
    const Pending& p = pending_[i];
    MPI_Status status;
    const int error = heddle::wait(p.request, p.bytes < 0 ? MPI_STATUS_IGNORE : &status);
    if (error != MPI_SUCCESS) [[unlikely]]
      fail(error);
    else if (p.bytes >= 0)
      check(status, p.bytes, p.peer);
  }
  pending_count_ = 0;
}

void Steps::exchange(const void* send_buffer, MPI_Count send_count, Datatype& send_type, int to, void* recv_buffer,
                     MPI_Count recv_count, Datatype& recv_type, int from) noexcept {
  if (schedule_) {
    recv(recv_buffer, recv_count, recv_type, from);
    send(send_buffer, send_count, send_type, to);
    return wait();
  }
  MPI_Status status;
  const int error = sendrecv({{send_buffer, send_count, send_type}, to, tag_}, {{recv_buffer, recv_count, recv_type}, from, tag_}, comm_,
                             Space::collective, &status);
  if (error != MPI_SUCCESS) [[unlikely]]
    fail(error);
  else
    check(status, recv_count * recv_type.size, from);
}

void Steps::send_round(const void* buffer, MPI_Count count, Datatype& type, int to) noexcept {
  if (schedule_) {
    send(buffer, count, type, to);
    return wait();
  }
  const int error = heddle::send({buffer, count, type}, to, tag_, comm_, Space::collective);
  if (error != MPI_SUCCESS) [[unlikely]]
    fail(error);
}

void Steps::recv_round(void* buffer, MPI_Count count, Datatype& type, int from) noexcept {
  if (schedule_) {
    recv(buffer, count, type, from);
    return wait();
  }
  MPI_Status status;
  const int error = heddle::recv({buffer, count, type}, from, tag_, comm_, Space::collective, &status);
  if (error != MPI_SUCCESS) [[unlikely]]
    fail(error);
  else
    check(status, count * type.size, from);
}

void Steps::copy(const void* from, MPI_Count count, Datatype& type, void* to, MPI_Count to_count,
                 Datatype& to_type) noexcept {
  if (schedule_) {
    Step step = message(Step::Kind::copy, 0, from, to, count, type);
    step.to_count = to_count;
    step.to_type = &to_type;
    return record(step);
  }
  heddle::copy({from, count, type}, {to, to_count, to_type});
}

void Steps::copy_own(const void* from, MPI_Count count, Datatype& type, void* to, MPI_Count to_count,
                     Datatype& to_type) noexcept {
  const MPI_Count have = count * type.size, want = to_count * to_type.size;
  if (have != want) [[unlikely]] {
    const int code = size_mismatch(name_, comm_, comm_.rank, have, want);
    if (schedule_)
      schedule_->set_error(code);
    else
      fail(code);
  }
  copy(from, count, type, to, to_count, to_type);
}

void Steps::reduce(const Op& op, const void* in, void* inout, MPI_Count count, Datatype& type) noexcept {
  if (schedule_) {
    Step step = message(Step::Kind::reduce, 0, in, inout, count, type);
    step.op = &op;
    return record(step);
  }
  apply(op, in, inout, count, type);
}

std::byte* Steps::temporary(MPI_Count bytes) noexcept {
  std::byte* memory = arena_->allocate(static_cast<std::size_t>(bytes));
  if (!memory) [[unlikely]] {
    out_of_memory_ = true;
    fail(error(MPI_ERR_NO_MEM, "%s on %s: no memory for a temporary buffer of %lld bytes", name_,
               comm_.name[0] ? comm_.name : "an unnamed communicator", static_cast<long long>(bytes)));
  }
  return memory;
}

void* Steps::temporary(MPI_Count count, const Datatype& type) noexcept {
  if (count == 0) return temporary(MPI_Count{0});
  const MPI_Count stretch = (count - 1) * type.extent;  // may be negative
  const MPI_Count first = type.true_lb + std::min<MPI_Count>(stretch, 0);
  // Aligns the buffer, not the first byte of data: a user's operation then finds its structures placed as the compiler places
  // them, even if the datatype leaves out their first members.
  const MPI_Count gap = first & (Arena::alignment - 1);
  std::byte* memory = temporary(gap + type.true_extent + (stretch < 0 ? -stretch : stretch));
  return memory ? displaced(memory, gap - first) : nullptr;
}

}  // namespace heddle::coll
