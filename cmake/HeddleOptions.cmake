# Compiler settings that every target shares.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, ..." FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Profilers and the stack printer of the test harness need line numbers in a release build too. Flags that are given when the tree is
# configured (-DCMAKE_CXX_FLAGS_RELEASE=...) stay: whoever gives others than CMake's own wants those.
foreach(language C CXX)
  if("${CMAKE_${language}_FLAGS_RELEASE}" STREQUAL "-O3 -DNDEBUG")
    set(CMAKE_${language}_FLAGS_RELEASE "-O3 -g -DNDEBUG")
  endif()
endforeach()
set(CMAKE_C_FLAGS_DEBUG "-Og -g3")
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g3")

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlap in std::string's operator+ where there is none (GCC bug 105329).
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

option(HEDDLE_WERROR "Treat warnings in Heddle's own code as errors" OFF)
add_compile_options(-Wall -Wextra)
if(HEDDLE_WERROR)
  add_compile_options(-Werror)
endif()

set(HEDDLE_SANITIZE "" CACHE STRING "Empty, or a -fsanitize= list: `address,undefined` or `thread`")
set(HEDDLE_TIMEOUT_SCALE 1)
if(HEDDLE_SANITIZE)
  # A report's stacks need functions and lines, no more: a fifth less to compile and a third of the disk. -O1 takes longer to compile.
  set(CMAKE_C_FLAGS_DEBUG "-Og -g1")
  set(CMAKE_CXX_FLAGS_DEBUG "-Og -g1")
  add_compile_options(-fsanitize=${HEDDLE_SANITIZE})
  add_link_options(-fsanitize=${HEDDLE_SANITIZE})
  if(HEDDLE_SANITIZE MATCHES "undefined")
    # The check of virtual tables reads RTTI, which src/ is compiled without: it takes every std::shared_ptr for a wrong one.
    add_compile_options(-fno-sanitize-recover=undefined -fno-sanitize=vptr)
  endif()
  if(HEDDLE_SANITIZE MATCHES "thread")
    # GCC warns that fences are invisible to ThreadSanitizer; the sources that use one say why it is safe.
    add_compile_options(-Wno-tsan)
    set(HEDDLE_TIMEOUT_SCALE 8)
  else()
    set(HEDDLE_TIMEOUT_SCALE 4)
  endif()
endif()

find_program(HEDDLE_CCACHE ccache)
if(HEDDLE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${HEDDLE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HEDDLE_CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_package(fmt REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PMIX QUIET pmix) # for its header: the library is looked for when a program runs
if(NOT PMIX_FOUND)
  message(STATUS "No pmix.h (Debian: libpmix-dev): programs will not start under prterun or other PMIx launchers")
endif()
