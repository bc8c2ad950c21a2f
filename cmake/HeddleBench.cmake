# Benchmarks, built on demand by the target `bench_programs` (`make bench` also runs them).
#   bench/sync/*_bench.cpp     Google Benchmark, may see private headers
#   bench/<other>/CMakeLists.txt   describe themselves and add their targets to `bench_programs`
#   bench/ablation/<switch>/   headers that take the place of those of src/: a library without one of its optimisations.
#                              Target `ablation_<switches>`, build/ablation/<switches>/lib; `ablation` builds all of them
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

add_custom_target(ablation)
if(TARGET heddle_objects)
  foreach(switches IN ITEMS progress looks progress-looks requests progress-looks-requests)  # as in bench/compare/jobs_ablation.py
    set(target ablation_${switches})
    string(REPLACE "-" ";" folders ${switches})
    list(TRANSFORM folders PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/bench/ablation/)
    add_library(${target}_objects OBJECT EXCLUDE_FROM_ALL ${heddle_sources})
    heddle_compile_settings(${target}_objects)
    target_include_directories(${target}_objects BEFORE PRIVATE ${folders})
    add_library(${target} SHARED EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${target}_objects>)
    heddle_link_settings(${target})
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/ablation/${switches}/lib)
    add_dependencies(ablation ${target})
  endforeach()
endif()
