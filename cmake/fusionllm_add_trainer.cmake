# SPDX-License-Identifier: Apache-2.0
# fusionllm_add_trainer(name SOURCES main.cpp ... [DEVICE model.cu ...] [LINKED])
#   An executable linked with fusionllm::cpu. The DEVICE files hold the device tables of its models: with a CUDA compiler
#   they are compiled and linked and the sources see FUSIONLLM_WITH_CUDA=1, with which trainers have the device cuda; without
#   one they are left out and the definition is 0. LINKED, for sources that include <fusionllm/linked.hpp>: the library's commands, schedulers and
#   compressors are compiled once a build, into fusionllm_linked. A macro, because a language can be enabled only in the
#   scope of a CMakeLists.txt.
#
# fusionllm_enable_cuda()
#   Looks once for a CUDA compiler (CMAKE_CUDA_COMPILER, CUDACXX, PATH, /usr/local/cuda), enables the language and makes
#   fusionllm::cuda: kernels/, CUB, and of cuBLASLt and cuDNN what is there (CMake links the run-time library).
#   FUSIONLLM_HAVE_CUDA tells whether it exists, FUSIONLLM_CUDA_REASON why not. Architectures are CMAKE_CUDA_ARCHITECTURES;
#   the default is every card that can train, as far as the compiler builds for it. FUSIONLLM_CCCL_INCLUDE_DIR names a
#   newer CCCL than the toolkit's.
set(FUSIONLLM_CCCL_INCLUDE_DIR "" CACHE PATH "Include folder of a newer CCCL than the toolkit's")
mark_as_advanced(FUSIONLLM_CCCL_INCLUDE_DIR)
set(FUSIONLLM_LINKED_SOURCE ${CMAKE_CURRENT_LIST_DIR}/linked.cpp CACHE INTERNAL "")
include(${CMAKE_CURRENT_LIST_DIR}/cuda_architectures.cmake)

macro(fusionllm_enable_cuda)
  if(NOT DEFINED FUSIONLLM_HAVE_CUDA)
    set(FUSIONLLM_HAVE_CUDA FALSE)
    set(FUSIONLLM_CUDA_REASON "")
    if(DEFINED FUSIONLLM_CUDA AND NOT FUSIONLLM_CUDA)
      set(FUSIONLLM_CUDA_REASON "FUSIONLLM_CUDA is off")
    else()
      if(NOT CMAKE_CUDA_COMPILER)
        unset(CMAKE_CUDA_COMPILER CACHE)  # look again: it may have been installed since
      endif()
      if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
        find_program(FUSIONLLM_NVCC nvcc HINTS ENV CUDA_PATH PATH_SUFFIXES bin PATHS /usr/local/cuda/bin)
        if(FUSIONLLM_NVCC)
          set(CMAKE_CUDA_COMPILER ${FUSIONLLM_NVCC})
        endif()
      endif()
      fusionllm_choose_cuda_architectures()
      include(CheckLanguage)
      check_language(CUDA)
      if(NOT CMAKE_CUDA_COMPILER)
        set(FUSIONLLM_CUDA_REASON "no CUDA compiler (nvcc) was found")
      else()
        enable_language(CUDA)
        set(FUSIONLLM_HAVE_CUDA TRUE)
        fusionllm_find_cuda_library(CUBLASLT cublasLt.h cublasLt "products run on a slow kernel of our own")
        fusionllm_find_cuda_library(CUDNN cudnn.h cudnn "nothing uses it yet")
        fusionllm_find_cuda_library(NCCL nccl.h nccl "nothing uses it yet")
        list(JOIN CMAKE_CUDA_ARCHITECTURES " " fusionllm_cuda_words)
        message(STATUS "fusionllm: CUDA ${CMAKE_CUDA_COMPILER_VERSION} for the architectures ${fusionllm_cuda_words}; "
                       "${FUSIONLLM_CUDA_LIBRARIES_TEXT}")
      endif()
    endif()
  endif()
  if(FUSIONLLM_HAVE_CUDA AND NOT TARGET fusionllm::cuda)
    add_library(fusionllm_cuda INTERFACE)
    add_library(fusionllm::cuda ALIAS fusionllm_cuda)
    target_link_libraries(fusionllm_cuda INTERFACE fusionllm::core)
    if(FUSIONLLM_CCCL_INCLUDE_DIR)
      # Not SYSTEM: nvcc searches its own folder, which holds parts of the older CCCL, before system folders.
      target_include_directories(fusionllm_cuda BEFORE INTERFACE ${FUSIONLLM_CCCL_INCLUDE_DIR})
    endif()
    target_include_directories(fusionllm_cuda INTERFACE ${FUSIONLLM_KERNELS_DIR})
    foreach(library IN ITEMS CUBLASLT)  # the others as soon as something uses them
      if(FUSIONLLM_${library}_INCLUDE_DIR AND FUSIONLLM_${library}_LIBRARY)
        target_link_libraries(fusionllm_cuda INTERFACE ${FUSIONLLM_${library}_LIBRARY})
        target_include_directories(fusionllm_cuda SYSTEM INTERFACE ${FUSIONLLM_${library}_INCLUDE_DIR})
        target_compile_definitions(fusionllm_cuda INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:FUSIONLLM_WITH_${library}=1>)
      endif()
    endforeach()
    # CMake 3.25.1 cannot ask nvcc for C++20 by feature. -fmad=false is the GPU's -ffp-contract=off.
    target_compile_options(fusionllm_cuda INTERFACE
      $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr -fmad=false>)
  endif()
endmacro()

# Not CMake's FindCUDAToolkit: that of 3.25.1 fails on toolkits without nvToolsExt, which 13 no longer has.
macro(fusionllm_find_cuda_library name header library without)
  find_path(FUSIONLLM_${name}_INCLUDE_DIR ${header} HINTS ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  find_library(FUSIONLLM_${name}_LIBRARY ${library}
    HINTS ${CMAKE_CUDA_COMPILER_TOOLKIT_ROOT} ${CMAKE_CUDA_COMPILER_LIBRARY_ROOT} PATH_SUFFIXES lib64 lib)
  mark_as_advanced(FUSIONLLM_${name}_INCLUDE_DIR FUSIONLLM_${name}_LIBRARY)
  if(FUSIONLLM_CUDA_LIBRARIES_TEXT)
    string(APPEND FUSIONLLM_CUDA_LIBRARIES_TEXT ", ")
  endif()
  if(FUSIONLLM_${name}_INCLUDE_DIR AND FUSIONLLM_${name}_LIBRARY)
    string(APPEND FUSIONLLM_CUDA_LIBRARIES_TEXT "${library} found")
  else()
    string(APPEND FUSIONLLM_CUDA_LIBRARIES_TEXT "${library} not found (${without})")
  endif()
endmacro()

macro(fusionllm_add_trainer fusionllm_trainer)
  cmake_parse_arguments(fusionllm_trainer_arguments "LINKED" "" "SOURCES;DEVICE" ${ARGN})
  if(NOT TARGET fusionllm::cpu)
    if(NOT fusionllm_missing_for_cpu)
      message(FATAL_ERROR "fusionllm_add_trainer(${fusionllm_trainer}): fusionllm::cpu does not exist, because it is not "
                          "among the COMPONENTS that find_package(fusionllm) was given: add cpu.")
    endif()
    message(FATAL_ERROR "fusionllm_add_trainer(${fusionllm_trainer}): fusionllm::cpu does not exist, because packages "
                        "are missing (on Debian: ${fusionllm_missing_for_cpu}).")
  endif()
  if(NOT fusionllm_trainer_arguments_SOURCES)
    message(FATAL_ERROR "fusionllm_add_trainer(${fusionllm_trainer}): SOURCES is empty; expected the file with main().")
  endif()
  if(fusionllm_trainer_arguments_DEVICE)
    fusionllm_enable_cuda()  # before the target, whose architectures it sets
  endif()
  add_executable(${fusionllm_trainer} ${fusionllm_trainer_arguments_SOURCES})
  if(fusionllm_trainer_arguments_LINKED)
    if(NOT TARGET fusionllm_linked)
      add_library(fusionllm_linked STATIC EXCLUDE_FROM_ALL ${FUSIONLLM_LINKED_SOURCE})
      target_link_libraries(fusionllm_linked PUBLIC fusionllm::cpu)
    endif()
    target_link_libraries(${fusionllm_trainer} PRIVATE fusionllm_linked)
  endif()
  target_link_libraries(${fusionllm_trainer} PRIVATE fusionllm::cpu)
  if(fusionllm_trainer_arguments_DEVICE)
    if(FUSIONLLM_HAVE_CUDA)
      target_sources(${fusionllm_trainer} PRIVATE ${fusionllm_trainer_arguments_DEVICE})
      target_link_libraries(${fusionllm_trainer} PRIVATE fusionllm::cuda)
      target_compile_definitions(${fusionllm_trainer} PRIVATE FUSIONLLM_WITH_CUDA=1)
    else()
      message(STATUS "fusionllm: ${fusionllm_trainer} without its CUDA device: ${FUSIONLLM_CUDA_REASON}")
      target_compile_definitions(${fusionllm_trainer} PRIVATE FUSIONLLM_WITH_CUDA=0)
    endif()
  endif()
endmacro()
