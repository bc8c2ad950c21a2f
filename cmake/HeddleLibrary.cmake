# The library itself. Targets:
#   heddle_objects  the object files, compiled once
#   mpi_abi         build/lib/libmpi_abi.so.1 (SONAME libmpi_abi.so.1), what programs link with
#   heddle_static   the same objects in an archive, for unit tests that look at private headers
#   heddle_headers  build/include/{mpi.h,mpix.h}
#   heddle::mpi     what a program in this tree links with: the library and its header
file(GLOB_RECURSE heddle_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/*.cpp)
list(APPEND heddle_sources ${HEDDLE_GENERATED_SOURCES})

# --- public headers ----------------------------------------------------------------------------------------------
file(GLOB public_headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/include/*.h)
set(copied_headers "")
foreach(header IN LISTS public_headers)
  cmake_path(GET header FILENAME name)
  add_custom_command(
    OUTPUT ${CMAKE_BINARY_DIR}/include/${name}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/include
    COMMAND ${CMAKE_COMMAND} -E copy ${header} ${CMAKE_BINARY_DIR}/include/${name}
    DEPENDS ${header}
    VERBATIM)
  list(APPEND copied_headers ${CMAKE_BINARY_DIR}/include/${name})
endforeach()
add_custom_target(heddle_headers ALL DEPENDS ${copied_headers})

# --- objects -----------------------------------------------------------------------------------------------------
add_library(heddle_private INTERFACE)  # include roots of everything that may see private headers
target_include_directories(heddle_private INTERFACE
  ${CMAKE_CURRENT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR}/include ${HEDDLE_GENERATED_DIR})
target_include_directories(heddle_private SYSTEM INTERFACE ${PMIX_INCLUDE_DIRS})
target_link_libraries(heddle_private INTERFACE Threads::Threads ${CMAKE_DL_LIBS} rt)

if(NOT heddle_sources)
  message(WARNING "src/ is empty: nothing to build yet")
  return()
endif()

add_library(heddle_objects OBJECT ${heddle_sources})
function(heddle_compile_settings target)
  target_link_libraries(${target} PUBLIC heddle_private fmt::fmt-header-only)
  target_compile_options(${target} PRIVATE
    -fno-exceptions -fno-rtti -fvisibility=hidden -fvisibility-inlines-hidden -ffunction-sections -fdata-sections)
  target_compile_definitions(${target} PRIVATE
    HEDDLE_VERSION="${PROJECT_VERSION}"
    HEDDLE_VERSION_MAJOR=${PROJECT_VERSION_MAJOR}
    HEDDLE_VERSION_MINOR=${PROJECT_VERSION_MINOR}
    HEDDLE_VERSION_PATCH=${PROJECT_VERSION_PATCH}
    HEDDLE_BUILD_TYPE="${CMAKE_BUILD_TYPE}")
endfunction()
heddle_compile_settings(heddle_objects)

# --- the shared library ------------------------------------------------------------------------------------------
function(heddle_link_settings target)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME mpi_abi
    SOVERSION 1  # the number is the ABI's, not ours
    LINKER_LANGUAGE CXX
    LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cmake/exports.map)
  target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS} rt)
  target_link_options(${target} PRIVATE
    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/cmake/exports.map -Wl,--gc-sections -Wl,-z,now -Wl,-z,relro)
  if(NOT HEDDLE_SANITIZE) # the functions of a sanitizer are in the program
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
    # A C program that loads us should not also have to load, and agree with us on, a C++ run-time library.
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()
add_library(mpi_abi SHARED $<TARGET_OBJECTS:heddle_objects>)
heddle_link_settings(mpi_abi)
add_dependencies(mpi_abi heddle_headers)

add_library(heddle_mpi INTERFACE)
target_link_libraries(heddle_mpi INTERFACE mpi_abi)
target_include_directories(heddle_mpi INTERFACE ${CMAKE_BINARY_DIR}/include)
add_dependencies(heddle_mpi heddle_headers)
add_library(heddle::mpi ALIAS heddle_mpi)

# --- the archives for unit tests ---------------------------------------------------------------------------------
# A linker takes the first definition that an archive offers, weak or not. The weak stand-ins of functions that are
# not built yet are therefore in an archive of their own, searched after the real ones.
set(real $<FILTER:$<TARGET_OBJECTS:heddle_objects>,EXCLUDE,/generated/unbuilt/>)
set(stand_ins $<FILTER:$<TARGET_OBJECTS:heddle_objects>,INCLUDE,/generated/unbuilt/>)
add_library(heddle_static STATIC EXCLUDE_FROM_ALL ${real})
add_library(heddle_stand_ins STATIC EXCLUDE_FROM_ALL ${stand_ins})
set_target_properties(heddle_static heddle_stand_ins PROPERTIES LINKER_LANGUAGE CXX)
target_link_libraries(heddle_static PUBLIC heddle_stand_ins heddle_private fmt::fmt-header-only)
target_link_libraries(heddle_stand_ins PUBLIC heddle_static) # both ways: CMake repeats them on the command line
