// Environment inquiries: versions, names, time, and where the life of the library stands. MPI-5.0 chapters 9 and 11.
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "comm/runtime.hpp"
#include "core/info.hpp"
#include "generated/impl.hpp"
#include "mpi/hardware.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {

int Get_version(int* version, int* subversion) {
  *version = MPI_VERSION;
  *subversion = MPI_SUBVERSION;
  return MPI_SUCCESS;
}

int Get_library_version(char* version, int* resultlen) {
  *resultlen = std::snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING,
                             "Heddle %s, MPI %d.%d, standard ABI %d.%d, %s build with %s " __VERSION__, HEDDLE_VERSION,
                             MPI_VERSION, MPI_SUBVERSION, MPI_ABI_VERSION, MPI_ABI_SUBVERSION, HEDDLE_BUILD_TYPE,
#ifdef __clang__
                             "Clang"
#else
                             "GCC"
#endif
  );
  return MPI_SUCCESS;
}

/// The node's own name, asked of the kernel and not of a name service.
int Get_processor_name(char* name, int* resultlen) {
  if (gethostname(name, MPI_MAX_PROCESSOR_NAME) != 0) std::strcpy(name, "localhost");
  name[MPI_MAX_PROCESSOR_NAME - 1] = '\0';  // a longer name is cut without one
  *resultlen = static_cast<int>(std::strlen(name));
  return MPI_SUCCESS;
}

int Get_hw_resource_info(MPI_Info* hw_info) {
  Info* info = pool<Info>().create();
  if (!info) return error(MPI_ERR_NO_MEM, "no memory for an info object");
  for (const HardwareType& type : hardware_types())
    info->entries.emplace_back(std::string("hwloc://") + type.name, type.restricted ? "true" : "false");
  *hw_info = to_handle(info);
  return MPI_SUCCESS;
}

// Both clocks count on steadily through suspends of the program and changes of the time of day.
double Wtime() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double Wtick() {
  timespec step;
  clock_getres(CLOCK_MONOTONIC, &step);
  return static_cast<double>(step.tv_sec) + 1e-9 * static_cast<double>(step.tv_nsec);
}

int Initialized(int* flag) {
  *flag = world_phase() != Phase::before_init;
  return MPI_SUCCESS;
}

int Finalized(int* flag) {
  *flag = world_phase() == Phase::finalized;
  return MPI_SUCCESS;
}

int Query_thread(int* provided) {
  *provided = runtime.thread_level.load(std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int Is_thread_main(int* flag) {
  *flag = pthread_equal(runtime.main_thread, pthread_self()) != 0;
  return MPI_SUCCESS;
}

// --- addresses -----------------------------------------------------------------------------------------------------
int Get_address(const void* location, MPI_Aint* address) {
  *address = reinterpret_cast<MPI_Aint>(location);
  return MPI_SUCCESS;
}

// Unsigned, so that wrapping around is defined: addresses above half of the address space are negative numbers.
MPI_Aint Aint_add(MPI_Aint base, MPI_Aint disp) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(disp));
}

MPI_Aint Aint_diff(MPI_Aint addr1, MPI_Aint addr2) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(addr1) - static_cast<std::uintptr_t>(addr2));
}

/// For profilers that replace it. \see MPI-5.0 §15.2.4
int Pcontrol(int) { return MPI_SUCCESS; }

}  // namespace heddle::mpi
