#===- TesseraLibrary.cmake - One library per source folder -----------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
#
#   tessera_add_library(name [MLIR] [DEPENDS lib...] [LINKS lib...]
#                       [FILES pattern...] [EXCEPT pattern...])
#
# makes the static library `name` of every .cpp file in and below the calling
# folder. DEPENDS names libraries of lower layers, LINKS anything from outside.
# MLIR says that the folder uses MLIR or LLVM: such a library is left out when
# TESSERA_WITH_COMPILER is OFF and shares the precompiled header. A folder
# without sources makes no library, and those who depend on it do without.
# FILES and EXCEPT split a folder that holds two libraries.
#
#===------------------------------------------------------------------------===#

function(tessera_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "MLIR" "" "DEPENDS;LINKS;FILES;EXCEPT")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR
      "tessera_add_library(${name}): found ${arg_UNPARSED_ARGUMENTS}, expected "
      "MLIR, DEPENDS, LINKS, FILES or EXCEPT")
  endif()
  if(arg_MLIR AND NOT TESSERA_WITH_COMPILER)
    return()
  endif()
  if(arg_FILES)
    file(GLOB sources CONFIGURE_DEPENDS ${arg_FILES})
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS
      ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  if(arg_EXCEPT)
    file(GLOB excluded CONFIGURE_DEPENDS ${arg_EXCEPT})
    list(REMOVE_ITEM sources ${excluded})
  endif()
  if(NOT sources)
    return()
  endif()

  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC tessera_options ${arg_LINKS})
  foreach(dependency IN LISTS arg_DEPENDS)
    if(TARGET ${dependency})
      target_link_libraries(${name} PUBLIC ${dependency})
    endif()
  endforeach()
  if(arg_MLIR)
    tessera_use_mlir(${name})
  else()
    set_property(GLOBAL APPEND PROPERTY TESSERA_CORE_LIBRARIES ${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY TESSERA_LIBRARIES ${name})
  set_property(GLOBAL APPEND PROPERTY TESSERA_LINKS ${arg_LINKS})
endfunction()
