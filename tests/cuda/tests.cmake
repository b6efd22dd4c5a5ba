# SPDX-License-Identifier: Apache-2.0
# cuda_teams: the kernels' bodies on the host; needs no CUDA. cuda_seam: a .cu file and its host program are one
# program, for all architectures. cuda_gpu: the same program's tests on a GPU. cuda_runs: what only tests/gpu.sh and
# bench/gpu.sh run compiles and links, for one architecture; so does examples/cuda. What the machine lacks is reported as
# skipped, by name. cuda_resources: no kernel spills registers or takes more than resources.txt says.
set(cuda_dir ${CMAKE_CURRENT_LIST_DIR})
file(GLOB cuda_host_tests CONFIGURE_DEPENDS ${cuda_dir}/*_test.cpp)
file(GLOB cuda_gpu_tests CONFIGURE_DEPENDS ${cuda_dir}/gpu_*test.cpp)
file(GLOB cuda_device_files CONFIGURE_DEPENDS ${cuda_dir}/*.cu)
list(REMOVE_ITEM cuda_host_tests ${cuda_dir}/seam_test.cpp ${cuda_gpu_tests})
fusionllm_catch_program(cuda_teams ${cuda_host_tests})
target_include_directories(cuda_teams PRIVATE ${FUSIONLLM_KERNELS_DIR})
if(FUSIONLLM_HAVE_CUDA)
  fusionllm_add_trainer(cuda_seam SOURCES ${cuda_dir}/seam_test.cpp ${cuda_gpu_tests} DEVICE ${cuda_dir}/device.cu)
  list(REMOVE_ITEM cuda_device_files ${cuda_dir}/device.cu)
  add_library(cuda_tables OBJECT ${cuda_device_files})  # larger models: for the oldest card, others translate its PTX
  target_link_libraries(cuda_tables PRIVATE fusionllm::cuda fusionllm_dev)
  list(GET CMAKE_CUDA_ARCHITECTURES 0 oldest)
  string(REPLACE "-real" "" oldest "${oldest}")
  set_target_properties(cuda_tables PROPERTIES CUDA_ARCHITECTURES "${oldest}")
  target_link_libraries(cuda_seam PRIVATE cuda_tables test_base test_main)
  add_test(NAME cuda_seam COMMAND cuda_seam ~[gpu])
  fusionllm_set_test(cuda_seam)
  add_test(NAME cuda_gpu COMMAND cuda_seam [gpu])
  fusionllm_set_test(cuda_gpu RUN_SERIAL TRUE)

  if(Python3_FOUND)
    foreach(target IN ITEMS cuda_seam cuda_tables)
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v>)
      set_target_properties(${target} PROPERTIES
        CUDA_COMPILER_LAUNCHER "sh;${cuda_dir}/keep_report.sh;${CMAKE_CUDA_COMPILER_LAUNCHER}")
      list(APPEND cuda_objects $<FILTER:$<TARGET_OBJECTS:${target}>,INCLUDE,[.]cu[.]o$>)
    endforeach()
    add_test(NAME cuda_resources COMMAND ${Python3_EXECUTABLE} ${cuda_dir}/resources.py ${cuda_dir}/resources.txt
      ${cuda_objects} COMMAND_EXPAND_LISTS)
    fusionllm_set_test(cuda_resources ENVIRONMENT "NVCC=${fusionllm_nvcc}")
  endif()

  set(gpu_dir ${PROJECT_SOURCE_DIR}/tests/gpu)
  fusionllm_add_trainer(cuda_runs SOURCES ${gpu_dir}/runs_test.cpp DEVICE ${gpu_dir}/device_case.cu)
  target_include_directories(cuda_runs PRIVATE ${cuda_dir})
  target_link_libraries(cuda_runs PRIVATE test_base test_main)
  add_test(NAME cuda_runs COMMAND cuda_runs)
  fusionllm_set_test(cuda_runs RUN_SERIAL TRUE)

  set(example_dir ${PROJECT_SOURCE_DIR}/examples/cuda)
  fusionllm_add_trainer(gpu_trainer SOURCES ${example_dir}/main.cpp DEVICE ${example_dir}/model.cu LINKED)
  target_link_libraries(gpu_trainer PRIVATE fusionllm_dev)
  add_test(NAME cuda_example COMMAND gpu_trainer graph)
  fusionllm_set_test(cuda_example)
  foreach(target IN ITEMS cuda_runs gpu_trainer)  # compiled as quickly as can be: what they show is that they compile and link
    set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES 80-real)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0 -g0> $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-O0>)
  endforeach()
else()
  foreach(test IN ITEMS cuda_seam cuda_gpu cuda_runs cuda_example)
    add_test(NAME ${test} COMMAND ${CMAKE_COMMAND} -E echo "SKIPPED: ${FUSIONLLM_CUDA_REASON}")
    fusionllm_set_test(${test} SKIP_REGULAR_EXPRESSION "^SKIPPED")
  endforeach()
endif()

# Without a GPU both scripts say so; with one they are run by hand.
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/cuda_scripts.sh CONTENT "nvidia-smi -L >/dev/null 2>&1 && exit 77
sh tests/gpu.sh | grep -q '^SKIPPED: no ' && sh bench/gpu.sh | grep -q '^SKIPPED: no '
" @ONLY)
add_test(NAME cuda_scripts COMMAND sh ${CMAKE_CURRENT_BINARY_DIR}/cuda_scripts.sh WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
fusionllm_set_test(cuda_scripts)
add_test(NAME cuda_architectures COMMAND ${CMAKE_COMMAND} -P ${cuda_dir}/architectures_test.cmake)
fusionllm_set_test(cuda_architectures)
