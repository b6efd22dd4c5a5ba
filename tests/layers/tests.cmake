# SPDX-License-Identifier: Apache-2.0
# Who may include whom, and the rules of the house that a script can see. The gate is a small tree with one fault a file.
if(NOT Python3_FOUND)
  message(STATUS "fusionllm: layers test left out: no Python 3")
  return()
endif()
set(check ${CMAKE_CURRENT_LIST_DIR}/check.py)
add_test(NAME layers COMMAND ${Python3_EXECUTABLE} ${check} ${PROJECT_SOURCE_DIR}/include)
add_test(NAME layers_gate COMMAND ${Python3_EXECUTABLE} ${check} --gate ${CMAKE_CURRENT_LIST_DIR}/gate)
fusionllm_set_test(layers)
fusionllm_set_test(layers_gate)
