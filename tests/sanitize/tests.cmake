# SPDX-License-Identifier: Apache-2.0
# The sanitizer builds as tests, so that one summary covers them: each configures, builds and runs its preset's tests.
#
# clang++ builds them where it has the sanitizers' runtime: it takes a quarter of g++'s time, and so compiles the unit tests too.
set(sanitizer_compiler ${CMAKE_CXX_COMPILER})
if(FUSIONLLM_CLANGXX)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/sanitize/probe.cpp CONTENT "int main() {}\n")
  execute_process(COMMAND ${FUSIONLLM_CLANGXX} -fsanitize=address,undefined probe.cpp -o probe
                  COMMAND ${FUSIONLLM_CLANGXX} -fsanitize=thread probe.cpp -o probe
                  WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/sanitize
                  RESULTS_VARIABLE clang_results OUTPUT_QUIET ERROR_QUIET)
  if(clang_results STREQUAL "0;0")
    set(sanitizer_compiler ${FUSIONLLM_CLANGXX})
  endif()
endif()
foreach(preset IN ITEMS asan-ubsan tsan)
  string(REPLACE "-" "_" name ${preset})
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND}
    -D PRESET=${preset} -D SOURCE=${PROJECT_SOURCE_DIR} -D WORK=${PROJECT_BINARY_DIR}/${preset}
    -D COMPILER=${sanitizer_compiler} -D JOBS=${fusionllm_processors} -P ${CMAKE_CURRENT_LIST_DIR}/run.cmake)
  fusionllm_set_test(${name} TIMEOUT 3600 PROCESSORS ${fusionllm_processors})
endforeach()
