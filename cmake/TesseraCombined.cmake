#===- TesseraCombined.cmake - libtessera.so and its installation -----------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
#
# All folder libraries in one shared library, whole, so that tables filled by
# static initializers are complete. MLIR and LLVM are its own affair: whoever
# links Tessera::tessera sees neither.
#
#===------------------------------------------------------------------------===#

include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY TESSERA_LIBRARIES)
if(NOT libraries)
  message(STATUS "no sources yet, libtessera.so is left out")
  return()
endif()

file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/tessera_anchor.cpp CONTENT
  "// The shared library is made of the folder libraries alone.\n")
add_library(tessera SHARED ${PROJECT_BINARY_DIR}/tessera_anchor.cpp)
add_library(Tessera::tessera ALIAS tessera)
get_property(links GLOBAL PROPERTY TESSERA_LINKS)
foreach(library IN LISTS libraries)
  target_sources(tessera PRIVATE $<TARGET_OBJECTS:${library}>)
endforeach()
target_link_libraries(tessera PRIVATE tessera_mlir Threads::Threads ${links})
target_include_directories(tessera PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(tessera PUBLIC cxx_std_20)
target_link_options(tessera PRIVATE -Wl,-Bsymbolic-functions)
if(NOT TESSERA_SANITIZE)
  target_link_options(tessera PRIVATE -Wl,-z,defs)
endif()
# Debian keeps libMLIR.so off the loader's path, so the library remembers it.
set_target_properties(tessera PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  INSTALL_RPATH_USE_LINK_PATH ON)

install(TARGETS tessera EXPORT TesseraTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tessera
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE.txt
  DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera)

set(packageDir ${CMAKE_INSTALL_LIBDIR}/cmake/Tessera)
install(EXPORT TesseraTargets NAMESPACE Tessera:: DESTINATION ${packageDir})
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/TesseraConfig.cmake.in
  ${PROJECT_BINARY_DIR}/TesseraConfig.cmake
  INSTALL_DESTINATION ${packageDir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/TesseraConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/TesseraConfig.cmake
  ${PROJECT_BINARY_DIR}/TesseraConfigVersion.cmake
  DESTINATION ${packageDir})

# tessera_use(target [PCH]): link an in-tree executable against the shared library
# and let it see the project's own headers, with the precompiled header that the
# target PCH owns.
function(tessera_use target)
  tessera_use_mlir(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE tessera tessera_options
    fmt::fmt nlohmann_json::nlohmann_json)
  # What TableGen makes of the dialect.
  target_include_directories(${target} SYSTEM PRIVATE
    ${PROJECT_BINARY_DIR}/src/dialect)
endfunction()
