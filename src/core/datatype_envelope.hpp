// How a derived datatype was made, for MPI_Type_get_envelope and MPI_Type_get_contents; and the constructors.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "core/count_array.hpp"
#include "core/datatype.hpp"

namespace heddle {

/// A list that grows without exceptions.
template <typename T>
struct EnvelopeList {
  T* data = nullptr;
  std::int64_t size = 0, capacity = 0;

  EnvelopeList() = default;
  EnvelopeList(const EnvelopeList&) = delete;
  EnvelopeList& operator=(const EnvelopeList&) = delete;
  ~EnvelopeList() { std::free(data); }

  /// False when memory is out.
  [[nodiscard]] bool push(T value) noexcept {
    if (size == capacity) {
      const std::int64_t grown = capacity ? capacity * 2 : 4;
      void* memory = std::realloc(data, static_cast<std::size_t>(grown) * sizeof(T));
      if (!memory) return false;
      data = static_cast<T*>(memory);
      capacity = grown;
    }
    data[size++] = value;
    return true;
  }
};

/// The arguments of a constructor as they were given, in the standard's order. \see MPI-5.0 §5.1.13
///
/// CountArray are `integers` when the constructor was called in its int form and `counts` in its MPI_Count form;
/// displacements are `addresses` or `counts`. What is int in both forms (order, ndims, …) is always in `integers`.
struct DatatypeEnvelope {
  explicit DatatypeEnvelope(int combiner, bool large) noexcept : combiner(combiner), large(large) {}

  int combiner;
  bool large;
  EnvelopeList<int> integers;
  EnvelopeList<MPI_Aint> addresses;
  EnvelopeList<MPI_Count> counts;
  EnvelopeList<Datatype*> types;  ///< one reference each

  [[nodiscard]] bool add_integer(int value) noexcept { return integers.push(value); }
  [[nodiscard]] bool add_count(MPI_Count value) noexcept {
    return large ? counts.push(value) : integers.push(static_cast<int>(value));
  }
  [[nodiscard]] bool add_address(MPI_Count value) noexcept {
    return large ? counts.push(value) : addresses.push(value);
  }
  [[nodiscard]] bool add_type(Datatype& type) noexcept {
    if (!types.push(&type)) return false;
    retain(type);
    return true;
  }
};

/// The constructors. `large`: called in the form that takes MPI_Count (only the envelope differs).
/// Arguments are checked here. The new type, uncommitted, holds references to what it was made of.
/// \return MPI_SUCCESS, or an error code that names the argument. Thread-safe.
int make_contiguous(MPI_Count count, Datatype& old, bool large, Datatype*& result) noexcept;
int make_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, Datatype& old, bool large,
                Datatype*& result) noexcept;
int make_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, Datatype& old, bool large,
                 Datatype*& result) noexcept;
int make_indexed(MPI_Count count, CountArray blocklengths, CountArray displacements, Datatype& old, bool large,
                 Datatype*& result) noexcept;
int make_hindexed(MPI_Count count, CountArray blocklengths, CountArray displacements, Datatype& old, bool large,
                  Datatype*& result) noexcept;
int make_indexed_block(MPI_Count count, MPI_Count blocklength, CountArray displacements, Datatype& old, bool large,
                       Datatype*& result) noexcept;
int make_hindexed_block(MPI_Count count, MPI_Count blocklength, CountArray displacements, Datatype& old, bool large,
                        Datatype*& result) noexcept;
int make_struct(MPI_Count count, CountArray blocklengths, CountArray displacements, Datatype* const* types, bool large,
                Datatype*& result) noexcept;
int make_resized(Datatype& old, MPI_Count lb, MPI_Count extent, bool large, Datatype*& result) noexcept;
/// Committed when `old` is. Attributes are the caller's to copy.
int make_dup(Datatype& old, Datatype*& result) noexcept;
int make_subarray(int ndims, CountArray sizes, CountArray subsizes, CountArray starts, int order, Datatype& old,
                  bool large, Datatype*& result) noexcept;
int make_darray(int size, int rank, int ndims, CountArray gsizes, const int* distribs, const int* dargs,
                const int* psizes, int order, Datatype& old, bool large, Datatype*& result) noexcept;

}  // namespace heddle
