# Benchmarks, built on demand by the target `bench_programs` (`make bench` also runs them).
#   bench/sync/*_bench.cpp     Google Benchmark, may see private headers
#   bench/<other>/CMakeLists.txt   describe themselves and add their targets to `bench_programs`
add_custom_target(bench_programs)
find_package(benchmark QUIET)
file(GLOB bench_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/bench/sync/*_bench.cpp)
if(benchmark_FOUND AND TARGET heddle_static)
  foreach(source IN LISTS bench_sources)
    cmake_path(GET source STEM name)
    add_executable(sync_${name} EXCLUDE_FROM_ALL ${source})
    set_target_properties(sync_${name} PROPERTIES
      OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench/sync)
    target_link_libraries(sync_${name} PRIVATE heddle_static benchmark::benchmark_main)
    add_dependencies(bench_programs sync_${name})
  endforeach()
endif()
file(GLOB bench_parts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/bench/*/CMakeLists.txt)
foreach(part IN LISTS bench_parts)
  cmake_path(GET part PARENT_PATH part)
  add_subdirectory(${part})
endforeach()
