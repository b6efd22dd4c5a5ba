# SPDX-License-Identifier: Apache-2.0
# Projects of users, without CUDA: from an install tree with all components and with core alone, and from the sources.
foreach(way IN ITEMS package core_package subdirectory)
  add_test(NAME consumer_${way} COMMAND ${CMAKE_COMMAND}
    -D WAY=${way} -D SOURCE=${PROJECT_SOURCE_DIR} -D BUILD=${PROJECT_BINARY_DIR}
    -D WORK=${CMAKE_CURRENT_BINARY_DIR}/consumer_${way} -D GENERATOR=${CMAKE_GENERATOR}
    -D COMPILER=${CMAKE_CXX_COMPILER} -D LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}
    -P ${CMAKE_CURRENT_LIST_DIR}/run.cmake)
  fusionllm_set_test(consumer_${way})
endforeach()
