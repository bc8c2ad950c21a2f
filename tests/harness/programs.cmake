# The test programs of a folder are one executable: they are linked once, and what they have in common is on the disk once.
#
#   <folder>/programs   all of them; runs the one whose name it is called by
#   <folder>/<name>     a link to it
#
# Each is an object library, of which both this executable and one of the program alone are made. The latter is the target of the
# program's name, for work on one test; what it builds replaces the link until the folder's executable is linked again.
#
# What stands outside of `main` must be in an anonymous namespace or be the same in all of them (tests/tools/programs_test.py). A
# program that cannot share says so at its head: `// binary: own (why)`. It is one that the others would feel, by an object whose
# destructor calls MPI or by a function that replaces one of a library, or one that is looked at as a file, or whose own instructions
# are counted. Programs in C never share: they prove that a C compiler is enough.

# add_programs(PREFIX FOLDER MAIN LIBRARIES SOURCES...): a target PREFIX_<name> for each source, PREFIX_programs for the folder, and in
# the variable PROGRAM_TARGETS what has to be built for all of them. FOLDER is below TEST_BIN. MAIN picks the program: either
# programs_main.cpp, for sources that have a `main`, or unit_main.cpp, for GoogleTests.
function(add_programs prefix folder main libraries)
  set(directory ${TEST_BIN}/${folder})
  set(targets)
  set(objects)
  set(names)
  set(table)
  foreach(source IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    cmake_path(GET source STEM LAST_ONLY name)
    string(REGEX REPLACE "_test$" "" target ${name})
    string(MAKE_C_IDENTIFIER ${prefix}_${target} target)
    first_directive(${source} binary "" binary)
    if(binary MATCHES "^own" OR source MATCHES "\\.c$")
      add_executable(${target} EXCLUDE_FROM_ALL ${source})
      if(main MATCHES "unit")
        target_sources(${target} PRIVATE ${main})
      endif()
      list(APPEND targets ${target})
    else()
      add_library(${target}_object OBJECT EXCLUDE_FROM_ALL ${source})
      target_link_libraries(${target}_object PRIVATE ${libraries})
      # The library is what is optimised: the programs compile in two thirds of the time so, and still show lines in stacks.
      target_compile_options(${target}_object PRIVATE $<$<CONFIG:Release>:-O1> $<$<CONFIG:Release>:-g1>)
      if(NOT main MATCHES "unit")
        string(MAKE_C_IDENTIFIER main_of_${name} function)
        target_compile_definitions(${target}_object PRIVATE main=${function})
        # Only a `main` may end without a return, and it is one no more.
        target_compile_options(${target}_object PRIVATE -Werror=return-type)
        string(APPEND table "PROGRAM(\"${name}\", ${function})\n")
      endif()
      add_executable(${target} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${target}_object> $<TARGET_OBJECTS:${prefix}_main>)
      list(APPEND objects $<TARGET_OBJECTS:${target}_object>)
      list(APPEND names ${name})
    endif()
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${directory} LINKER_LANGUAGE CXX)
    target_link_libraries(${target} PRIVATE ${libraries})
  endforeach()

  if(names)
    set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated/${folder})
    file(CONFIGURE OUTPUT ${generated}/programs.inc CONTENT "${table}" @ONLY)
    add_library(${prefix}_main OBJECT EXCLUDE_FROM_ALL ${main})
    target_include_directories(${prefix}_main PRIVATE ${generated})
    add_executable(${prefix}_programs EXCLUDE_FROM_ALL ${objects} $<TARGET_OBJECTS:${prefix}_main>)
    target_link_libraries(${prefix}_programs PRIVATE ${libraries})
    set_target_properties(${prefix}_programs PROPERTIES OUTPUT_NAME programs RUNTIME_OUTPUT_DIRECTORY ${directory} LINKER_LANGUAGE CXX)
    add_custom_command(TARGET ${prefix}_programs POST_BUILD WORKING_DIRECTORY ${directory} VERBATIM
      COMMAND sh -c "for name; do ln -sf programs $name; done" sh ${names})
    list(APPEND targets ${prefix}_programs)
  endif()
  set(PROGRAM_TARGETS ${targets} PARENT_SCOPE)
endfunction()
