# SPDX-License-Identifier: Apache-2.0
# The sanitizer builds as tests, so that one summary covers them: each configures, builds and runs its preset's tests.
foreach(preset IN ITEMS asan-ubsan tsan)
  string(REPLACE "-" "_" name ${preset})
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND}
    -D PRESET=${preset} -D SOURCE=${PROJECT_SOURCE_DIR} -D WORK=${PROJECT_BINARY_DIR}/${preset}
    -D COMPILER=${sanitizer_compiler} -D JOBS=${fusionllm_processors} -P ${CMAKE_CURRENT_LIST_DIR}/run.cmake)
  fusionllm_set_test(${name} TIMEOUT 3600 PROCESSORS ${fusionllm_processors})
endforeach()
