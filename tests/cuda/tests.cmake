# SPDX-License-Identifier: Apache-2.0
# The CUDA seam: .cu files and their g++ tests link into one program, which says skipped where there is no GPU.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.cpp)
file(GLOB device_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cu)
if(NOT FUSIONLLM_HAVE_CUDA)
  add_test(NAME cuda_seam COMMAND ${CMAKE_COMMAND} -E echo "SKIPPED: ${FUSIONLLM_CUDA_REASON}")
  fusionllm_set_test(cuda_seam SKIP_REGULAR_EXPRESSION "^SKIPPED")
elseif(sources AND device_sources)
  fusionllm_add_trainer(cuda_seam SOURCES ${sources} DEVICE ${device_sources})
  target_link_libraries(cuda_seam PRIVATE test_base test_main)
  add_test(NAME cuda_seam COMMAND cuda_seam)
  fusionllm_set_test(cuda_seam)
endif()
