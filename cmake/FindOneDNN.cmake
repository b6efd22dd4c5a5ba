# SPDX-License-Identifier: Apache-2.0
# Finds oneDNN: the target OneDNN::OneDNN, OneDNN_VERSION. Not its own CMake package, because a build with an OpenCL
# back end makes that one demand OpenCL's development files, which nothing here uses. Where oneDNN's threads are OpenMP's,
# the GNU OpenMP library is linked too, so that the number of its threads can be set.
find_path(OneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(OneDNN_LIBRARY dnnl)
mark_as_advanced(OneDNN_INCLUDE_DIR OneDNN_LIBRARY)
if(OneDNN_INCLUDE_DIR)
  file(STRINGS ${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h OneDNN_lines
       REGEX "#define DNNL_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
  string(REGEX MATCHALL "[0-9]+" OneDNN_numbers "${OneDNN_lines}")
  list(JOIN OneDNN_numbers "." OneDNN_VERSION)
  file(STRINGS ${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_config.h OneDNN_openmp
       REGEX "#define DNNL_CPU_THREADING_RUNTIME DNNL_RUNTIME_OMP")
endif()
set(FUSIONLLM_OPENMP_LIBRARY gomp CACHE STRING "The OpenMP library that oneDNN is linked with")
mark_as_advanced(FUSIONLLM_OPENMP_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR VERSION_VAR OneDNN_VERSION)
if(OneDNN_FOUND AND NOT TARGET OneDNN::OneDNN)
  add_library(OneDNN::OneDNN UNKNOWN IMPORTED)
  set_target_properties(OneDNN::OneDNN PROPERTIES
    IMPORTED_LOCATION ${OneDNN_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${OneDNN_INCLUDE_DIR})
  if(OneDNN_openmp)
    set_target_properties(OneDNN::OneDNN PROPERTIES INTERFACE_LINK_LIBRARIES ${FUSIONLLM_OPENMP_LIBRARY})
  endif()
endif()
