# SPDX-License-Identifier: Apache-2.0
# sanitizer_compiler: who builds the sanitized tests. clang++, where it has the sanitizers' runtime: it takes a quarter of
# g++'s time, and so compiles the unit tests too.
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
