// SPDX-License-Identifier: Apache-2.0
// A trainer for CPUs and GPUs: `--device auto`, `--device cpu` or `--device cuda:1`, one and the same program. In CMake
//   fusionllm_add_trainer(gpu_trainer SOURCES main.cpp DEVICE model.cu LINKED)
// without CMake: the Makefile beside this file. Without an nvcc the program has the CPU's devices.
#include <fusionllm/linked.hpp>

#include "model.hpp"

int main(int argc, char** argv) { return fl::run_linked<fl::linked_trainer<byte_gpt>>(argc, argv); }
