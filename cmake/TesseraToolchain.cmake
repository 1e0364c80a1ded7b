#===- TesseraToolchain.cmake - Compiler, linker, warnings, sanitizers ------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
#
# Everything that holds for every file of the project. The interface target
# `tessera_options` carries the warnings and include paths; the settings that a
# precompiled header must agree on are global.
#
#===------------------------------------------------------------------------===#

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR
   NOT CMAKE_CXX_COMPILER_VERSION MATCHES "^19\\.")
  message(FATAL_ERROR
    "found ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, expected "
    "clang 19: use a preset (cmake --preset release)")
endif()

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# -O2, with line tables: enough for a useful stack trace and for perf.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -gline-tables-only -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g -fno-omit-frame-pointer")
set(CMAKE_C_FLAGS_SANITIZE "${CMAKE_CXX_FLAGS_SANITIZE}")

# One code model for libraries and executables, so that all of them can share
# the precompiled header. Not through POSITION_INDEPENDENT_CODE, which spells it
# -fPIE for executables. Our results never depend on a compiler's choice to
# contract a*b+c in host code, so that is off.
add_compile_options(-fPIC -ffp-contract=off)

# The disk cache tells builds apart by their identifiers.
add_link_options(-fuse-ld=lld-19 -Wl,--build-id=sha1)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/static)

if(TESSERA_SANITIZE)
  add_compile_options(-fsanitize=${TESSERA_SANITIZE})
  add_link_options(-fsanitize=${TESSERA_SANITIZE})
  if(TESSERA_SANITIZE STREQUAL "undefined")
    add_compile_options(-fno-sanitize-recover=all)
  endif()
endif()

# ccache must be told that a precompiled header is fine: without a time stamp in
# it (-fno-pch-timestamp) the same headers give the same file.
find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    ${CCACHE_PROGRAM})
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)

add_library(tessera_options INTERFACE)
target_compile_options(tessera_options INTERFACE -Wall -Wextra -Werror)
# "support/hash.h", "kernels/table.h" and "tessera/error.h" all start at a root.
target_include_directories(tessera_options INTERFACE
  ${PROJECT_SOURCE_DIR}/include
  ${PROJECT_SOURCE_DIR}/src
  ${PROJECT_SOURCE_DIR})
# What TableGen makes ("dialect/TileOps.h.inc") is not held to our warnings.
target_include_directories(tessera_options SYSTEM INTERFACE
  ${PROJECT_BINARY_DIR}/src)
target_link_libraries(tessera_options INTERFACE Threads::Threads)
