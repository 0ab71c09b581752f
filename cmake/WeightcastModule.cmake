# How a module, a test and a fuzzer of this project are built.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(tl-expected REQUIRED)
find_package(cppzmq REQUIRED)
find_package(nlohmann_json REQUIRED)
find_program(FLATC flatc REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# Flags that every target of this project is compiled with.
add_library(weightcast_flags INTERFACE)
target_include_directories(weightcast_flags INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src> $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/generated>)
target_compile_options(weightcast_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Werror
  -Wno-missing-field-initializers  # designated initialisers leave the rest at its default
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
if(WEIGHTCAST_FAULT_POINTS)
  target_compile_definitions(weightcast_flags INTERFACE WEIGHTCAST_FAULT_POINTS)
endif()

# weightcast_module(name SOURCES … LINKS …): object files of one folder of src/weightcast. The
# modules it may see come from layers.txt; LINKS names libraries of others.
function(weightcast_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(weightcast_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(weightcast_${name}
    PUBLIC tl::expected Threads::Threads $<BUILD_INTERFACE:weightcast_flags>
    PRIVATE fmt::fmt ${ARG_LINKS})
  set_target_properties(weightcast_${name} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY WEIGHTCAST_MODULES weightcast_${name})
  file(STRINGS ${CMAKE_SOURCE_DIR}/src/weightcast/layers.txt layers REGEX "^${name}:")
  string(REGEX REPLACE "^${name}:[ ]*" "" layers "${layers}")
  string(REPLACE " " ";" layers "${layers}")
  foreach(layer ${layers})
    target_link_libraries(weightcast_${name} PUBLIC weightcast_${layer})
  endforeach()
endfunction()

# weightcast_test(module SOURCES … LINKS …): one test program, tests/<module>/, one ctest entry.
function(weightcast_test module)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINKS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${module}_test ${ARG_SOURCES})
  target_link_libraries(${module}_test PRIVATE
    weightcast_test_support GTest::gmock GTest::gtest_main fmt::fmt ${ARG_LINKS})
  add_test(NAME ${module} COMMAND ${module}_test)
  set_tests_properties(${module} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()

# weightcast_fuzzer(name SOURCES … LINKS …): a libFuzzer program with its corpus in fuzz/corpus/<name>.
function(weightcast_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name}_fuzzer ${ARG_SOURCES})
  target_link_options(${name}_fuzzer PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name}_fuzzer PRIVATE weightcast_flags ${ARG_LINKS})
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers ${name}_fuzzer)
endfunction()
