# SPDX-License-Identifier: Apache-2.0
# cmake -P: what an nvcc does not build for is named, with the cards that it means.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/cuda_architectures.cmake)
function(expect value expected)
  if(NOT "${value}" STREQUAL "${expected}")
    message(FATAL_ERROR "'${value}', expected '${expected}'")
  endif()
endfunction()

fusionllm_split_architectures("75-real;80-real;90;120" "75;80;86;90;120" kept lacking)
expect("${kept}" "75-real;80-real;90;120")
expect("${lacking}" "")
fusionllm_split_architectures("70;75-real;90" "80;90;100" kept lacking)
expect("${kept}" "90")
expect("${lacking}" "sm_70;sm_75 (RTX 20, T4: no bf16)")
fusionllm_split_architectures("native" "80;90" kept lacking)  # CMake's own words pass
expect("${kept}" "native")
fusionllm_split_architectures("75-real;90" "" kept lacking)   # an nvcc that does not say
expect("${kept}" "75-real;90")
