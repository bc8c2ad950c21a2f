# build/bin: mpiexec, heddle, and the compiler wrappers.
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)

# heddle_tool(NAME): build/bin/NAME from tools/NAME/*.cpp, if there are any.
function(heddle_tool name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tools/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(tool_${name} ${sources})
  set_target_properties(tool_${name} PROPERTIES OUTPUT_NAME ${name})
  target_include_directories(tool_${name} PRIVATE
    ${CMAKE_CURRENT_SOURCE_DIR}/tools/${name} ${CMAKE_BINARY_DIR}/include)
  target_compile_definitions(tool_${name} PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}"
    HEDDLE_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
  target_link_libraries(tool_${name} PRIVATE fmt::fmt CLI11::CLI11 nlohmann_json::nlohmann_json PkgConfig::HWLOC
                        Threads::Threads ${CMAKE_DL_LIBS})
  add_dependencies(tool_${name} heddle_headers)
  install(TARGETS tool_${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# mpiexec is started often and lives shortly: linked statically it starts twice as fast. It shares with the library what
# both must agree on: the PMI-1 wire format, and how usable cores are counted.
file(GLOB mpiexec_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tools/mpiexec/*.cpp)
add_executable(tool_mpiexec ${mpiexec_sources} src/sys/topology.cpp src/sys/bootstrap/encoding.cpp
               src/sys/bootstrap/job_id.cpp src/sys/bootstrap/pmi1_wire.cpp)
set_target_properties(tool_mpiexec PROPERTIES OUTPUT_NAME mpiexec)
target_include_directories(tool_mpiexec PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR}/tools/mpiexec)
target_compile_definitions(tool_mpiexec PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}")
set_source_files_properties(tools/mpiexec/spawn.cpp PROPERTIES COMPILE_DEFINITIONS HEDDLE_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
target_link_libraries(tool_mpiexec PRIVATE fmt::fmt-header-only CLI11::CLI11)
if(NOT HEDDLE_SANITIZE)
  target_link_options(tool_mpiexec PRIVATE -static)
endif()
install(TARGETS tool_mpiexec RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/tools/mpiexec/mpiexec.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/include/mpi.h)
  heddle_tool(heddle)
  # What `heddle info network` shows is what the library itself would choose.
  file(GLOB wires CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/transport/*/*.cpp)
  list(FILTER wires EXCLUDE REGEX "/src/transport/(net|shm)/") # what remains are the wires
  target_sources(tool_heddle PRIVATE ${wires} src/transport/net/wires.cpp src/transport/host_address.cpp src/transport/socket_silence.cpp
    src/sys/params.cpp src/sys/mistakes.cpp src/sys/log.cpp)
  target_include_directories(tool_heddle PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
endif()

# --- compiler wrappers: scripts that find their prefix, the same file in the build tree and installed ---------------
# heddle_wrapper(NAME LANGUAGE VARIABLE OPTION DEFAULT)
function(heddle_wrapper WRAPPER_NAME WRAPPER_LANGUAGE WRAPPER_VARIABLE WRAPPER_OPTION WRAPPER_DEFAULT)
  set(WRAPPER_SANITIZE "")
  if(HEDDLE_SANITIZE)
    set(WRAPPER_SANITIZE "-fsanitize=${HEDDLE_SANITIZE}")
  endif()
  configure_file(${CMAKE_CURRENT_SOURCE_DIR}/tools/wrappers/wrapper.in ${CMAKE_BINARY_DIR}/bin/${WRAPPER_NAME} @ONLY
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  install(PROGRAMS ${CMAKE_BINARY_DIR}/bin/${WRAPPER_NAME} DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# heddle_alias(NAME TARGET): bin/NAME is another name of bin/TARGET.
function(heddle_alias name target)
  file(CREATE_LINK ${target} ${CMAKE_BINARY_DIR}/bin/${name} SYMBOLIC)
  install(FILES ${CMAKE_BINARY_DIR}/bin/${name} DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

heddle_wrapper(mpicc C CC cc cc)
heddle_wrapper(mpicxx C++ CXX cxx c++)
heddle_wrapper(mpifort Fortran FC fc gfortran)
heddle_alias(mpic++ mpicxx)
heddle_alias(mpif90 mpifort)
heddle_alias(mpif77 mpifort)
if(TARGET tool_mpiexec)
  heddle_alias(mpirun mpiexec)
endif()
