# Runs api/generate.py while configuring, so that its outputs can be globbed like any other source.
# It runs again whenever a file under api/ changes. Files that come out the same keep their time
# stamps, so that an edit of one row of the table compiles one file again.
#
# Sets HEDDLE_GENERATED_SOURCES and HEDDLE_GENERATED_DIR (an include root; man pages are in its man/).
set(HEDDLE_GENERATED_DIR ${CMAKE_BINARY_DIR}/generated)
set(HEDDLE_GENERATED_SOURCES "")
set(generator ${CMAKE_CURRENT_SOURCE_DIR}/api/generate.py)

if(EXISTS ${generator})
  file(GLOB_RECURSE api_inputs CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/api/*)
  list(FILTER api_inputs EXCLUDE REGEX "__pycache__|\\.pyc$")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${api_inputs})

  set(fresh ${CMAKE_BINARY_DIR}/generated.new)
  file(REMOVE_RECURSE ${fresh})
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE} ${generator} --out ${fresh}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB_RECURSE new_files RELATIVE ${fresh} ${fresh}/*)
  file(GLOB_RECURSE old_files RELATIVE ${HEDDLE_GENERATED_DIR} ${HEDDLE_GENERATED_DIR}/*)
  foreach(name IN LISTS new_files)
    cmake_path(GET name PARENT_PATH folder)
    file(MAKE_DIRECTORY ${HEDDLE_GENERATED_DIR}/${folder})
    file(COPY_FILE ${fresh}/${name} ${HEDDLE_GENERATED_DIR}/${name} ONLY_IF_DIFFERENT)
  endforeach()
  foreach(name IN LISTS old_files)
    if(NOT name IN_LIST new_files)
      file(REMOVE ${HEDDLE_GENERATED_DIR}/${name})
    endif()
  endforeach()
  file(REMOVE_RECURSE ${fresh})
  file(GLOB_RECURSE HEDDLE_GENERATED_SOURCES ${HEDDLE_GENERATED_DIR}/*.cpp)
endif()
