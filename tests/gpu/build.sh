# SPDX-License-Identifier: Apache-2.0
# Sourced by tests/gpu.sh and bench/gpu.sh: finds nvcc, a GPU and headers, and compiles without CMake, several files at a
# time. Works in any POSIX shell. Sets nvcc, nvcc_version, gpu_name, sanitizer; with_runs where whole runs can be built.

skipped() {
  echo "SKIPPED: $1"
  echo "--- JSON"
  printf '{"date": "%s", "skipped": "%s"}\n' "$(date -u +%Y-%m-%d)" "$1"
  echo "--- end"
  exit 77
}

find_toolkit() {
  for nvcc in "${CUDACXX:-}" nvcc "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" /usr/local/cuda/bin/nvcc; do
    if [ -n "$nvcc" ] && command -v "$nvcc" >/dev/null; then
      nvcc=$(command -v "$nvcc")
      toolkit=$(dirname -- "$(dirname -- "$(readlink -f "$nvcc")")")
      nvcc_version=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
      sanitizer=$toolkit/bin/compute-sanitizer
      return 0
    fi
  done
  return 1
}

find_gpu() {
  gpu_name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -1)
  [ -n "$gpu_name" ]
}

# Where the headers of xxhash and cereal are: the system's, or build/carried.
find_headers() {
  with_runs=
  carried=$source_dir/build/carried
  for folder in "$carried" /usr/include /usr/local/include; do
    if [ -f "$folder/xxhash.h" ] && [ -d "$folder/cereal" ]; then
      header_flags="-DXXH_INLINE_ALL"
      [ "$folder" = "$carried" ] && header_flags="$header_flags -isystem $carried"
      with_runs=1
      return 0
    fi
  done
  header_flags=
  return 1
}
carry() {
  mkdir -p "$source_dir/build/carried"
  cp /usr/include/xxhash.h "$source_dir/build/carried/" && cp -r /usr/include/cereal "$source_dir/build/carried/" &&
    rm -rf "$source_dir/build/carried/cereal/external" && echo "headers are in build/carried"
}

has() {  # has HEADER LIBRARY: in the toolkit or where its compiler looks anyway
  for folder in "$toolkit/include" "$toolkit"/targets/*/include /usr/include /usr/include/*-linux-gnu; do
    if [ -f "$folder/$1" ]; then
      for libraries in "$toolkit/lib64" "$toolkit/lib" "$toolkit"/targets/*/lib /usr/lib /usr/lib/*-linux-gnu; do
        ls "$libraries/lib$2".so >/dev/null 2>&1 && { library_flags="$library_flags -L$libraries -Xlinker -rpath=$libraries -l$2"; return 0; }
      done
    fi
  done
  echo "gpu: $2 was not found"
  return 1
}
choose_flags() {
  [ -n "${device_flags:-}" ] && return
  library_flags=
  include_flags="-I$source_dir/tests/gpu -I$source_dir/tests/cuda -I$source_dir/tests -I$source_dir/include -I$source_dir/kernels"
  device_flags="-std=c++20 -O2 --expt-relaxed-constexpr -fmad=false -arch=${FUSIONLLM_CUDA_ARCH:-native} -Xcompiler=-ffp-contract=off"
  has cublasLt.h cublasLt && device_flags="$device_flags -DFUSIONLLM_WITH_CUBLASLT=1"
  host_flags="-std=c++20 -O2 -ffp-contract=off -DFUSIONLLM_WITH_CUDA=1 ${header_flags:-}"
  rm -f "$build/broken"
  jobs=$(nproc 2>/dev/null || echo 2)
  running=0
}

# One file each, in the background; `finish_builds` waits for all.
object_of() { echo "$build/$(basename -- "$1").o"; }
start() {
  object=$1
  shift
  objects="${objects:-} $object"
  # shellcheck disable=SC2086
  { "$@" >"$object.log" 2>&1 || { echo "gpu: failed: $*"; cat "$object.log"; touch "$build/broken"; }; } &
  running=$((running + 1))
  if [ "$running" -ge "$jobs" ]; then wait; running=0; fi
}
device() {
  choose_flags
  # shellcheck disable=SC2086
  start "$(object_of "$1")" "$nvcc" $device_flags $include_flags -c "$1" -o "$(object_of "$1")"
}
host() {
  choose_flags
  # shellcheck disable=SC2086
  start "$(object_of "$1")" "${CXX:-g++}" $host_flags $include_flags -c "$1" -o "$(object_of "$1")"
}
finish_builds() {
  wait
  [ ! -e "$build/broken" ]
}
link() {
  # shellcheck disable=SC2086
  "$nvcc" $objects -o "$1" -lpthread $library_flags
}
