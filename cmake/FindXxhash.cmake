# SPDX-License-Identifier: Apache-2.0
# Finds xxHash, used from its header alone: the target Xxhash::Xxhash.
find_path(Xxhash_INCLUDE_DIR xxhash.h)
mark_as_advanced(Xxhash_INCLUDE_DIR)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Xxhash REQUIRED_VARS Xxhash_INCLUDE_DIR)
if(Xxhash_FOUND AND NOT TARGET Xxhash::Xxhash)
  add_library(Xxhash::Xxhash INTERFACE IMPORTED)
  set_target_properties(Xxhash::Xxhash PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES ${Xxhash_INCLUDE_DIR}
    INTERFACE_COMPILE_DEFINITIONS XXH_INLINE_ALL)
endif()
