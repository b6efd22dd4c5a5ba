# SPDX-License-Identifier: Apache-2.0
# cuda_teams: the kernels' bodies on the host; needs no CUDA. cuda_seam: a .cu file and its host program are one
# program. cuda_gpu: the same program's tests on a GPU. What the machine lacks is reported as skipped, by name.
set(cuda_dir ${CMAKE_CURRENT_LIST_DIR})
fusionllm_catch_program(cuda_teams ${cuda_dir}/host_team_test.cpp ${cuda_dir}/select_test.cpp)
target_include_directories(cuda_teams PRIVATE ${FUSIONLLM_KERNELS_DIR})
if(FUSIONLLM_HAVE_CUDA)
  fusionllm_add_trainer(cuda_seam SOURCES ${cuda_dir}/seam_test.cpp ${cuda_dir}/gpu_test.cpp
                        DEVICE ${cuda_dir}/device.cu)
  target_link_libraries(cuda_seam PRIVATE test_base test_main)
  add_test(NAME cuda_seam COMMAND cuda_seam ~[gpu])
  fusionllm_set_test(cuda_seam)
  add_test(NAME cuda_gpu COMMAND cuda_seam [gpu])
  fusionllm_set_test(cuda_gpu RUN_SERIAL TRUE)
else()
  foreach(test IN ITEMS cuda_seam cuda_gpu)
    add_test(NAME ${test} COMMAND ${CMAKE_COMMAND} -E echo "SKIPPED: ${FUSIONLLM_CUDA_REASON}")
    fusionllm_set_test(${test} SKIP_REGULAR_EXPRESSION "^SKIPPED")
  endforeach()
endif()
