#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains the small GPT (4 layers, width 256, 4 heads, vocabulary 256, 16 x 128 tokens, AdamW, fp32) with PyTorch eager and
# with fusionllm in turns, so that both see the machine at its fast and slow moments, and prints both and their ratio.
#   sh bench/vs_torch/run.sh [program [pairs [threads]]]     PYTHON=... chooses a Python that has torch
# The program is `vs_torch_bench`, built by the preset bench.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=${1:-$here/../../build/bench/bench/vs_torch_bench}
pairs=${2:-5}
threads=${3:-2}
python=${PYTHON:-python3}
if [ ! -x "$program" ]; then
  echo "run.sh: $program is not there; build it: cmake --preset bench && cmake --build --preset bench --target vs_torch_bench" >&2
  exit 2
fi
if ! "$python" -c 'import torch' 2>/dev/null; then
  echo "run.sh: $python has no torch; install it in a virtual environment and set PYTHON (pip install torch)" >&2
  exit 2
fi
[ ! -r /proc/loadavg ] || echo "load of the machine before: $(cut -d' ' -f1-3 /proc/loadavg) (figures of a busy one flatter whoever waits less)"
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
i=0
while [ "$i" -lt "$pairs" ]; do
  "$python" "$here/torch_gpt.py" --threads "$threads" | tee -a "$lines"
  "$program" "$threads" | tee -a "$lines"
  i=$((i + 1))
done
"$python" - "$lines" <<'END'
import json, statistics, sys
runs = [json.loads(line) for line in open(sys.argv[1])]
theirs, ours = runs[0::2], runs[1::2]
median = statistics.median
for name, r in (("PyTorch", theirs), ("fusionllm", ours)):
    print("%-10s %7.0f tokens/s (median of %d), %6.1f ms a step, %6.1f ms of processor time" % (
        name, median(x["tokens_per_s"] for x in r), len(r), 1e3 * median(x["seconds"] for x in r),
        1e3 * median(x["cpu_seconds"] for x in r)))
print("fusionllm / PyTorch, median of the pairs' ratios: %.2f by tokens/s, %.2f by processor time" % (
    median(o["tokens_per_s"] / t["tokens_per_s"] for o, t in zip(ours, theirs)),
    median(t["cpu_seconds"] / o["cpu_seconds"] for o, t in zip(ours, theirs))))
END
