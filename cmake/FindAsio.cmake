# SPDX-License-Identifier: Apache-2.0
# Finds standalone Asio, which ships no CMake package: the target Asio::Asio, Asio_VERSION.
find_path(Asio_INCLUDE_DIR asio/ip/tcp.hpp)
mark_as_advanced(Asio_INCLUDE_DIR)
if(Asio_INCLUDE_DIR)
  file(STRINGS ${Asio_INCLUDE_DIR}/asio/version.hpp Asio_line REGEX "#define ASIO_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+" Asio_number "${Asio_line}")
  if(Asio_number)
    math(EXPR Asio_major "${Asio_number} / 100000")
    math(EXPR Asio_minor "${Asio_number} / 100 % 1000")
    math(EXPR Asio_patch "${Asio_number} % 100")
    set(Asio_VERSION ${Asio_major}.${Asio_minor}.${Asio_patch})
  endif()
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Asio REQUIRED_VARS Asio_INCLUDE_DIR VERSION_VAR Asio_VERSION)
if(Asio_FOUND AND NOT TARGET Asio::Asio)
  find_package(Threads QUIET)
  add_library(Asio::Asio INTERFACE IMPORTED)
  set_target_properties(Asio::Asio PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES ${Asio_INCLUDE_DIR}
    INTERFACE_COMPILE_DEFINITIONS ASIO_STANDALONE
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
