#include "transport/process.hpp"

#include <new>
#include <utility>

#include "sys/log.hpp"

namespace heddle {

ProcessTable processes;

bool ProcessTable::grow(std::uint32_t chunks) noexcept {
  if (directory_ && chunks <= directory_->chunks) return true;
  const std::uint32_t before = directory_ ? directory_->chunks : 0;
  if (chunks < 2 * before) chunks = 2 * before;  // so that what older ones take is bounded by the newest
  auto* directory = new (std::nothrow) Directory{directory_, chunks, new (std::nothrow) std::atomic<Chunk*>[chunks]()};
  if (!directory || !directory->entries) return delete directory, false;
  for (std::uint32_t c = 0; c < before; ++c)
    directory->entries[c].store(directory_->entries[c].load(std::memory_order_relaxed), std::memory_order_relaxed);
  directory_ = directory;
  entries_.store(directory->entries, std::memory_order_release);  // pairs with known_chunk
  return true;
}

ProcessIndex ProcessTable::add_job(std::uint32_t number, std::uint32_t size, Locate locate) noexcept {
  const std::lock_guard lock(mutex_);
  Job* last = first_job_;
  for (Job* job = first_job_; job; job = job->next.load(std::memory_order_relaxed)) {
    if (job->number == number) return job->first;
    last = job;
  }
  const std::uint64_t chunks = (std::uint64_t{size} + chunk_size - 1) / chunk_size;
  if ((used_chunks_ + chunks) * chunk_size > unknown || !grow(static_cast<std::uint32_t>(used_chunks_ + chunks))) return unknown;
  Job* job = new (std::nothrow) Job{number, size, used_chunks_ * chunk_size, locate};
  if (!job) return unknown;
  used_chunks_ += static_cast<std::uint32_t>(chunks);
  if (last) last->next.store(job, std::memory_order_release);  // pairs with find
  else first_job_ = job;
  return job->first;
}

ProcessTable::Chunk& ProcessTable::make_chunk(ProcessIndex process) noexcept {
  const std::lock_guard lock(mutex_);
  std::atomic<Chunk*>& entry = directory_->entries[process / chunk_size];
  if (Chunk* made = entry.load(std::memory_order_relaxed)) return *made;
  auto* chunk = new (std::nothrow) Chunk;
  if (!chunk) sys::fatal("no memory for the table of processes");
  const Job* job = first_job_;
  while (process - job->first >= job->size) job = job->next.load(std::memory_order_relaxed);
  chunk->job = job;
  const std::uint32_t first_rank = (process - job->first) / chunk_size * chunk_size;
  for (std::uint32_t i = 0; i < chunk_size && first_rank + i < job->size; ++i) chunk->places[i] = job->locate(first_rank + i);
  entry.store(chunk, std::memory_order_release);  // pairs with known_chunk
  return *chunk;
}

void ProcessTable::clear() noexcept {
  for (std::uint32_t c = 0; directory_ && c < directory_->chunks; ++c) delete directory_->entries[c].load(std::memory_order_relaxed);
  while (Directory* directory = directory_) {
    directory_ = directory->older;
    delete[] directory->entries;
    delete directory;
  }
  while (Job* job = first_job_) {
    first_job_ = job->next.load(std::memory_order_relaxed);
    delete job;
  }
  entries_.store(nullptr, std::memory_order_relaxed);
  used_chunks_ = 0;
}

}  // namespace heddle
