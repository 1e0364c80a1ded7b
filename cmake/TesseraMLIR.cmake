#===- TesseraMLIR.cmake - MLIR 19, LLVM 19 and their precompiled header ----===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
#
# Defines `tessera_mlir`, what a library that uses MLIR links: the two shared
# libraries, their headers as system headers, and nothing else of them.
# `tessera_mlir_pch` owns the precompiled header that those libraries share;
# what is compiled with other options has one of its own.
#
#===------------------------------------------------------------------------===#

# The package wants an exact match when asked for a version, so the major number
# is checked here.
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-19/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL 19)
  message(FATAL_ERROR
    "found LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}, expected 19: install "
    "llvm-19-dev and libmlir-19-dev, or set MLIR_DIR")
endif()
if(NOT MLIR_INSTALL_PREFIX STREQUAL LLVM_INSTALL_PREFIX)
  message(FATAL_ERROR
    "found MLIR in ${MLIR_INSTALL_PREFIX} and LLVM in ${LLVM_INSTALL_PREFIX}, "
    "expected one installation: set MLIR_DIR and LLVM_DIR")
endif()
list(APPEND CMAKE_MODULE_PATH ${LLVM_CMAKE_DIR} ${MLIR_CMAKE_DIR})
# mlir_tablegen() looks for the upstream .td files along the include path of
# the directory, not of a target.
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include_directories(SYSTEM ${LLVM_INSTALL_PREFIX}/include)

add_library(tessera_mlir INTERFACE)
target_include_directories(tessera_mlir SYSTEM INTERFACE
  ${LLVM_INSTALL_PREFIX}/include)
target_link_libraries(tessera_mlir INTERFACE MLIR LLVM)

# tessera_add_pch(name OPTION...): the target that owns the precompiled header of
# those that are compiled with these options.
function(tessera_add_pch name)
  if(TESSERA_PCH)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/mlir_pch.cpp CONTENT
      "// The translation unit that owns the precompiled header.\n")
    add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/mlir_pch.cpp)
    target_link_libraries(${name} PRIVATE tessera_options tessera_mlir)
    target_precompile_headers(${name} PRIVATE
      ${PROJECT_SOURCE_DIR}/cmake/mlir_pch.h)
    target_compile_options(${name} PRIVATE
      "SHELL:-Xclang -fno-pch-timestamp" ${ARGN})
  endif()
endfunction()
tessera_add_pch(tessera_mlir_pch)

# tessera_use_mlir(target [PCH]): compile `target` against MLIR, with the
# precompiled header that the target PCH owns.
function(tessera_use_mlir target)
  set(pch tessera_mlir_pch)
  if(ARGC GREATER 1)
    set(pch ${ARGV1})
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_link_libraries(${target} PRIVATE tessera_mlir)
  else()
    target_link_libraries(${target} PUBLIC tessera_mlir)
  endif()
  if(TESSERA_PCH)
    target_compile_options(${target} PRIVATE
      "SHELL:-Xclang -fno-pch-timestamp")
    target_precompile_headers(${target} REUSE_FROM ${pch})
  endif()
endfunction()
