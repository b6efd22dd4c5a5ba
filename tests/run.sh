#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sets up what a fresh Debian or Ubuntu lacks, builds, and runs all tests; ends with ctest's summary.
#   sh tests/run.sh [arguments for ctest, such as -R unit]
set -eu
. "$(dirname -- "$0")/../cmake/setup.sh"

need $base_packages catch2 librapidcheck-dev libbenchmark-dev procps
want clang libclang-rt-dev $image_packages
check_tools
get_text || say "no text: tests that read it will be skipped"
get_gpt2_vocabulary || say "no vocabulary of GPT-2: tests that read it will be skipped"
get_fashion_mnist || say "no Fashion-MNIST: tests that read it will be skipped"
get_nvcc || say "no nvcc: tests of the CUDA seam will be skipped"

build=$build_root/ci
cd "$source_dir"
cmake --preset ci -B "$build" -D FUSIONLLM_DATA="$cache_dir" -D FUSIONLLM_CCCL_INCLUDE_DIR="${cccl_dir:-}"
cmake --build "$build" --parallel "$jobs"
ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel "$jobs" "$@"
