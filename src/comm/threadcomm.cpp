#include "comm/threadcomm.hpp"

#include <new>

#include "comm/create.hpp"
#include "comm/endpoints.hpp"
#include "sys/error.hpp"
#include "vci/wait.hpp"

namespace heddle {
namespace {

std::atomic<std::uint64_t> next_id{1};

/// The ranks that this thread has: few, mostly one. Ends with the thread.
struct Place {
  const Threadcomm* threads;
  std::uint64_t id, round;
  int index;
  Place* next;
};

struct Places {
  Place* first = nullptr;
  ~Places() {
    while (Place* place = first) {
      first = place->next;
      delete place;
    }
  }
};
thread_local Places places;

bool is_current(const Place& place, const Threadcomm& threads) noexcept {
  return place.threads == &threads && place.id == threads.id && place.round == threads.rounds.load(std::memory_order_relaxed);
}

/// The link to this thread's place. One of an earlier round, or of a communicator that is gone, is thrown away on the way.
Place** find(const Threadcomm& threads) noexcept {
  for (Place** link = &places.first; *link;) {
    Place* place = *link;
    if (is_current(*place, threads)) return link;
    if (place->threads != &threads) {
      link = &place->next;
      continue;
    }
    *link = place->next;
    delete place;
  }
  return nullptr;
}

}  // namespace

int make_threadcomm(Comm& parent, int count, Threadcomm** out) noexcept {
  *out = nullptr;
  // Here, and not as the first of them starts: below MPI_THREAD_MULTIPLE this thread is still the only one inside.
  if (count) expect_threads();
  std::unique_ptr<Comm*[]> ranks(new (std::nothrow) Comm*[static_cast<std::size_t>(count) + 1]);
  Threadcomm* threads = pool<Threadcomm>().create();
  if (!ranks || !threads) {
    if (threads) pool<Threadcomm>().destroy(threads);
    return error(MPI_ERR_NO_MEM, "no memory for a communicator of %d threads", count);
  }
  if (const int code = create_endpoints(parent, count, nullptr, ranks.get())) {
    pool<Threadcomm>().destroy(threads);
    return code;
  }
  for (int i = 0; i < count; ++i) ranks[static_cast<std::size_t>(i)]->of_threads = true;
  threads->ranks = std::move(ranks);
  threads->count = count;
  threads->id = next_id.fetch_add(1, std::memory_order_relaxed);
  *out = threads;
  return MPI_SUCCESS;
}

int start_thread(Threadcomm& threads) noexcept {
  if (Place** link = find(threads))
    return error(MPI_ERR_OTHER, "this thread has started already, as rank %d; call MPIX_Threadcomm_finish first",
                 threads.ranks[static_cast<std::size_t>((*link)->index)]->rank);
  Place* place = new (std::nothrow) Place{&threads, threads.id, 0, 0, places.first};
  if (!place) return error(MPI_ERR_NO_MEM, "no memory for a thread's rank");
  {
    const std::lock_guard lock(threads.mutex);
    if (threads.started < threads.count) {
      place->index = threads.started++;
      place->round = threads.rounds.load(std::memory_order_relaxed);
      places.first = place;
      return MPI_SUCCESS;
    }
  }
  delete place;
  return error(MPI_ERR_OTHER, "all %d ranks of this process are taken by other threads; ask MPIX_Threadcomm_init for as many as there "
               "are threads", threads.count);
}

int finish_thread(Threadcomm& threads) noexcept {
  Place** link = find(threads);
  if (!link) return error(MPI_ERR_OTHER, "this thread has no rank to give back; call MPIX_Threadcomm_start first");
  Place* place = *link;
  const std::uint64_t round = place->round;
  *link = place->next;
  delete place;
  bool last;
  {
    const std::lock_guard lock(threads.mutex);
    last = ++threads.finished == threads.count;
    if (last) {
      threads.started = threads.finished = 0;
      threads.rounds.store(round + 1, std::memory_order_release);  // pairs with the acquire below
    }
  }
  // The wait makes progress: others may need it to get here.
  if (last) wake_all_sleepers();
  else wait_until(nullptr, [&] { return threads.rounds.load(std::memory_order_acquire) != round; });
  return MPI_SUCCESS;
}

int free_threadcomm(Threadcomm& threads) noexcept {
  {
    const std::lock_guard lock(threads.mutex);
    if (threads.started)
      return error(MPI_ERR_PENDING, "%d threads have started and %d of %d have finished; all have to call MPIX_Threadcomm_finish first",
                   threads.started, threads.finished, threads.count);
  }
  int code = MPI_SUCCESS;
  for (int i = 0; i < threads.count; ++i)
    if (const int failed = free_comm(*threads.ranks[static_cast<std::size_t>(i)]); failed && !code) code = failed;
  pool<Threadcomm>().destroy(&threads);
  return code;
}

Comm* comm_of_thread(MPI_Comm handle) noexcept {
  const Threadcomm* threads = resolve<Threadcomm>(handle);
  if (!threads) return nullptr;
  Place** link = find(*threads);
  return link ? threads->ranks[static_cast<std::size_t>((*link)->index)] : nullptr;
}

}  // namespace heddle
