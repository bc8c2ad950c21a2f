// ranks: 2 3
// timeout: 120
// args: --operations 10000
// Random windows, layouts, operations and synchronisation, against a model: every rank draws the same program from one seed, performs its
// own part of it, and computes what each byte of each window and of each buffer must be. Ranges that operations of one round touch are
// disjoint, or are one origin's, in an order that the standard keeps, or are accumulates of many origins that commute.
//
//   --operations N   stops after N operations (of all ranks together)
//   --seed S         another program
#include <memory>

#include "windows.hpp"

using namespace test;

namespace {

struct Options {
  long operations = 10000;
  std::uint64_t seed = 1;
};

thread_local std::uint64_t seed_of_all = 0;
thread_local long operation = 0;

[[noreturn]] void fail(const char* what, std::size_t byte) {
  check_fail(__FILE__, __LINE__, "seed %llu, operation %ld: %s: byte %zu is wrong", static_cast<unsigned long long>(seed_of_all), operation, what,
             byte);
}

// `n` elements in some order within `room` elements, and the datatype that names them.
struct Layout {
  std::vector<std::size_t> places;  // in elements from the start
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  bool owned = false;
  std::size_t start = 0;  // the element at which the buffer address or displacement lies

  void free() {
    if (owned) CHECK_OK(MPI_Type_free(&type));
  }
};

// \param build make the datatype as well; ranks that only follow need the places alone
Layout draw_layout(Random& random, std::size_t n, std::size_t room, MPI_Datatype basic, std::size_t size, bool start_fixed, bool build) {
  Layout layout;
  const auto extent = static_cast<MPI_Aint>(size);
  const auto kind = random.below(6);
  const auto own = [&](int count) { layout.count = count, layout.owned = true; };
  if (kind == 0 || n == 0) {
    layout.start = start_fixed ? 0 : random.below(room - n + 1);
    for (std::size_t i = 0; i < n; ++i) layout.places.push_back(layout.start + i);
    layout.type = basic;
    layout.count = static_cast<int>(n);
  } else if (kind == 1) {  // one element after another, with gaps
    const std::size_t gap = 1 + random.below(std::max<std::size_t>(1, room / n));
    for (std::size_t i = 0; i < n; ++i) layout.places.push_back(i * gap);
    own(static_cast<int>(n));
    if (build) MPI_Type_create_resized(basic, 0, static_cast<MPI_Aint>(gap) * extent, &layout.type);
  } else if (kind == 2 || kind == 3) {  // blocks at a stride, forwards or backwards
    std::size_t block = 1 + random.below(n);
    while (n % block) --block;
    const std::size_t blocks = n / block, stride = block + (blocks > 1 ? random.below((room - n) / (blocks - 1) + 1) : 0);
    const bool backwards = kind == 3 && !start_fixed;
    layout.start = backwards ? (blocks - 1) * stride : 0;
    for (std::size_t b = 0; b < blocks; ++b)
      for (std::size_t k = 0; k < block; ++k) layout.places.push_back((backwards ? blocks - 1 - b : b) * stride + k);
    own(1);
    if (build)
      MPI_Type_create_hvector(static_cast<int>(blocks), static_cast<int>(block), (backwards ? -1 : 1) * static_cast<MPI_Aint>(stride) * extent, basic,
                              &layout.type);
  } else {  // blocks of any length at any place in any order
    std::vector<std::size_t> lengths, at;
    std::size_t left = n, next = 0;
    while (left) {
      const std::size_t length = 1 + random.below(std::min<std::size_t>(left, 1 + n / 3));
      next += random.below(1 + (room - next - left) / 2);
      lengths.push_back(length), at.push_back(next);
      next += length, left -= length;
    }
    for (std::size_t i = lengths.size(); i > 1; --i) {
      const std::size_t k = random.below(i);
      std::swap(lengths[i - 1], lengths[k]), std::swap(at[i - 1], at[k]);
    }
    for (std::size_t b = 0; b < lengths.size(); ++b)
      for (std::size_t k = 0; k < lengths[b]; ++k) layout.places.push_back(at[b] + k);
    own(1);
    if (build) {
      std::vector<int> blocklengths(lengths.begin(), lengths.end());
      std::vector<MPI_Aint> displacements;
      for (const std::size_t place : at) displacements.push_back(static_cast<MPI_Aint>(place) * extent);
      const std::vector<MPI_Datatype> types(lengths.size(), basic);
      const int blocks = static_cast<int>(lengths.size());
      if (kind == 4) MPI_Type_create_hindexed(blocks, blocklengths.data(), displacements.data(), basic, &layout.type);
      else MPI_Type_create_struct(blocks, blocklengths.data(), displacements.data(), types.data(), &layout.type);
    }
  }
  if (layout.owned && build) MPI_Type_commit(&layout.type);
  if (!build) layout.owned = false;
  return layout;
}

struct Basic {
  MPI_Datatype type;
  std::size_t size;
};

std::uint64_t load(const unsigned char* from, std::size_t size) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, size);
  return value;
}
void store(unsigned char* to, std::size_t size, std::uint64_t value) { std::memcpy(to, &value, size); }

std::uint64_t combined(MPI_Op op, std::uint64_t old, std::uint64_t with) {
  if (op == MPI_SUM) return old + with;
  if (op == MPI_BXOR) return old ^ with;
  if (op == MPI_BAND) return old & with;
  if (op == MPI_PROD) return old * with;
  if (op == MPI_MAX) return std::max(old, with);
  if (op == MPI_REPLACE) return with;
  return old;  // MPI_NO_OP
}

// A window and what every rank's part of it must hold.
struct Modelled {
  Memory memory;
  std::vector<std::vector<unsigned char>> bytes;  // by rank
};

class Driver {
 public:
  Driver(const Options& options, const World& w) : random_(mix(options.seed)), world_(w), limit_(options.operations) {}

  void run() {
    flavours_ = flavours_on(MPI_COMM_WORLD);
    while (windows_.size() < 4) make();
    while (operation < limit_) {
      if (random_.below(40) == 0) {
        const std::size_t k = random_.below(windows_.size());
        check_whole(*windows_[k]);
        windows_[k]->memory.free();
        windows_.erase(windows_.begin() + static_cast<std::ptrdiff_t>(k));
        make();
      }
      round(*windows_[random_.below(windows_.size())]);
    }
    for (auto& window : windows_) {
      check_whole(*window);
      MPI_Barrier(MPI_COMM_WORLD);
      window->memory.free();
    }
  }

 private:
  // What an operation reads or fills, and what it must hold afterwards; nothing wanted: it cannot be known.
  struct Buffer {
    std::vector<unsigned char> bytes, wanted;
  };

  void make() {
    const Flavour flavour = flavours_[random_.below(flavours_.size())];
    std::vector<std::size_t> sizes;
    std::vector<int> units;
    for (int r = 0; r < world_.size; ++r) {
      constexpr std::size_t choices[] = {0, 16, 256, 4096, 4096, 70000, 300000};
      sizes.push_back(choices[random_.below(7)] / 16 * 16);
      units.push_back(1 << random_.below(5));
    }
    const auto me = static_cast<std::size_t>(world_.rank);
    auto made = std::make_unique<Modelled>(Modelled{Memory(flavour, sizes[me], MPI_COMM_WORLD, units[me]), {}});
    for (const std::size_t size : sizes) made->bytes.emplace_back(size, 0);
    for (int r = 0; r < world_.size; ++r) {
      auto& bytes = made->bytes[static_cast<std::size_t>(r)];
      fill(bytes.data(), bytes.size(), random_.next());
    }
    if (sizes[me]) std::memcpy(made->memory.base, made->bytes[me].data(), sizes[me]);
    MPI_Barrier(MPI_COMM_WORLD);
    windows_.push_back(std::move(made));
  }

  void check_own(const Modelled& window, std::size_t begin, std::size_t end) {
    const auto& wanted = window.bytes[static_cast<std::size_t>(world_.rank)];
    if (begin >= end || !std::memcmp(window.memory.base + begin, wanted.data() + begin, end - begin)) return;
    for (std::size_t i = begin; i < end; ++i)
      if (window.memory.base[i] != wanted[i]) fail((std::string("the window's memory, made by ") + name_of(window.memory.flavour())).c_str(), i);
  }
  void check_whole(const Modelled& window) { check_own(window, 0, window.bytes[static_cast<std::size_t>(world_.rank)].size()); }

  Basic draw_basic(bool for_accumulate) {
    constexpr std::size_t sizes[] = {1, 2, 4, 8};
    const MPI_Datatype types[] = {MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T};
    const std::size_t k = random_.below(4);
    if (!for_accumulate && k == 0) return {MPI_BYTE, 1};
    return {types[k], sizes[k]};
  }

  MPI_Op draw_op(bool commuting) {
    const MPI_Op ops[] = {MPI_SUM, MPI_BXOR, MPI_BAND, MPI_PROD, MPI_MAX, MPI_REPLACE, MPI_NO_OP};
    return ops[random_.below(commuting ? 5 : 7)];
  }

  // A buffer of drawn bytes; those outside of the layout must stay.
  std::unique_ptr<Buffer> draw_buffer(std::size_t elements, std::size_t size) {
    auto buffer = std::make_unique<Buffer>();
    buffer->bytes.resize(elements * size);
    fill(buffer->bytes.data(), buffer->bytes.size(), random_.next());
    buffer->wanted = buffer->bytes;
    return buffer;
  }

  // Everything that may be written to `target` in its bytes [begin, begin + length) by `origin` in this round: up to four operations.
  void chain(Modelled& window, int origin, int target, std::size_t begin, std::size_t length, bool passive) {
    const bool accumulates = random_.below(2);
    // Only accumulates are ordered without a flush between them, and only those of one basic type.
    const auto links = passive || accumulates ? 1 + random_.below(4) : 1;
    const Basic basic = draw_basic(accumulates);
    for (std::uint64_t link = 0; link < links; ++link) {
      const bool flushed = passive && !accumulates;
      one(window, origin, target, begin, length, basic, accumulates, false, MPI_OP_NULL, passive);
      if (flushed && origin == world_.rank) {
        const auto how = (begin + link) % 2;
        CHECK_OK(how ? MPI_Win_flush(target, window.memory.win) : MPI_Win_flush_all(window.memory.win));
      }
    }
  }

  void one(Modelled& window, int origin, int target, std::size_t begin, std::size_t length, const Basic& basic, bool accumulates, bool shared,
           MPI_Op op, bool passive) {
    ++operation;
    const bool mine = origin == world_.rank;
    const std::size_t size = basic.size, room = length / size;
    std::size_t n = random_.below(8) ? 1 + random_.below(room) : random_.below(2) * room;
    if (random_.below(3) == 0) n = std::min<std::size_t>(n, 1);
    const auto& memory = window.memory;
    unsigned char* const model = window.bytes[static_cast<std::size_t>(target)].data() + begin;
    if (op == MPI_OP_NULL && accumulates) op = draw_op(false);

    const auto form = random_.below(4);
    if (accumulates && n == 1 && form < 2) {  // single elements have calls of their own
      const std::size_t place = random_.below(room);
      unsigned char* const at = model + place * size;
      const std::size_t unit = 16;  // displacements are multiples of every unit there is
      if ((place * size) % unit == 0) {
        const std::uint64_t old = load(at, size), with = random_.next(), guess = form || shared || random_.below(2) ? old : random_.next();
        const bool swap = form == 1 && !shared;
        std::uint64_t value = 0, expected = 0;
        store(reinterpret_cast<unsigned char*>(&value), size, with);
        store(reinterpret_cast<unsigned char*>(&expected), size, guess);
        if (swap) {
          if (load(reinterpret_cast<unsigned char*>(&expected), size) == old) store(at, size, with);
        } else {
          store(at, size, combined(op, old, load(reinterpret_cast<unsigned char*>(&value), size)));
        }
        if (mine) {
          auto operands = draw_words(value, expected);
          std::uint64_t* const words = reinterpret_cast<std::uint64_t*>(operands->bytes.data());
          const MPI_Aint disp = memory.at(target, begin + place * size);
          if (swap) CHECK_OK(MPI_Compare_and_swap(&words[0], &words[1], &words[2], basic.type, target, disp, memory.win));
          else CHECK_OK(MPI_Fetch_and_op(&words[0], &words[2], basic.type, target, disp, op, memory.win));
          if (!shared) store(operands->wanted.data() + 16, size, old);
          else operands->wanted.clear();
          buffers_.push_back(std::move(operands));
        }
        return;
      }
    }
    Layout there = draw_layout(random_, n, room, basic.type, size, true, mine);
    std::vector<std::unique_ptr<Buffer>> used;
    const std::size_t origin_room = n + random_.below(n + 8);
    Layout here = draw_layout(random_, n, origin_room, basic.type, size, false, mine);
    auto data = draw_buffer(origin_room, size);
    const bool fetches = accumulates && random_.below(2);
    const bool gets = !accumulates && random_.below(2);
    const std::size_t result_room = n + random_.below(n + 8);
    Layout into;
    std::unique_ptr<Buffer> result;
    if (fetches || op == MPI_NO_OP) {
      into = draw_layout(random_, n, result_room, basic.type, size, false, mine);
      result = draw_buffer(result_room, size);
    }
    const bool request = passive && random_.below(3) == 0;

    for (std::size_t i = 0; i < n; ++i) {
      unsigned char* const at = model + there.places[i] * size;
      unsigned char* const own = data->bytes.data() + here.places[i] * size;
      const std::uint64_t old = load(at, size);
      if (gets) store(data->wanted.data() + here.places[i] * size, size, old);
      else if (!accumulates) store(at, size, load(own, size));
      else {
        if (result) store(result->wanted.data() + into.places[i] * size, size, old);
        store(at, size, combined(op, old, load(own, size)));
      }
    }
    if (mine) {
      const MPI_Aint disp = memory.at(target, begin);
      void* const from = data->bytes.data() + here.start * size;
      const MPI_Win win = memory.win;
      MPI_Request r = MPI_REQUEST_NULL;
      if (gets) {
        CHECK_OK(request ? MPI_Rget(from, here.count, here.type, target, disp, there.count, there.type, win, &r)
                         : MPI_Get(from, here.count, here.type, target, disp, there.count, there.type, win));
      } else if (!accumulates) {
        CHECK_OK(request ? MPI_Rput(from, here.count, here.type, target, disp, there.count, there.type, win, &r)
                         : MPI_Put(from, here.count, here.type, target, disp, there.count, there.type, win));
      } else if (result) {
        void* const to = result->bytes.data() + into.start * size;
        CHECK_OK(request ? MPI_Rget_accumulate(from, here.count, here.type, to, into.count, into.type, target, disp, there.count, there.type,
                                               op, win, &r)
                         : MPI_Get_accumulate(from, here.count, here.type, to, into.count, into.type, target, disp, there.count, there.type,
                                              op, win));
      } else {
        CHECK_OK(request ? MPI_Raccumulate(from, here.count, here.type, target, disp, there.count, there.type, op, win, &r)
                         : MPI_Accumulate(from, here.count, here.type, target, disp, there.count, there.type, op, win));
      }
      if (request) {
        CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        if (gets) check_buffer(*data);
        if (result && !shared) check_buffer(*result);
      }
      if (result) {
        if (shared) result->wanted.clear();  // what others have left there by then
        buffers_.push_back(std::move(result));
      }
      buffers_.push_back(std::move(data));
      there.free(), here.free(), into.free();
    }
  }

  std::unique_ptr<Buffer> draw_words(std::uint64_t value, std::uint64_t expected) {
    auto buffer = std::make_unique<Buffer>();
    buffer->bytes.assign(24, 0x77);
    std::memcpy(buffer->bytes.data(), &value, 8);
    std::memcpy(buffer->bytes.data() + 8, &expected, 8);
    buffer->wanted = buffer->bytes;
    return buffer;
  }

  void check_buffer(const Buffer& buffer) {
    if (buffer.wanted.empty() || buffer.bytes == buffer.wanted) return;
    for (std::size_t i = 0; i < buffer.bytes.size(); ++i)
      if (buffer.bytes[i] != buffer.wanted[i]) fail("a buffer", i);
  }

  void round(Modelled& window) {
    const Epoch epoch = all_epochs[random_.below(4)];
    const bool passive = epoch == Epoch::lock || epoch == Epoch::lock_all;
    std::vector<std::pair<std::size_t, std::size_t>> touched;  // of this rank's memory
    in_epoch(epoch, window.memory.win, MPI_COMM_WORLD, [&] {
      for (int target = 0; target < world_.size; ++target) {
        const std::size_t end = window.bytes[static_cast<std::size_t>(target)].size();
        std::size_t at = 16 * random_.below(4);
        for (auto ranges = random_.below(6); ranges > 0 && at + 16 <= end; --ranges) {
          std::size_t length = 16 * (1 + random_.below(std::size_t{1} << random_.below(random_.below(8) ? 6 : 13)));
          length = std::min(length, (end - at) / 16 * 16);
          if (random_.below(4) == 0) {  // everyone accumulates
            const Basic basic = draw_basic(true);
            const MPI_Op op = draw_op(true);
            for (int origin = 0; origin < world_.size; ++origin)
              for (auto times = random_.below(4); times > 0; --times) one(window, origin, target, at, length, basic, true, true, op, passive);
          } else {
            chain(window, static_cast<int>(random_.below(static_cast<std::uint64_t>(world_.size))), target, at, length, passive);
          }
          if (target == world_.rank) touched.emplace_back(at, at + length);
          at += length + 16 * random_.below(64);
        }
      }
    });
    for (const auto& buffer : buffers_) check_buffer(*buffer);
    buffers_.clear();
    for (const auto& [begin, end] : touched) check_own(window, begin, end);
    MPI_Barrier(MPI_COMM_WORLD);
  }

  Random random_;
  World world_;
  long limit_;
  std::vector<Flavour> flavours_;
  std::vector<std::unique_ptr<Modelled>> windows_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

}  // namespace

int main(int argc, char** argv) {
  const World w = init();
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--operations")) options.operations = std::atol(argv[i + 1]);
    if (!std::strcmp(argv[i], "--seed")) options.seed = std::strtoull(argv[i + 1], nullptr, 0);
  }
  seed_of_all = options.seed;
  Driver(options, w).run();
  return finish();
}
