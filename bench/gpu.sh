#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures on a GPU: steps of GPT-2 small and ResNet-101, their share of the rate of cuBLASLt on the same shapes in the same
# run, top-k against the rate of memory, and PyTorch's step where PyTorch is installed. Builds as tests/gpu.sh does. Prints a
# line a measurement, then JSON between two lines of its own; returns 77 if there is no nvcc or no GPU. Less than 8 minutes.
set -u
source_dir=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$source_dir/tests/gpu/build.sh"
find_toolkit || skipped "no CUDA compiler (nvcc) was found"
find_gpu || skipped "no GPU was found"
find_headers || skipped "xxhash.h or cereal was not found: tests/gpu.sh --carry on a machine that has them, and take build/carried along"
build=${FUSIONLLM_BUILD_ROOT:-$source_dir/build}/gpu_bench
mkdir -p "$build"
began=$(date +%s)
for file in "$source_dir"/bench/gpu/*.cu; do device "$file"; done
host "$source_dir/bench/gpu/gpu_bench.cpp"
finish_builds && link "$build/gpu_bench" || exit 1
built=$(($(date +%s) - began))
echo "bench: built in $built s"
timeout 330 "$build/gpu_bench" $((250 - (built > 200 ? 100 : 0))) >"$build/log" 2>&1
code=$?
grep -v '^JSON ' "$build/log"
results=$(sed -n 's/^JSON //p' "$build/log")
torch='{"bench": "gpt2_small", "by": "PyTorch", "skipped": "PyTorch is not installed"}'
if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  torch=$(timeout 100 python3 "$source_dir/bench/gpu/torch_step.py" 2>/dev/null) || torch='{"bench": "gpt2_small", "by": "PyTorch", "failed": "see torch_step.py"}'
fi
echo "$torch"
echo "--- JSON"
printf '{"date": "%s", "gpu": "%s", "nvcc": "%s", "seconds": %s, "torch": %s,\n "results": %s}\n' "$(date -u +%Y-%m-%d)" "$gpu_name" \
  "$nvcc_version" "$(($(date +%s) - began))" "$torch" "${results:-[]}" | tee "$build/bench.json"
echo "--- end"
exit $code
