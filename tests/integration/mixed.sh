#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Peers that g++ -O0 and clang++ -O2 built train one model together: what peers compare at the handshake comes from names
# and numbers of the model alone. Sums are ordered alike; what is left is each compiler's rounding of exp and tanh.
. "$(dirname -- "$0")/support/common.sh"
slow=$FUSIONLLM_BUILD/tests/mixed/gpt_g++_O0 quick=$FUSIONLLM_BUILD/tests/mixed/gpt_clang++_O2
[ -x "$slow" ] && [ -x "$quick" ] || { echo "SKIPPED: not both of g++ and clang++ are there"; exit 77; }
command -v python3 >/dev/null || { echo "SKIPPED: no python3"; exit 77; }

run="$small --peers 3 --scheduler equal_number --compressor int8 --steps 5"
FUSIONLLM_TOKEN=secret
export FUSIONLLM_TOKEN

together() {  # together FOLDER BROKER PEER0 PEER1 PEER2: programs of a run
  folder=$1
  "$2" broker $run --no-quiet --run "$folder" --broker 127.0.0.1:0 >"$folder.out" 2>"$folder.err" &
  broker=$!
  wait_for "listens on" "$folder.out"
  at=$(sed -n 's/.*listens on \([0-9.:]*\) .*/\1/p' "$folder.out")
  shift 2
  rank=0
  for program; do
    "$program" peer $run --broker "$at" --rank $rank 2>"$folder.$rank.err" &
    rank=$((rank + 1))
  done
  wait $broker || failed "$folder: the broker ended with $?: $(cat "$folder.err" "$folder".?.err)"
}
together mixed "$slow" "$quick" "$slow" "$quick"
together swapped "$quick" "$slow" "$quick" "$slow"
together alike "$slow" "$slow" "$slow" "$slow"

python3 - <<'P' || failed "the losses of mixed and alike peers differ"
import json, sys
losses = [[json.loads(l)["loss"] for l in open(f"{run}/metrics.jsonl") if "loss" in json.loads(l)] for run in ("mixed", "swapped", "alike")]
print(losses)
far = max(abs(a - b) / b for run in losses[:2] for a, b in zip(run, losses[2]))
sys.exit(len(losses[0]) != 5 or [len(l) for l in losses] != [5] * 3 or far > 1e-4)
P
finish
