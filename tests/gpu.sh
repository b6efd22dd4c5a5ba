#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What only a GPU can show: builds from the tree with a CUDA toolkit and its host compiler alone, without a network, and
# runs every operator, gradient and fused chain, AdaTopK, checkpoints, pipelines of GPU and CPU peers, and the kernels under
# compute-sanitizer. Prints a line a test, then JSON between two lines of its own; returns 0 if all passed, 1 if something
# failed, 77 if there is no nvcc or no GPU. Takes less than 8 minutes.
#   sh tests/gpu.sh
#   sh tests/gpu.sh --carry     copies headers that it needs beside the toolkit's (xxhash, cereal) into build/carried,
#                               for a machine that lacks them: take that folder along
set -u
source_dir=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$source_dir/tests/gpu/build.sh"

if [ "${1:-}" = --carry ]; then carry; exit; fi
find_toolkit || skipped "no CUDA compiler (nvcc) was found"
find_gpu || skipped "no GPU was found"
build=${FUSIONLLM_BUILD_ROOT:-$source_dir/build}/gpu
mkdir -p "$build"
find_headers || { echo "gpu: without xxhash.h and cereal: pipelines and checkpoints are skipped"; }

began=$(date +%s)
for file in "$source_dir"/tests/cuda/*.cu; do device "$file"; done
for file in "$source_dir"/tests/cuda/gpu_*test.cpp "$source_dir"/tests/gpu/main.cpp; do host "$file"; done
if [ -n "$with_runs" ]; then
  device "$source_dir/tests/gpu/device_case.cu"
  host "$source_dir/tests/gpu/runs_test.cpp"
fi
finish_builds || { echo "gpu: failed to build, after $(($(date +%s) - began)) s"; exit 1; }
link "$build/gpu_tests" || exit 1
echo "gpu: built in $(($(date +%s) - began)) s"

failed=0
run() {  # run NAME SECONDS COMMAND...: its JSON goes to $build/NAME.json
  name=$1 limit=$2
  shift 2
  timeout "$limit" "$@" >"$build/$name.log" 2>&1
  code=$?
  grep -v '^JSON ' "$build/$name.log"
  sed -n 's/^JSON //p' "$build/$name.log" >"$build/$name.json"
  [ -s "$build/$name.json" ] || echo "{\"failed\": 1, \"why\": \"ended with status $code\"}" >"$build/$name.json"
  case $code in 0|77) ;; *) echo "gpu: $name failed with status $code"; failed=1 ;; esac
}
run tests 150 "$build/gpu_tests"
if command -v "$sanitizer" >/dev/null; then
  for tool in memcheck racecheck; do
    run "$tool" 90 "$sanitizer" --tool "$tool" --error-exitcode 2 "$build/gpu_tests" '[small]'
  done
else
  echo "skipped: compute-sanitizer was not found"
  for tool in memcheck racecheck; do echo '{"skipped": 1, "why": "compute-sanitizer was not found"}' >"$build/$tool.json"; done
fi
echo "--- JSON"
printf '{"date": "%s", "gpu": "%s", "nvcc": "%s", "seconds": %s,\n "tests": %s,\n "memcheck": %s,\n "racecheck": %s}\n' \
  "$(date -u +%Y-%m-%d)" "$gpu_name" "$nvcc_version" "$(($(date +%s) - began))" \
  "$(cat "$build/tests.json")" "$(cat "$build/memcheck.json")" "$(cat "$build/racecheck.json")" | tee "$build/gpu.json"
echo "--- end"
exit $failed
