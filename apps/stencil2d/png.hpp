// Writes a field as a PNG picture, without a library: 256 colours, stored (uncompressed) deflate blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "field.hpp"

namespace stencil {
namespace png {

using Bytes = std::vector<std::uint8_t>;

inline void put32(Bytes& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(value >> shift));
}

/// A chunk: length, name, data, and the CRC of name and data (PNG specification, annex D).
inline void chunk(Bytes& out, const char* name, const Bytes& data) {
  put32(out, static_cast<std::uint32_t>(data.size()));
  const std::size_t start = out.size();
  out.insert(out.end(), name, name + 4);
  out.insert(out.end(), data.begin(), data.end());
  std::uint32_t crc = 0xffffffffu;
  for (std::size_t i = start; i < out.size(); ++i) {
    crc ^= out[i];
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  put32(out, ~crc);
}

/// A zlib stream of stored blocks.
inline Bytes stored(const Bytes& raw) {
  Bytes out{0x78, 0x01};
  std::size_t at = 0;
  do {
    const std::size_t length = std::min<std::size_t>(raw.size() - at, 65535);
    out.push_back(at + length == raw.size());  // 1: the last block
    for (const std::size_t word : {length, ~length}) {
      out.push_back(static_cast<std::uint8_t>(word));
      out.push_back(static_cast<std::uint8_t>(word >> 8));
    }
    out.insert(out.end(), raw.begin() + at, raw.begin() + at + length);
    at += length;
  } while (at < raw.size());
  std::uint32_t a = 1, b = 0;
  for (const std::uint8_t byte : raw) a = (a + byte) % 65521, b = (b + a) % 65521;
  put32(out, b << 16 | a);
  return out;
}

/// Black, violet, red, orange, pale yellow: temperature as a blacksmith sees it.
inline Bytes palette() {
  static constexpr double stops[][3] = {{0, 0, 4},     {60, 10, 95},   {150, 38, 103},
                                        {221, 81, 58}, {250, 164, 10}, {252, 255, 164}};
  constexpr int last = std::size(stops) - 1;
  Bytes colours;
  for (int i = 0; i < 256; ++i) {
    const double place = i / 255.0 * last;
    const int k = std::min(static_cast<int>(place), last - 1);
    for (int c = 0; c < 3; ++c)
      colours.push_back(
          static_cast<std::uint8_t>(std::lround(stops[k][c] + (stops[k + 1][c] - stops[k][c]) * (place - k))));
  }
  return colours;
}

}  // namespace png

/// Writes `field` to `path`, at most `limit` pixels wide; the hottest cell gets the last colour.
/// False, with errno set, when the file cannot be written.
inline bool write_png(const Field& field, const std::string& path, int limit = 720) {
  const int size = std::min(limit, field.width());
  double hottest = 1e-300;
  for (int y = 1; y <= field.height(); ++y)
    for (int x = 1; x <= field.width(); ++x) hottest = std::max(hottest, field.at(x, y));

  png::Bytes raw;
  for (int row = 0; row < size; ++row) {
    raw.push_back(0);  // no filter
    for (int column = 0; column < size; ++column) {
      const double value = field.at(1 + static_cast<int>(static_cast<long long>(column) * field.width() / size),
                                    1 + static_cast<int>(static_cast<long long>(row) * field.height() / size));
      raw.push_back(static_cast<std::uint8_t>(255 * std::sqrt(std::clamp(value / hottest, 0.0, 1.0))));
    }
  }
  png::Bytes header, file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  png::put32(header, size);
  png::put32(header, size);
  header.insert(header.end(), {8, 3, 0, 0, 0});  // 8 bits, palette
  png::chunk(file, "IHDR", header);
  png::chunk(file, "PLTE", png::palette());
  png::chunk(file, "IDAT", png::stored(raw));
  png::chunk(file, "IEND", {});

  std::FILE* out = std::fopen(path.c_str(), "wb");
  if (!out) return false;
  const bool written = std::fwrite(file.data(), 1, file.size(), out) == file.size();
  return std::fclose(out) == 0 && written;
}

}  // namespace stencil
