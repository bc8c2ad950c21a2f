// The application binary interface: its version, what Fortran needs to know, and integers that stand for handles.
// MPI-5.0 chapter 20.
#include <array>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "comm/session.hpp"
#include "core/comm.hpp"
#include "core/datatype.hpp"
#include "core/errhandler.hpp"
#include "core/fortran.hpp"
#include "core/group.hpp"
#include "core/info.hpp"
#include "core/op.hpp"
#include "generated/impl.hpp"
#include "mpi/check.hpp"
#include "proto/message.hpp"
#include "proto/p2p.hpp"
#include "rma/window.hpp"
#include "sys/error.hpp"
#include "vci/request.hpp"

namespace heddle::mpi {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

std::mutex fortran_mutex;    // guards the two below; fortran_entries are the library's own unless fortran_known
bool fortran_known = false;  // MPI_Abi_set_fortran_info was called
Entries fortran_entries;

int new_info(Entries entries, MPI_Info* info) {
  Info* made = pool<Info>().create();
  if (!made) return error(MPI_ERR_NO_MEM, "no memory for an info object");
  made->entries = std::move(entries);
  *info = to_handle(made);
  return MPI_SUCCESS;
}

/// The Fortran types whose size the library must agree on with the program's compiler.
struct FortranType {
  const char* key;
  MPI_Datatype type;
};
constexpr int fortran_types = 4;
const std::array<FortranType, fortran_types>& sized_types() {
  static const std::array<FortranType, fortran_types> types{{{"mpi_logical_size", MPI_LOGICAL},
                                                            {"mpi_integer_size", MPI_INTEGER},
                                                            {"mpi_real_size", MPI_REAL},
                                                            {"mpi_double_precision_size", MPI_DOUBLE_PRECISION}}};
  return types;
}

bool is_supported(MPI_Datatype type) {
  const Datatype* found = resolve<Datatype>(type);
  return found && found->size > 0;
}

/// What the library takes for granted of Fortran's types while nobody says otherwise.
Entries default_fortran_entries() {
  Entries entries;
  for (const FortranType& known : sized_types())
    entries.emplace_back(known.key, std::to_string(resolve<Datatype>(known.type)->size));
  const std::pair<const char*, MPI_Datatype> optional[] = {
      {"logical1", MPI_LOGICAL1},   {"logical2", MPI_LOGICAL2},   {"logical4", MPI_LOGICAL4},   {"logical8", MPI_LOGICAL8},
      {"logical16", MPI_LOGICAL16}, {"integer1", MPI_INTEGER1},   {"integer2", MPI_INTEGER2},   {"integer4", MPI_INTEGER4},
      {"integer8", MPI_INTEGER8},   {"integer16", MPI_INTEGER16}, {"real2", MPI_REAL2},         {"real4", MPI_REAL4},
      {"real8", MPI_REAL8},         {"real16", MPI_REAL16},       {"complex4", MPI_COMPLEX4},   {"complex8", MPI_COMPLEX8},
      {"complex16", MPI_COMPLEX16}, {"complex32", MPI_COMPLEX32}, {"double_complex", MPI_DOUBLE_COMPLEX}};
  for (const auto& [name, type] : optional)
    entries.emplace_back("mpi_" + std::string(name) + "_supported", is_supported(type) ? "true" : "false");
  return entries;
}

// --- integers for handles ------------------------------------------------------------------------------------------
/// Predefined handles are their own integer; the others are known by their slot, which no other object has while they live.
template <typename T>
int to_int(typename HandleTraits<T>::handle handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  if (value < first_user_handle) return static_cast<int>(value);
  const T* object = resolve<T>(handle);
  return object ? static_cast<int>(object->index) : 0;  // 0 is never a handle
}

template <typename T>
typename HandleTraits<T>::handle from_int(int number, typename HandleTraits<T>::handle null) {
  if (number <= 0) return null;
  const auto value = static_cast<std::uintptr_t>(number);
  if (value < first_user_handle) return reinterpret_cast<typename HandleTraits<T>::handle>(value);
  T* object = pool<T>().find(static_cast<std::uint32_t>(number));
  return object ? to_handle(object) : null;
}

/// For kinds of which this version has predefined handles only.
int predefined_to_int(const void* handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  return value < first_user_handle ? static_cast<int>(value) : 0;
}
template <typename Handle>
Handle predefined_from_int(int number, Handle null) {
  return number > 0 && static_cast<std::uintptr_t>(number) < first_user_handle
             ? reinterpret_cast<Handle>(static_cast<std::uintptr_t>(number))
             : null;
}

}  // namespace

int Abi_get_version(int* abi_major, int* abi_minor) {
  *abi_major = MPI_ABI_VERSION;
  *abi_minor = MPI_ABI_SUBVERSION;
  return MPI_SUCCESS;
}

int Abi_get_info(MPI_Info* info) {
  return new_info({{"mpi_aint_size", std::to_string(sizeof(MPI_Aint))},
                   {"mpi_count_size", std::to_string(sizeof(MPI_Count))},
                   {"mpi_offset_size", std::to_string(sizeof(MPI_Offset))}},
                  info);
}

/// What the library supports, until somebody who knows the program's Fortran compiler has called MPI_Abi_set_fortran_info.
int Abi_get_fortran_info(MPI_Info* info) {
  std::lock_guard lock(fortran_mutex);
  return new_info(fortran_known ? fortran_entries : default_fortran_entries(), info);
}

/// Once per process; replaces the library's own. The library's Fortran types have the usual sizes, so other ones are refused here and not found out later.
int Abi_set_fortran_info(Info* info) {
  if (!info) return error(MPI_ERR_INFO, "argument info is MPI_INFO_NULL; pass an info object with the sizes of Fortran's types");
  Entries entries;
  {
    std::lock_guard lock(info->mutex);
    entries = info->entries;
  }
  for (const auto& [key, value] : entries)
    for (const FortranType& known : sized_types()) {
      if (key != known.key) continue;
      const MPI_Count ours = resolve<Datatype>(known.type)->size;
      if (std::to_string(ours) != value)
        return error(MPI_ERR_ABI, "%s=%s, but this library was built for %lld; compile Fortran without options that change it",
                     known.key, value.c_str(), static_cast<long long>(ours));
    }
  std::lock_guard lock(fortran_mutex);
  if (fortran_known) return error(MPI_ERR_ABI, "MPI_Abi_set_fortran_info was called before; it may be called once");
  fortran_known = true;
  fortran_entries = std::move(entries);
  return MPI_SUCCESS;
}

int Abi_get_fortran_booleans(int logical_size, void* logical_true, void* logical_false, int* is_set) {
  if (!is_fortran_logical_size(logical_size))
    return error(MPI_ERR_ARG, "logical_size is %d; use 1, 2, 4, 8 or 16", logical_size);
  const FortranBooleans values = fortran_booleans(logical_size);
  *is_set = 1;  // by the library, if not by the program
  if (logical_true) std::memcpy(logical_true, values.truth, static_cast<std::size_t>(logical_size));
  if (logical_false) std::memcpy(logical_false, values.falsehood, static_cast<std::size_t>(logical_size));
  return MPI_SUCCESS;
}

int Abi_set_fortran_booleans(int logical_size, void* logical_true, void* logical_false) {
  if (!is_fortran_logical_size(logical_size))
    return error(MPI_ERR_ARG, "logical_size is %d; use 1, 2, 4, 8 or 16", logical_size);
  if (!logical_true || !logical_false)
    return error(MPI_ERR_ARG, "argument %s is a null pointer; pass the address of a logical of %d bytes",
                 logical_true ? "logical_false" : "logical_true", logical_size);
  if (!set_fortran_booleans(logical_size, logical_true, logical_false))
    return error(MPI_ERR_ABI, "the Fortran logicals of %d bytes were set before; they may be set once", logical_size);
  return MPI_SUCCESS;
}

int Comm_toint(MPI_Comm handle) {
  const Comm* comm = check::comm(handle);  // of a thread communicator: the thread's rank
  return comm && !comm->predefined ? static_cast<int>(comm->index) : to_int<Comm>(handle);
}
MPI_Comm Comm_fromint(int comm) { return from_int<Comm>(comm, MPI_COMM_NULL); }
int Errhandler_toint(MPI_Errhandler errhandler) { return to_int<Errhandler>(errhandler); }
MPI_Errhandler Errhandler_fromint(int errhandler) { return from_int<Errhandler>(errhandler, MPI_ERRHANDLER_NULL); }
int Group_toint(MPI_Group group) { return to_int<Group>(group); }
MPI_Group Group_fromint(int group) { return from_int<Group>(group, MPI_GROUP_NULL); }
int Info_toint(MPI_Info info) { return to_int<Info>(info); }
MPI_Info Info_fromint(int info) { return from_int<Info>(info, MPI_INFO_NULL); }
int Message_toint(MPI_Message message) { return to_int<Message>(message); }
MPI_Message Message_fromint(int message) { return from_int<Message>(message, MPI_MESSAGE_NULL); }
int Op_toint(MPI_Op op) { return to_int<Op>(op); }
MPI_Op Op_fromint(int op) { return from_int<Op>(op, MPI_OP_NULL); }
int Request_toint(MPI_Request request) { return to_int<Request>(request); }
MPI_Request Request_fromint(int request) {
  if (Request* const shared = shared_request(static_cast<std::uint32_t>(request))) return to_handle(shared);
  return from_int<Request>(request, MPI_REQUEST_NULL);
}
int Session_toint(MPI_Session session) { return to_int<Session>(session); }
MPI_Session Session_fromint(int session) { return from_int<Session>(session, MPI_SESSION_NULL); }
int Type_toint(MPI_Datatype datatype) { return to_int<Datatype>(datatype); }
MPI_Datatype Type_fromint(int datatype) { return from_int<Datatype>(datatype, MPI_DATATYPE_NULL); }

int File_toint(MPI_File file) { return predefined_to_int(file); }
MPI_File File_fromint(int file) { return predefined_from_int(file, MPI_FILE_NULL); }
int Win_toint(MPI_Win win) { return to_int<Window>(win); }
MPI_Win Win_fromint(int win) { return from_int<Window>(win, MPI_WIN_NULL); }

}  // namespace heddle::mpi
