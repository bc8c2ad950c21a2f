// The plate: what it looks like at the start and how heat spreads on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "layout.hpp"

namespace stencil {

/// A rectangle of cells with a border of one cell around it: the halo. Cell (1, 1) is the first inner one.
class Field {
 public:
  Field(int width, int height)
      : width_(width), height_(height), cells_(static_cast<std::size_t>(width + 2) * (height + 2), 0.0) {}

  double& at(int x, int y) { return cells_[static_cast<std::size_t>(y) * (width_ + 2) + x]; }
  const double& at(int x, int y) const { return cells_[static_cast<std::size_t>(y) * (width_ + 2) + x]; }
  int width() const { return width_; }
  int height() const { return height_; }

 private:
  int width_, height_;
  std::vector<double> cells_;
};

/// One step of the heat equation, explicit, five points: reads `from`, writes `block` of `to`.
/// Every cell is computed by the same expression wherever the borders of blocks lie, so that a parallel run gives
/// the serial run's result to the last bit.
inline void spread(const Field& from, Field& to, const Block& block) {
  constexpr double rate = 0.2;  // below 0.25 the scheme is stable
  for (int y = block.y.begin; y < block.y.end; ++y) {
    const double *above = &from.at(0, y - 1), *here = &from.at(0, y), *below = &from.at(0, y + 1);
    double* out = &to.at(0, y);
    for (int x = block.x.begin; x < block.x.end; ++x)
      out[x] = here[x] + rate * (((above[x] + below[x]) + (here[x - 1] + here[x + 1])) - 4.0 * here[x]);
  }
}

/// Temperature at the start of the cell (x, y) of a plate of size x size: the project's name in hot letters.
inline double initial(int size, int x, int y) {
  constexpr std::string_view text = "HEDDLE";
  constexpr int letter_width = 5, letter_height = 7, gap = 1;
  constexpr int columns = static_cast<int>(text.size()) * (letter_width + gap) + gap;
  const double dot = static_cast<double>(size) / columns;
  const int column = static_cast<int>(x / dot) - gap;
  const int row = static_cast<int>((y - (size - letter_height * dot) / 2) / dot);
  if (column < 0 || y < (size - letter_height * dot) / 2 || row >= letter_height) return 0.0;
  const std::size_t index = static_cast<std::size_t>(column / (letter_width + gap));
  if (index >= text.size() || column % (letter_width + gap) >= letter_width) return 0.0;

  // Five bits a row, the leftmost column in the highest bit.
  struct Glyph {
    char name;
    std::uint8_t rows[letter_height];
  };
  static constexpr Glyph glyphs[] = {{'H', {17, 17, 17, 31, 17, 17, 17}},
                                     {'E', {31, 16, 16, 30, 16, 16, 31}},
                                     {'D', {30, 17, 17, 17, 17, 17, 30}},
                                     {'L', {16, 16, 16, 16, 16, 16, 31}}};
  for (const Glyph& glyph : glyphs)
    if (glyph.name == text[index]) return (glyph.rows[row] >> (letter_width - 1 - column % (letter_width + gap))) & 1;
  return 0.0;
}

/// Fills the inner cells with the start temperatures of the cells from (left, top) of the plate.
inline void heat(Field& field, int size, int left, int top) {
  for (int y = 1; y <= field.height(); ++y)
    for (int x = 1; x <= field.width(); ++x) field.at(x, y) = initial(size, left + x - 1, top + y - 1);
}

/// The whole plate after `iterations` steps of one thread: what every other run is checked against.
inline Field serial(int size, int iterations) {
  Field now(size, size), next(size, size);
  heat(now, size, 0, 0);
  for (int i = 0; i < iterations; ++i) {
    spread(now, next, {{1, size + 1}, {1, size + 1}});
    std::swap(now, next);
  }
  return now;
}

}  // namespace stencil
