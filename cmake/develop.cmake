# SPDX-License-Identifier: Apache-2.0
# The private target of tests, examples and benches: warnings, sanitizers, ccache. Not installed, not linked by users.
if(fusionllm_missing_for_cpu)
  list(JOIN fusionllm_missing_for_cpu " " fusionllm_missing_words)
  message(FATAL_ERROR "fusionllm's tests, examples and benches need packages that were not found; on Debian or Ubuntu: "
                      "apt-get install ${fusionllm_missing_words}. To use the library alone, configure with "
                      "-DFUSIONLLM_TESTS=OFF -DFUSIONLLM_EXAMPLES=OFF.")
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, RelWithDebInfo or MinSizeRel" FORCE)
endif()
find_program(FUSIONLLM_CCACHE ccache)
mark_as_advanced(FUSIONLLM_CCACHE)
if(NOT FUSIONLLM_CCACHE)
  set(FUSIONLLM_CCACHE "")  # so that it vanishes from commands
else()
  foreach(language IN ITEMS CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${FUSIONLLM_CCACHE})
    endif()
  endforeach()
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(fusionllm_warnings -Wall -Wextra -Wshadow -Wconversion)
add_library(fusionllm_dev INTERFACE)
target_compile_options(fusionllm_dev INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${fusionllm_warnings}>" "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>")
if(FUSIONLLM_WERROR)
  target_compile_options(fusionllm_dev INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
if(FUSIONLLM_SANITIZE)
  target_compile_options(fusionllm_dev INTERFACE
    -fsanitize=${FUSIONLLM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(fusionllm_dev INTERFACE -fsanitize=${FUSIONLLM_SANITIZE})
  if(FUSIONLLM_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(fusionllm_dev INTERFACE -Wno-tsan)  # of fences in Asio
  endif()
  # With these three g++ does not take the inequality of two addresses for a constant, which traced models need; what they
  # would find, the address sanitizer finds too.
  if(FUSIONLLM_SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(fusionllm_dev INTERFACE
      -fno-sanitize=null,nonnull-attribute,returns-nonnull-attribute)
  endif()
endif()

fusionllm_enable_cuda()
if(NOT FUSIONLLM_HAVE_CUDA)
  message(STATUS "fusionllm: without CUDA: ${FUSIONLLM_CUDA_REASON}")
endif()

# Where a set-up script lays the texts that some tests and examples read; absent ones make those tests skip by name.
if(DEFINED ENV{XDG_CACHE_HOME})
  set(fusionllm_data_default $ENV{XDG_CACHE_HOME}/fusionllm)
else()
  set(fusionllm_data_default $ENV{HOME}/.cache/fusionllm)
endif()
set(FUSIONLLM_DATA ${fusionllm_data_default} CACHE PATH "Folder with shakespeare.txt and gpt2")

# The environment and limits of a test: 77 says that it was skipped.
set(fusionllm_test_timeout 600)
if(FUSIONLLM_SANITIZE)
  set(fusionllm_test_timeout 1800)  # without optimization, too
endif()
function(fusionllm_set_test test)
  set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${fusionllm_test_timeout} ENVIRONMENT
    "FUSIONLLM_BUILD=${PROJECT_BINARY_DIR};FUSIONLLM_SOURCE=${PROJECT_SOURCE_DIR};FUSIONLLM_DATA=${FUSIONLLM_DATA};\
ASAN_OPTIONS=allocator_may_return_null=1;LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0;\
TSAN_OPTIONS=allocator_may_return_null=1:suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp:halt_on_error=1:second_deadlock_stack=1;\
UBSAN_OPTIONS=print_stacktrace=1")
  if(ARGN)
    set_tests_properties(${test} PROPERTIES ${ARGN})
  endif()
endfunction()
