// Explicit packing. MPI-5.0 sections 5.2 and 5.3.
#include <cstring>

#include "core/datatype_external.hpp"
#include "generated/impl.hpp"
#include "mpi/check.hpp"

namespace heddle::mpi {
namespace {

/// Checks that `bytes` fit between *position and `size`.
int check_room(MPI_Count bytes, MPI_Count position, MPI_Count size, const char* size_name) noexcept {
  if (position < 0 || position > size)
    return error(MPI_ERR_ARG, "*position is %lld; it must be from 0 to %s (%lld)", static_cast<long long>(position),
                 size_name, static_cast<long long>(size));
  if (bytes < 0 || bytes > size - position)
    return error(MPI_ERR_TRUNCATE, "the data take %lld bytes, but from *position (%lld) to %s (%lld) there are %lld",
                 static_cast<long long>(bytes), static_cast<long long>(position), size_name,
                 static_cast<long long>(size), static_cast<long long>(size - position));
  return MPI_SUCCESS;
}

/// The packed size, or -1 when it does not fit.
MPI_Count packed_size(const Datatype& type, MPI_Count count) noexcept {
  MPI_Count bytes;
  return __builtin_mul_overflow(type.size, count, &bytes) ? -1 : bytes;
}

int too_large(MPI_Count count) noexcept {
  return error(MPI_ERR_VALUE_TOO_LARGE, "%lld elements of this datatype are more than 2^63-1 bytes",
               static_cast<long long>(count));
}

int check_representation(const char* name) noexcept {
  if (std::strcmp(name, "external32") == 0) return MPI_SUCCESS;
  return error(MPI_ERR_UNSUPPORTED_DATAREP, "data representation '%s' is not known here; there is \"external32\"",
               name);
}

}  // namespace

int Pack(const void* inbuf, MPI_Count incount, Datatype& datatype, void* outbuf, MPI_Count outsize, MPI_Count* position,
         Comm&) {
  const MPI_Count bytes = packed_size(datatype, incount);
  if (const int code = check_room(bytes, *position, outsize, "outsize"); code != MPI_SUCCESS) return code;
  if (bytes == 0) return MPI_SUCCESS;
  if (const int code = check::pointer(outbuf, "outbuf"); code != MPI_SUCCESS) return code;
  PackCursor cursor;
  pack(inbuf, incount, datatype, cursor, static_cast<char*>(outbuf) + *position, static_cast<std::size_t>(bytes));
  *position += bytes;
  return MPI_SUCCESS;
}

int Unpack(const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf, MPI_Count outcount,
           Datatype& datatype, Comm&) {
  const MPI_Count bytes = packed_size(datatype, outcount);
  if (const int code = check_room(bytes, *position, insize, "insize"); code != MPI_SUCCESS) return code;
  if (bytes == 0) return MPI_SUCCESS;
  if (const int code = check::pointer(inbuf, "inbuf"); code != MPI_SUCCESS) return code;
  PackCursor cursor;
  unpack(outbuf, outcount, datatype, cursor, static_cast<const char*>(inbuf) + *position,
         static_cast<std::size_t>(bytes));
  *position += bytes;
  return MPI_SUCCESS;
}

int Pack_size(MPI_Count incount, Datatype& datatype, Comm&, MPI_Count* size) {
  *size = packed_size(datatype, incount);
  return *size < 0 ? too_large(incount) : MPI_SUCCESS;
}

int Pack_external(const char* datarep, const void* inbuf, MPI_Count incount, Datatype& datatype, void* outbuf,
                  MPI_Count outsize, MPI_Count* position) {
  if (const int code = check_representation(datarep); code != MPI_SUCCESS) return code;
  const MPI_Count bytes = external_size(datatype, incount);
  if (const int code = check_room(bytes, *position, outsize, "outsize"); code != MPI_SUCCESS) return code;
  if (bytes == 0) return MPI_SUCCESS;
  if (const int code = check::pointer(outbuf, "outbuf"); code != MPI_SUCCESS) return code;
  const int code = pack_external(inbuf, incount, datatype, static_cast<char*>(outbuf) + *position);
  if (code == MPI_SUCCESS) *position += bytes;
  return code;
}

int Unpack_external(const char* datarep, const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf,
                    MPI_Count outcount, Datatype& datatype) {
  if (const int code = check_representation(datarep); code != MPI_SUCCESS) return code;
  const MPI_Count bytes = external_size(datatype, outcount);
  if (const int code = check_room(bytes, *position, insize, "insize"); code != MPI_SUCCESS) return code;
  if (bytes == 0) return MPI_SUCCESS;
  if (const int code = check::pointer(inbuf, "inbuf"); code != MPI_SUCCESS) return code;
  const int code = unpack_external(outbuf, outcount, datatype, static_cast<const char*>(inbuf) + *position);
  if (code == MPI_SUCCESS) *position += bytes;
  return code;
}

int Pack_external_size(const char* datarep, MPI_Count incount, Datatype& datatype, MPI_Count* size) {
  if (const int code = check_representation(datarep); code != MPI_SUCCESS) return code;
  *size = external_size(datatype, incount);
  return *size < 0 ? too_large(incount) : MPI_SUCCESS;
}

}  // namespace heddle::mpi
