// A datatype under construction: what all constructors share.
#pragma once

#include "core/datatype_envelope.hpp"
#include "core/datatype_layout.hpp"

namespace heddle::detail {

/// Owns the new object until `finish` hands it out; gathers bounds, alignment and the common basic type on the way.
class NewType {
 public:
  NewType(int combiner, bool large) noexcept;
  NewType(const NewType&) = delete;
  NewType& operator=(const NewType&) = delete;
  ~NewType();

  [[nodiscard]] bool ok() const noexcept { return type_ != nullptr; }
  [[nodiscard]] DatatypeEnvelope& envelope() noexcept { return *type_->envelope; }

  /// The new type has `count` elements of `old`, the j-th at displacement + j*stride. False when an address overflows.
  [[nodiscard]] bool cover(std::int64_t displacement, std::int64_t count, std::int64_t stride,
                           const Datatype& old) noexcept;
  /// Sets the bounds, whatever was covered.
  void mark(std::int64_t lb, std::int64_t ub) noexcept {
    marked_ = true;
    lb_ = lb;
    ub_ = ub;
  }
  /// Hands out the type. \return MPI_SUCCESS or an error code
  int finish(LayoutRef layout, Datatype*& result) noexcept;

  static int too_large() noexcept;
  static int no_memory() noexcept;

 private:
  Datatype* type_;
  bool marked_ = false, covered_data_ = false;
  std::int64_t lb_ = 0, ub_ = 0;        ///< of the covered types with explicit bounds
  std::int64_t padded_ub_ = INT64_MIN;  ///< of the others, with their padding
  BasicType basic_ = 0;
  std::uint8_t alignment_ = 1;
};

}  // namespace heddle::detail
