# SPDX-License-Identifier: Apache-2.0
# Each file is a test of its own, so that what lacks its data is skipped by name. Scripts find the programs under
# $FUSIONLLM_BUILD/examples and the sources under $FUSIONLLM_SOURCE; exit code 77 says skipped.
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.cpp)
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WE)
  string(REGEX REPLACE "_test$" "" name ${name})
  fusionllm_catch_program(integration_${name} ${file})
endforeach()
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.sh)
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WE)
  add_test(NAME integration_${name} COMMAND sh ${file})
  fusionllm_set_test(integration_${name} PROCESSORS 2)
  if(name MATCHES "mixed")
    set_tests_properties(integration_${name} PROPERTIES FIXTURES_REQUIRED mixed)
  endif()
endforeach()

# One example built by different compilers at different levels of optimization, for scripts with `mixed` in their name:
# $FUSIONLLM_BUILD/tests/mixed/<example>_g++_O0 and <example>_clang++_O2 (which is absent where clang++ is).
set(FUSIONLLM_MIXED gpt CACHE STRING "The example that runs of mixed peers are made of")
mark_as_advanced(FUSIONLLM_MIXED)
set(mixed_sources ${PROJECT_SOURCE_DIR}/examples/${FUSIONLLM_MIXED}.cpp ${PROJECT_SOURCE_DIR}/cmake/linked.cpp)
set(mixed_programs "")
set(mixed_builds g++ ${FUSIONLLM_GXX} O0 clang++ ${FUSIONLLM_CLANGXX} O2)
while(mixed_builds)
  list(POP_FRONT mixed_builds kind compiler level)
  if(NOT compiler)
    continue()
  endif()
  set(program ${CMAKE_CURRENT_BINARY_DIR}/mixed/${FUSIONLLM_MIXED}_${kind}_${level})
  set(objects "")
  foreach(source IN LISTS mixed_sources)
    get_filename_component(name ${source} NAME_WE)
    set(object ${program}.${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${FUSIONLLM_CCACHE} ${compiler} ${fusionllm_plain_flags} -ffp-contract=off -${level} -MMD -MF ${object}.d
              -MT ${object} -c ${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d VERBATIM COMMENT "${name} by ${kind} -${level}")
    list(APPEND objects ${object})
  endforeach()
  add_custom_command(OUTPUT ${program}
    COMMAND ${compiler} ${objects} -o ${program} ${OneDNN_LIBRARY} -l${FUSIONLLM_OPENMP_LIBRARY} -pthread
    DEPENDS ${objects} VERBATIM COMMENT "${FUSIONLLM_MIXED} by ${kind} -${level}")
  list(APPEND mixed_programs ${program})
endwhile()
if(mixed_programs)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/mixed)
  add_custom_target(mixed DEPENDS ${mixed_programs})
  add_test(NAME mixed_build COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target mixed)
  fusionllm_set_test(mixed_build PROCESSORS ${fusionllm_processors} RESOURCE_LOCK build FIXTURES_SETUP mixed)
endif()
