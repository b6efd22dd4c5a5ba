#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What surroundings do to a command: files without end, closed streams, limits, signals, an environment of its own. None
# ends in a crash or a hang, and none costs what was saved before.
. "$(dirname -- "$0")/support/common.sh"
command -v python3 >/dev/null || { echo "SKIPPED: no python3"; exit 77; }

cat >topology.json <<'T'
{"sites": [{"name": "a", "devices": 2, "tflops": 0.001, "memory_gib": 4, "inside": {"mbps": 100, "latency_ms": 1}}]}
T

# nesting without end, and files that are none
python3 -c 'n = 300000; print("{\"sites\":" + "[" * n + "]" * n + "}")' >deep.json
expect 4 "nested deeper" plan --topology deep.json
expect 5 "nested deeper" plan --topology topology.json --use deep.json
expect 3 "nested deeper" train --config deep.json
mkfifo pipe
expect 4 "pipe" plan --topology pipe
expect 5 "pipe" plan --topology topology.json --use pipe
expect 3 "pipe" train --config pipe
expect 6 "pipe" train $small --data pipe
expect 15 "cannot write 'pipe'" plan --topology topology.json --output pipe

# a run that cannot begin leaves the one that it would have overwritten
expect 0 "" train $small --steps 2 --run run
cp -r run before
expect 3 "no device" train $small --steps 2 --run run --overwrite --device abacus
expect 14 "time is 5000" train $small --steps 2 --run run --overwrite --time 5000
expect 3 "no scheduler" local $small --steps 2 --run run --overwrite --peers 2 --scheduler magic
expect 5 "no plan can run" local $small --steps 2 --run run --overwrite --peers 2 --memory-mib 1
expect 3 "no device" train $small --steps 2 --run run --resume --device abacus
diff -r run before || failed "a run that could not begin changed the folder of another"
expect 0 "" train $small --steps 3 --run run --overwrite
[ "$(ls run/checkpoints)" = step-0000000003.ckpt ] || failed "--overwrite left $(ls run/checkpoints)"
[ "$(grep -c '"event":"step"' run/metrics.jsonl)" = 3 ] || failed "--overwrite went on with the metrics of the run before"

# closed streams: what is printed goes nowhere, least of all into the files of the run
loud="--data text.txt --batch 4 --time 16 --validation-batches 0"
"$gpt" train $loud --steps 2 --run closed <&- >&- 2>&-
[ $? = 15 ] || failed "a command whose output is closed ended well"
grep -v '^{' closed/metrics.jsonl && failed "what was printed is in the metrics"
expect 0 "" generate --run closed --length 1

# limits: a file's size is an error of the write, and what was there before stays
(ulimit -f 200; exec "$gpt" train $small --steps 1 --run limited >out 2>err)
[ $? = 15 ] || failed "a file of limited size: not 15"
grep -q "File too large" err || failed "a file of limited size is not named"
[ -z "$(ls limited/checkpoints)" ] || failed "a part of a checkpoint was left: $(ls limited/checkpoints)"
expect 0 "" plan --topology topology.json --output plan.json
cp plan.json plan.before
(ulimit -f 0; exec "$gpt" plan --topology topology.json --output plan.json >/dev/null 2>&1)
[ $? = 15 ] || failed "a plan that cannot be written: not 15"
same plan.json plan.before

# whoever read the output leaves, or the terminal ends: the step ends, a checkpoint is written
sh -c "\"$gpt\" train $loud --steps 100000 --run read; echo \$? >status" | head -n 3 >/dev/null
[ "$(cat status)" = 130 ] || failed "a reader that left: status $(cat status)"
expect 0 "" generate --run read --length 1
"$gpt" train $loud --steps 100000 --run hung >hung.out 2>&1 &
wait_for "step 2/" hung.out
expect 3 "another process" train $small --steps 1 --run hung
expect 3 "another process" train $small --steps 1 --run hung --overwrite
expect 3 "another process" local $small --peers 2 --steps 1 --run hung --resume
kill -HUP $!
wait $!
[ $? = 130 ] || failed "a terminal that ended: not 130"
expect 0 "" generate --run hung --length 1

# the environment's token gives way to the flag's and to the one that `local` draws; names of files are bytes
export FUSIONLLM_TOKEN=one
expect 0 "" local $small --peers 2 --steps 1 --token two
export FUSIONLLM_TOKEN=
expect 0 "" local $small --peers 2 --steps 1
unset FUSIONLLM_TOKEN
odd=$(printf 'text\377.txt')
if cp text.txt "$odd" 2>/dev/null; then expect 0 "" local $small --peers 2 --steps 1 --data "$odd"; fi
finish
