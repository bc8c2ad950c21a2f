// Runs recorded collectives from the progress engine.
#include "coll/schedule.hpp"

#include <cstdlib>
#include <new>

#include "proto/p2p.hpp"
#include "sys/error.hpp"

namespace heddle::coll {

std::byte* Arena::allocate_block(std::size_t bytes) noexcept {
  constexpr std::size_t header = 64;  // keeps the payload aligned
  if (bytes + header < bytes) return nullptr;
  auto* block = static_cast<Block*>(std::aligned_alloc(64, bytes + header));
  if (!block) return nullptr;
  block->next = blocks_;
  blocks_ = block;
  return reinterpret_cast<std::byte*>(block) + header;
}

void Arena::clear() noexcept {
  while (blocks_) {
    Block* next = blocks_->next;
    std::free(blocks_);
    blocks_ = next;
  }
}

Schedule* Schedule::create(Comm& comm, const char* name, bool persistent) noexcept {
  void* memory = std::aligned_alloc(alignof(Schedule), sizeof(Schedule));
  if (!memory) return nullptr;
  auto* schedule = new (memory) Schedule();
  schedule->comm_ = &comm;
  schedule->name_ = name;
  schedule->persistent_ = persistent;
  schedule->tag_ = next_tag(comm);
  return schedule;
}

void Schedule::destroy(Schedule* schedule) noexcept {
  schedule->~Schedule();
  std::free(schedule);
}

Schedule::~Schedule() {
  for (std::uint32_t i = 0; i < count_; ++i) {
    const Step& step = steps_[i];
    if (step.type) release(*step.type);
    if (step.to_type) release(*step.to_type);
    if (step.op) release(*const_cast<Op*>(step.op));
  }
  std::free(steps_);
}

bool Schedule::append(const Step& step) noexcept {
  if (count_ == capacity_) {
    const std::uint32_t capacity = capacity_ ? capacity_ * 2 : 16;
    static_assert(std::is_trivially_copyable_v<Step>);
    auto* steps = static_cast<Step*>(std::realloc(static_cast<void*>(steps_), sizeof(Step) * capacity));
    if (!steps) return false;
    steps_ = steps;
    capacity_ = capacity;
  }
  Step& added = *new (&steps_[count_++]) Step(step);
  added.run = message_done;
  added.owner = this;
  if (step.type) retain(*step.type);
  if (step.to_type) retain(*step.to_type);
  if (step.op) {
    retain(*const_cast<Op*>(step.op));
    calls_program_ = calls_program_ || step.op->code == OpCode::user;
  }
  return true;
}

void Schedule::start(VciGuard& guard) noexcept {
  next_ = 0;
  outstanding_ = 0;
  error_ = first_error_;
  advance(guard);
}

void Schedule::check(const Step& step, const Request& completed) noexcept {
  if (error_ != MPI_SUCCESS) return;
  if (completed.error != MPI_SUCCESS) {
    error_ = completed.error;
  } else if (step.kind == Step::Kind::recv && completed.bytes != step.count * step.type->size) [[unlikely]] {
    error_ = size_mismatch(name_, *comm_, step.peer, completed.bytes, step.count * step.type->size);
  }
}

void Schedule::message_done(Continuation& self, Request& completed, VciGuard& guard) {
  auto& step = static_cast<Step&>(self);
  Schedule& schedule = *step.owner;
  schedule.check(step, completed);
  free_request(&completed, guard);
  // Posting may make progress and re-enter while `advance` is on the stack below, which then looks at the count itself.
  if (--schedule.outstanding_ == 0 && !schedule.advancing_) schedule.advance(guard);
}

void Schedule::watch(Step& step, Request* request, VciGuard& guard) noexcept {
  if (request->is_done()) {
    check(step, *request);
    free_request(request, guard);
  } else {
    step.calls_program = calls_program_;
    request->then(step);  // cannot have completed in between: this thread holds the VCI
    ++outstanding_;
  }
}

void Schedule::advance(VciGuard& guard) noexcept {
  advancing_ = true;
  while (next_ < count_) {
    Step& step = steps_[next_];
    switch (step.kind) {
      case Step::Kind::send:
        watch(step, isend(guard, {step.from, step.count, *step.type}, step.peer, tag_, *comm_, Space::collective), guard);
        break;
      case Step::Kind::recv:
        watch(step, irecv(guard, {step.to, step.count, *step.type}, step.peer, tag_, *comm_, Space::collective), guard);
        break;
      case Step::Kind::wait:
        if (outstanding_ != 0) {
          advancing_ = false;
          return;
        }
        break;
      case Step::Kind::copy:
        copy({step.from, step.count, *step.type}, {step.to, step.to_count, *step.to_type});
        break;
      case Step::Kind::reduce:
        apply(*step.op, step.from, step.to, step.count, *step.type);
        break;
    }
    ++next_;
  }
  advancing_ = false;
  if (outstanding_ == 0) end_run(guard);
}

void Schedule::end_run(VciGuard& guard) noexcept {
  if (finish_.run) error_ = finish_.run(finish_.data, error_, guard);
  Request& request = *request_;
  request.error = error_;
  if (!persistent_) destroy(this);
  complete(request, guard);  // last: another thread may start a persistent schedule again from here on
}

int size_mismatch(const char* name, const Comm& comm, int peer, MPI_Count got, MPI_Count expected) noexcept {
  return error(
      MPI_ERR_COUNT,
      "%s on %s: rank %d got %lld bytes from rank %d but its own arguments say %lld: the counts or datatypes of "
      "the ranks do not match",
      name, comm.name[0] ? comm.name : "an unnamed communicator", comm.rank, static_cast<long long>(got), peer,
      static_cast<long long>(expected));
}

}  // namespace heddle::coll
