#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The main job from nothing: sets up what a fresh Debian or Ubuntu lacks, builds examples/gpt.cpp and trains it on the
# plays of Shakespeare over four processes joined by slow, uneven links.
#   sh examples/demo.sh [options of examples/demo.py]
set -eu
. "$(dirname -- "$0")/../cmake/setup.sh"

need $base_packages
check_tools
get_text || stop "The text could not be fetched: is there a network, and can pip reach its index?"

build=$build_root/release
cd "$source_dir"
cmake --preset release -B "$build" -D FUSIONLLM_TESTS=OFF -D FUSIONLLM_CUDA=OFF >/dev/null
say "building examples/gpt.cpp"
cmake --build "$build" --parallel "$jobs" --target gpt

# The main job.
python3 examples/demo.py "$build/examples/gpt" "$cache_dir/shakespeare.txt" examples/topologies/demo.json "$build/demo" "$@"
