// SPDX-License-Identifier: Apache-2.0
// A trainer for CPUs and GPUs: `--device auto`, `--device cpu` or `--device cuda:1`, one and the same program. In CMake
//   fusionllm_add_trainer(gpu_trainer SOURCES main.cpp DEVICE model.cu LINKED)
// without CMake: the Makefile beside this file. Without an nvcc the program has the CPU's devices.
// ctest: graph
// ctest: train --device auto --data @DATA@/shakespeare.txt --steps 2 --batch 2 --time 16 --run @SCRATCH@/gpu_run
#include <fusionllm/linked.hpp>

#include "model.hpp"

int main(int argc, char** argv) { return fl::run_linked<fl::linked_trainer<byte_gpt>>(argc, argv); }
