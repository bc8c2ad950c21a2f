#include "core/datatype_external.hpp"

#include <cstring>

#include "core/datatype_copy.hpp"
#include "core/datatype_layout.hpp"
#include "sys/error.hpp"

namespace heddle {
namespace {

using std::int64_t;

/// The walk: user memory on one side, the external stream on the other.
struct Stream {
  std::byte* at;
  bool fits = true;  ///< every value so far could be represented
  BasicType misfit = 0;
};

template <std::size_t N>
void swap_bytes(const std::byte* from, std::byte* to) noexcept {
  if constexpr (N == 1) {
    *to = *from;
  } else if constexpr (N == 2) {
    std::uint16_t v;
    std::memcpy(&v, from, N);
    v = __builtin_bswap16(v);
    std::memcpy(to, &v, N);
  } else if constexpr (N == 4) {
    std::uint32_t v;
    std::memcpy(&v, from, N);
    v = __builtin_bswap32(v);
    std::memcpy(to, &v, N);
  } else if constexpr (N == 8) {
    std::uint64_t v;
    std::memcpy(&v, from, N);
    v = __builtin_bswap64(v);
    std::memcpy(to, &v, N);
  } else {
    static_assert(N == 16);
    std::uint64_t v[2];
    std::memcpy(v, from, N);
    const std::uint64_t w[2] = {__builtin_bswap64(v[1]), __builtin_bswap64(v[0])};
    std::memcpy(to, w, N);
  }
}

/// n numbers of N bytes whose external form only has the bytes in the other order.
template <bool Pack, std::size_t N>
void swap_run(std::byte* user, Stream& stream, int64_t n) noexcept {
  std::byte* external = stream.at;
  for (int64_t i = 0; i < n; ++i, user += N, external += N)
    Pack ? swap_bytes<N>(user, external) : swap_bytes<N>(external, user);
  stream.at = external;
}

/// n integers that are wider in memory than outside.
template <bool Pack, typename Wide, typename Narrow>
void narrow_run(std::byte* user, Stream& stream, int64_t n, BasicType basic) noexcept {
  for (int64_t i = 0; i < n; ++i, user += sizeof(Wide), stream.at += sizeof(Narrow)) {
    Wide wide;
    Narrow narrow;
    if constexpr (Pack) {
      std::memcpy(&wide, user, sizeof wide);
      narrow = static_cast<Narrow>(wide);
      if (static_cast<Wide>(narrow) != wide) {
        stream.fits = false;
        stream.misfit = basic;
      }
      swap_bytes<sizeof narrow>(reinterpret_cast<const std::byte*>(&narrow), stream.at);
    } else {
      swap_bytes<sizeof narrow>(stream.at, reinterpret_cast<std::byte*>(&narrow));
      wide = static_cast<Wide>(narrow);
      std::memcpy(user, &wide, sizeof wide);
    }
  }
}

/// n x87 numbers, which are IEEE binary128 outside.
template <bool Pack>
void extended_run(std::byte* user, Stream& stream, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i, user += 16, stream.at += 16) {
    long double value;
    __float128 quad;
    if constexpr (Pack) {
      std::memcpy(&value, user, sizeof value);
      quad = value;
      swap_bytes<16>(reinterpret_cast<const std::byte*>(&quad), stream.at);
    } else {
      swap_bytes<16>(stream.at, reinterpret_cast<std::byte*>(&quad));
      value = static_cast<long double>(quad);
      std::memset(user, 0, sizeof value);  // the six bytes that a long double does not use
      std::memcpy(user, &value, 10);
    }
  }
}

template <bool Pack>
void run(BasicType basic, std::byte* user, Stream& stream, int64_t n) noexcept {
  using R = Representation;
  const BasicInfo& info = basic_info(basic);
  switch (info.representation) {
    case R::f80:
      return extended_run<Pack>(user, stream, n);
    case R::c_f80:
      return extended_run<Pack>(user, stream, 2 * n);
    case R::character:
      if (info.size == 4) return narrow_run<Pack, std::uint32_t, std::uint16_t>(user, stream, n, basic);
      break;
    case R::i64:
      if (info.external == 4) return narrow_run<Pack, std::int64_t, std::int32_t>(user, stream, n, basic);
      break;
    case R::u64:
      if (info.external == 4) return narrow_run<Pack, std::uint64_t, std::uint32_t>(user, stream, n, basic);
      break;
    default:
      break;
  }
  const bool complex = info.representation == R::c_f16 || info.representation == R::c_f32 ||
                       info.representation == R::c_f64 || info.representation == R::c_f128;
  const int unit = complex ? info.size / 2 : info.size;
  if (complex) n *= 2;
  switch (unit) {
    case 1:
      if (n)
        Pack ? std::memcpy(stream.at, user, static_cast<std::size_t>(n))
             : std::memcpy(user, stream.at, static_cast<std::size_t>(n));
      stream.at += n;
      return;
    case 2:
      return swap_run<Pack, 2>(user, stream, n);
    case 4:
      return swap_run<Pack, 4>(user, stream, n);
    case 8:
      return swap_run<Pack, 8>(user, stream, n);
    default:
      return swap_run<Pack, 16>(user, stream, n);
  }
}

template <bool Pack>
void walk(const Layout& node, UserAddress user, Stream& stream, int64_t count, int64_t stride) noexcept {
  const auto block = [&](UserAddress at, int64_t bytes) {
    run<Pack>(node.basic, reinterpret_cast<std::byte*>(at), stream, bytes / basic_info(node.basic).size);
  };
  user += static_cast<UserAddress>(node.offset);
  for (int64_t i = 0; i < count; ++i, user += static_cast<UserAddress>(stride)) {
    switch (node.shape) {
      case Layout::Shape::block:
        block(user, node.size);
        break;
      case Layout::Shape::loop:
        walk<Pack>(*node.child, user, stream, node.count, node.stride);
        break;
      case Layout::Shape::blocks:
        for (int64_t k = 0; k < node.count; ++k)
          block(user + static_cast<UserAddress>(node.offsets[k]), node.block_length(k));
        break;
      case Layout::Shape::items:
        for (int64_t k = 0; k < node.count; ++k) {
          const Layout::Item& item = node.items[k];
          walk<Pack>(*item.child, user + static_cast<UserAddress>(item.offset), stream, item.count, item.stride);
        }
        break;
    }
  }
}

int outcome(const Stream& stream) noexcept {
  if (stream.fits) return MPI_SUCCESS;
  const BasicInfo& info = basic_info(stream.misfit);
  return error(
      MPI_ERR_CONVERSION,
      "a value of type %s does not fit the %d bytes that external32 has for it; send it as a type of fixed size",
      info.name, info.external);
}

}  // namespace

MPI_Count external_size(const Datatype& type, MPI_Count count) noexcept {
  MPI_Count bytes;
  if (__builtin_mul_overflow(type.layout ? type.layout->external : 0, count, &bytes)) return -1;
  return bytes;
}

int pack_external(const void* buffer, MPI_Count count, const Datatype& type, void* out) noexcept {
  Stream stream{static_cast<std::byte*>(out)};
  if (type.layout) walk<true>(*type.layout, reinterpret_cast<UserAddress>(buffer), stream, count, type.extent);
  return outcome(stream);
}

int unpack_external(void* buffer, MPI_Count count, const Datatype& type, const void* in) noexcept {
  Stream stream{static_cast<std::byte*>(const_cast<void*>(in))};
  if (type.layout) walk<false>(*type.layout, reinterpret_cast<UserAddress>(buffer), stream, count, type.extent);
  return outcome(stream);
}

}  // namespace heddle
