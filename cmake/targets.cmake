# SPDX-License-Identifier: Apache-2.0
# The targets that users link. They carry include folders, the language standard, dependencies, and one flag: with
# -ffp-contract=off a result does not depend on which multiplications and additions a compiler chose to contract, without
# which differently cut models would differ in their last bits.
add_library(fusionllm_core INTERFACE)
add_library(fusionllm::core ALIAS fusionllm_core)
set_target_properties(fusionllm_core PROPERTIES EXPORT_NAME core)
target_compile_features(fusionllm_core INTERFACE cxx_std_20)
target_compile_options(fusionllm_core INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffp-contract=off>)
target_include_directories(fusionllm_core INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(fusionllm_core INTERFACE Threads::Threads)
set(fusionllm_targets fusionllm_core)

if(NOT fusionllm_missing)
  add_library(fusionllm_fusionllm INTERFACE)
  add_library(fusionllm::fusionllm ALIAS fusionllm_fusionllm)
  set_target_properties(fusionllm_fusionllm PROPERTIES EXPORT_NAME fusionllm)
  target_link_libraries(fusionllm_fusionllm INTERFACE
    fusionllm_core Asio::Asio cereal::cereal nlohmann_json::nlohmann_json Xxhash::Xxhash)
  list(APPEND fusionllm_targets fusionllm_fusionllm)
endif()

if(NOT fusionllm_missing_for_cpu)
  add_library(fusionllm_cpu INTERFACE)
  add_library(fusionllm::cpu ALIAS fusionllm_cpu)
  set_target_properties(fusionllm_cpu PROPERTIES EXPORT_NAME cpu)
  target_link_libraries(fusionllm_cpu INTERFACE fusionllm_fusionllm OneDNN::OneDNN)
  list(APPEND fusionllm_targets fusionllm_cpu)
endif()

if(NOT fusionllm_missing_for_images)
  add_library(fusionllm_images INTERFACE)
  add_library(fusionllm::images ALIAS fusionllm_images)
  set_target_properties(fusionllm_images PROPERTIES EXPORT_NAME images)
  target_link_libraries(fusionllm_images INTERFACE fusionllm_fusionllm ZLIB::ZLIB PNG::PNG JPEG::JPEG)
  list(APPEND fusionllm_targets fusionllm_images)
endif()
