# SPDX-License-Identifier: Apache-2.0
# Each file is a test of its own, so that what lacks its data is skipped by name. Scripts find the programs under
# $FUSIONLLM_BUILD/examples and the sources under $FUSIONLLM_SOURCE; exit code 77 says skipped.
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.cpp)
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WE)
  string(REGEX REPLACE "_test$" "" name ${name})
  fusionllm_catch_program(integration_${name} ${file})
endforeach()
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.sh)
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WE)
  add_test(NAME integration_${name} COMMAND sh ${file})
  fusionllm_set_test(integration_${name} PROCESSORS 2)
endforeach()

# Programs of one source built by other compilers and at other optimization levels, for runs of mixed peers:
# tests/mixed/<example>_<compiler>_<level>. FUSIONLLM_MIXED names the examples.
set(FUSIONLLM_MIXED "" CACHE STRING "Examples built by every compiler for the runs of mixed peers")
mark_as_advanced(FUSIONLLM_MIXED)
