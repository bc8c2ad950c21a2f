// What the files of the datatype chapter share.
#pragma once

#include "core/attribute.hpp"
#include "core/datatype.hpp"

namespace heddle::mpi {

/// The attributes of a datatype for the functions of core/attribute.hpp. \pre type.attributes
inline AttributeOwner attributes_of(Datatype& type) noexcept {
  return {KeyvalKind::type, to_handle(&type), *type.attributes, type.mutex};
}

}  // namespace heddle::mpi
