# SPDX-License-Identifier: Apache-2.0
# Configures, builds and tests one preset in a folder of its own.
execute_process(COMMAND ${CMAKE_COMMAND} --preset ${PRESET} -B ${WORK} -D CMAKE_CXX_COMPILER=${COMPILER}
                WORKING_DIRECTORY ${SOURCE} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK} --parallel ${JOBS} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${WORK} --output-on-failure --parallel ${JOBS}
                        --no-tests=error RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PRESET}: tests failed")
endif()
