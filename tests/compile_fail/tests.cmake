# SPDX-License-Identifier: Apache-2.0
# Programs that must not compile, with the message that their users must read: see check.py for the form of a file.
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
file(GLOB gate_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/gate/*.cpp)
set(check ${CMAKE_CURRENT_LIST_DIR}/check.py)
set(compilers g++ ${FUSIONLLM_GXX} clang++ ${FUSIONLLM_CLANGXX} nvcc ${fusionllm_nvcc})
if(NOT fusionllm_nvcc)
  list(APPEND compilers NOTFOUND)
endif()
if(NOT Python3_FOUND)
  message(STATUS "fusionllm: compile_fail tests left out: no Python 3")
  return()
endif()
while(compilers)
  list(POP_FRONT compilers kind compiler)
  if(NOT compiler)
    add_test(NAME compile_fail_${kind} COMMAND ${CMAKE_COMMAND} -E echo "SKIPPED: no ${kind}")
    fusionllm_set_test(compile_fail_${kind} SKIP_REGULAR_EXPRESSION "^SKIPPED")
    continue()
  endif()
  add_test(NAME compile_fail_gate_${kind}
    COMMAND ${Python3_EXECUTABLE} ${check} --kind ${kind} --compiler ${compiler} --gate ${gate_files}
            --flags ${fusionllm_plain_flags})
  fusionllm_set_test(compile_fail_gate_${kind})
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    add_test(NAME compile_fail_${name}_${kind}
      COMMAND ${Python3_EXECUTABLE} ${check} --kind ${kind} --compiler ${compiler} ${file}
              --flags ${fusionllm_plain_flags})
    fusionllm_set_test(compile_fail_${name}_${kind})
  endforeach()
endwhile()
