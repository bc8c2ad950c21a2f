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

heddle_tool(mpiexec)
heddle_tool(heddle)
