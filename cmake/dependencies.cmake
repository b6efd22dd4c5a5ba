# SPDX-License-Identifier: Apache-2.0
# Finds what the targets link, quietly: a target whose dependencies are missing does not exist, and what needs it says so
# with the names of the packages. fusionllm_missing lists them.
set(fusionllm_missing "")
find_package(Threads REQUIRED)
find_package(Asio QUIET)
find_package(cereal QUIET)
find_package(nlohmann_json QUIET)
find_package(CLI11 QUIET)
find_package(Xxhash QUIET)
find_package(OneDNN 2 QUIET)
foreach(pair IN ITEMS Asio:libasio-dev cereal:libcereal-dev nlohmann_json:nlohmann-json3-dev CLI11:libcli11-dev
                      Xxhash:libxxhash-dev)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 name)
  list(GET pair 1 package)
  if(NOT ${name}_FOUND)
    list(APPEND fusionllm_missing ${package})
  endif()
endforeach()
set(fusionllm_missing_for_cpu ${fusionllm_missing})
if(NOT OneDNN_FOUND)
  list(APPEND fusionllm_missing_for_cpu libdnnl-dev)
endif()
