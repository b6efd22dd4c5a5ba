# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone, without a warning, and all under hostile min and max macros; by each compiler there is, all
# together; two programs' worth of all headers link, which finds a missing inline; and what a .cu file may include compiles
# with nvcc. The files are generated. Each test builds one target, so that only what changed is compiled again.
#
# Whether a header includes what it needs does not depend on the compiler, as all use one standard library: the quickest
# tries each alone.
set(headers_dir ${CMAKE_CURRENT_BINARY_DIR}/headers)
set(include_dir ${PROJECT_SOURCE_DIR}/include)
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${include_dir} ${include_dir}/fusionllm/*.hpp)

if(NOT TARGET fusionllm::images)
  list(FILTER headers EXCLUDE REGEX "trainer/(idx_file|image_folder|images)")
endif()

function(fusionllm_header_file name guard)
  list(JOIN ARGN ">\n#include <" lines)
  string(CONCAT text "${guard}" "#include <${lines}>\n")
  file(CONFIGURE OUTPUT ${headers_dir}/${name} CONTENT "${text}" @ONLY)
endfunction()

set(hostile "#define min(a, b) hostile_min_macro\n#define max(a, b) hostile_max_macro\n")
# libstdc++ undefines both macros in its first header, so all others are met under them only after it.
set(after_system "#include <bits/stdc++.h>\n#include <asio.hpp>\n#include <nlohmann/json.hpp>\n\
#include <cereal/archives/portable_binary.hpp>\n#include <cereal/types/string.hpp>\n#include <cereal/types/vector.hpp>\n\
#include <cereal/types/map.hpp>\n#include <cereal/types/array.hpp>\n#include <cereal/types/optional.hpp>\n\
#include <xxhash.h>\n#include <oneapi/dnnl/dnnl.hpp>\n")

foreach(header IN LISTS headers)
  string(REPLACE "/" "." unit ${header})
  fusionllm_header_file(${unit}.cpp "${hostile}" ${header} ${header})
endforeach()
fusionllm_header_file(all.hpp.cpp "" ${headers})

set(alone_with ${FUSIONLLM_CLANGXX})
if(NOT alone_with)
  set(alone_with ${FUSIONLLM_GXX})
endif()
foreach(compiler IN ITEMS ${FUSIONLLM_GXX} ${FUSIONLLM_CLANGXX})
  if(NOT compiler)
    continue()
  endif()
  get_filename_component(compiler_name ${compiler} NAME)
  set(stamps "")
  set(these "")
  if(compiler STREQUAL "${alone_with}")
    set(these ${headers})
  endif()
  foreach(header IN LISTS these ITEMS all.hpp)
    string(REPLACE "/" "." unit ${header})
    set(stamp ${headers_dir}/${unit}.${compiler_name}.stamp)
    add_custom_command(OUTPUT ${stamp}
      COMMAND ${FUSIONLLM_CCACHE} ${compiler} ${fusionllm_plain_flags} -O0 -ffp-contract=off ${fusionllm_warnings} -Werror
              -MMD -MF ${stamp}.d -MT ${stamp} -c ${headers_dir}/${unit}.cpp -o ${stamp}
      DEPENDS ${headers_dir}/${unit}.cpp DEPFILE ${stamp}.d VERBATIM COMMENT "${compiler_name}: ${header} alone")
    list(APPEND stamps ${stamp})
  endforeach()
  add_custom_target(headers_${compiler_name} DEPENDS ${stamps})
  list(APPEND header_targets headers_${compiler_name})
endforeach()

fusionllm_header_file(linked_once.cpp "" ${headers})
fusionllm_header_file(linked_twice.cpp "${after_system}${hostile}" ${headers})
file(CONFIGURE OUTPUT ${headers_dir}/linked_main.cpp CONTENT "int main() {}\n")
add_executable(headers_linked EXCLUDE_FROM_ALL
  ${headers_dir}/linked_main.cpp ${headers_dir}/linked_once.cpp ${headers_dir}/linked_twice.cpp)
target_link_libraries(headers_linked PRIVATE fusionllm::cpu $<TARGET_NAME_IF_EXISTS:fusionllm::images>)
target_compile_options(headers_linked PRIVATE ${fusionllm_warnings} -Werror -O0)
list(APPEND header_targets headers_linked)

# One unit a layer: a .cu file sees core, graph, ops and device, but never oneDNN.
if(fusionllm_nvcc)
  set(stamps "")
  foreach(layer IN ITEMS core graph ops device)
    set(of_layer ${headers})
    list(FILTER of_layer INCLUDE REGEX "^fusionllm/${layer}/")
    list(FILTER of_layer EXCLUDE REGEX "^fusionllm/device/cpu")
    if(NOT of_layer)
      continue()
    endif()
    fusionllm_header_file(layer_${layer}.cu "" ${of_layer})
    set(stamp ${headers_dir}/layer_${layer}.nvcc.stamp)
    # A .cu of nothing but headers yields an empty object; nvcc writes its dependencies beside it.
    add_custom_command(OUTPUT ${stamp}
      COMMAND ${fusionllm_nvcc} -std=c++20 --expt-relaxed-constexpr -I${include_dir} -Werror=all-warnings
              -Xcompiler=-Wall,-Wextra -c ${headers_dir}/layer_${layer}.cu -o ${headers_dir}/layer_${layer}.o
              -MMD -MF ${stamp}.d -MT ${stamp}
      COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
      DEPENDS ${headers_dir}/layer_${layer}.cu DEPFILE ${stamp}.d VERBATIM COMMENT "nvcc: headers of ${layer}")
    list(APPEND stamps ${stamp})
  endforeach()
  add_custom_target(headers_nvcc DEPENDS ${stamps})
  list(APPEND header_targets headers_nvcc)
else()
  add_test(NAME headers_nvcc COMMAND ${CMAKE_COMMAND} -E echo "SKIPPED: no nvcc")
  fusionllm_set_test(headers_nvcc SKIP_REGULAR_EXPRESSION "^SKIPPED")
endif()

foreach(target IN LISTS header_targets)
  add_test(NAME ${target} COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target ${target})
  fusionllm_set_test(${target} PROCESSORS ${fusionllm_processors} RESOURCE_LOCK build TIMEOUT 1500)
endforeach()
