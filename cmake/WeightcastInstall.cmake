# `cmake --install`: the program, the libraries, and the headers that users may include. Another
# project then says find_package(weightcast) and links weightcast::weightcast.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The headers that users include by name; whatever these include is installed with them.
set(weightcast_public_headers
  weightcast/engine/session.h weightcast/engine/options.h weightcast/plan/safetensors.h)

# Sets `result` to `headers` and every header of this project that they include, however deep.
function(weightcast_include_closure result)
  set(waiting ${ARGN})
  set(closure "")
  while(waiting)
    list(POP_FRONT waiting header)
    if(header IN_LIST closure)
      continue()
    endif()
    list(APPEND closure ${header})
    file(STRINGS ${PROJECT_SOURCE_DIR}/src/${header} includes REGEX "^#include \"weightcast/")
    foreach(include ${includes})
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" include "${include}")
      list(APPEND waiting ${include})
    endforeach()
  endwhile()
  set(${result} ${closure} PARENT_SCOPE)
endfunction()

weightcast_include_closure(weightcast_installed_headers ${weightcast_public_headers})
foreach(header ${weightcast_installed_headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/src/${header}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()

add_library(weightcast_package INTERFACE)
target_link_libraries(weightcast_package INTERFACE weightcast_engine)
target_compile_features(weightcast_package INTERFACE cxx_std_20)
target_include_directories(weightcast_package INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(weightcast_package PROPERTIES EXPORT_NAME weightcast)

get_property(weightcast_modules GLOBAL PROPERTY WEIGHTCAST_MODULES)
install(TARGETS weightcast_package ${weightcast_modules} EXPORT weightcast
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS weightcast RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

set(weightcast_config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/weightcast)
install(EXPORT weightcast NAMESPACE weightcast:: DESTINATION ${weightcast_config_folder}
  FILE weightcast-targets.cmake)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/weightcast-config.cmake.in
  ${PROJECT_BINARY_DIR}/weightcast-config.cmake INSTALL_DESTINATION ${weightcast_config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weightcast-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weightcast-config.cmake
  ${PROJECT_BINARY_DIR}/weightcast-config-version.cmake DESTINATION ${weightcast_config_folder})
