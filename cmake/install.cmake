# SPDX-License-Identifier: Apache-2.0
# What cmake --install lays down: headers, kernels, the law suites (so that users run them on their own policies) and the
# CMake package. find_package(fusionllm COMPONENTS core) asks for nothing but threads; without components, for the
# dependencies of fusionllm::fusionllm, and for oneDNN if it is there.
include(CMakePackageConfigHelpers)
set(FUSIONLLM_KERNELS_DIR ${PROJECT_SOURCE_DIR}/kernels CACHE INTERNAL "")
set(fusionllm_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fusionllm)
set(fusionllm_kernels_install_dir ${CMAKE_INSTALL_INCLUDEDIR}/fusionllm_kernels)
set(fusionllm_laws_install_dir ${CMAKE_INSTALL_INCLUDEDIR}/fusionllm_laws)

install(DIRECTORY include/fusionllm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp" PATTERN "*.inc")
install(DIRECTORY kernels/ OPTIONAL DESTINATION ${fusionllm_kernels_install_dir}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh" PATTERN "*.cu")
install(DIRECTORY tests/laws OPTIONAL DESTINATION ${fusionllm_laws_install_dir} FILES_MATCHING PATTERN "*.hpp")
install(FILES tests/catch.hpp DESTINATION ${fusionllm_laws_install_dir})
# An export set each, so that a component can be loaded without the dependencies of the others.
foreach(target IN LISTS fusionllm_targets)
  install(TARGETS ${target} EXPORT ${target})
  install(EXPORT ${target} NAMESPACE fusionllm:: FILE ${target}-targets.cmake DESTINATION ${fusionllm_package_dir})
endforeach()
configure_package_config_file(cmake/fusionllm-config.cmake.in ${PROJECT_BINARY_DIR}/fusionllm-config.cmake
  INSTALL_DESTINATION ${fusionllm_package_dir} PATH_VARS fusionllm_kernels_install_dir fusionllm_laws_install_dir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fusionllm-config-version.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/fusionllm-config.cmake ${PROJECT_BINARY_DIR}/fusionllm-config-version.cmake
              cmake/FindAsio.cmake cmake/FindXxhash.cmake cmake/FindOneDNN.cmake
              cmake/fusionllm_add_trainer.cmake cmake/cuda_architectures.cmake cmake/linked.cpp
        DESTINATION ${fusionllm_package_dir})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
