#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every command's help, and what each kind of bad input ends with: a line on stderr and its exit status.
. "$(dirname -- "$0")/support/common.sh"

expect 0 "wire version" --version
expect 0 "commands:" --help
for command in train local broker peer plan simulate graph tokenize generate evaluate predict import export; do
  expect 0 "usage: " $command --help
done

# 2: the command line
expect 2 "no command"
expect 2 "did you mean 'train'?" trian
expect 2 "did you mean --learning-rate?" train --larning-rate 1
expect 2 "batch is 0" train --batch 0
expect 2 "no topology" plan
# 3: the configuration
echo '{"bach": 8}' >bad.json
expect 3 "did you mean 'batch'?" train --config bad.json
echo '{"batch": "8"}' >bad.json
expect 3 "a whole number" train --config bad.json
echo '{"batch": 8' >bad.json
expect 3 "not JSON" train --config bad.json
expect 3 "micro_batches is 8" train --batch 4 --micro-batches 8
expect 3 "data is empty" train
expect 3 "no device is called" train $small --device abacus --steps 1
expect 3 "compressor" local $small --peers 2 --compressor magic --steps 1
for command in local broker; do
  expect 3 "--validation-interval" $command $small --peers 2 --steps 1 --validation-interval 5
done
# 4, 5: topologies and plans
expect 4 "cannot read" plan --topology absent.json
echo '{"sites": [{"name": "a", "devices": 2, "tflop": 1}]}' >topology.json
expect 4 "tflop" plan --topology topology.json
cat >topology.json <<'T'
{"sites": [{"name": "a", "devices": 2, "tflops": 0.001, "memory_gib": 4, "inside": {"mbps": 100, "latency_ms": 1}}]}
T
echo '{"stages": [{"peers": [0], "nodes": [0]}]}' >plan.json
expect 5 "" local $small --topology topology.json --use plan.json --steps 1
expect 0 "written to" plan --topology topology.json --output good.json
expect 0 "op_fence" simulate --topology topology.json
expect 3 "has 2 devices" plan --topology topology.json --peers 3
# 6: data
: >empty.txt
printf x >one.txt
head -c 16 text.txt >short.txt
head -c 17 text.txt >enough.txt
for file in empty one short; do
  expect 6 "expected 17 or more" train $small --data $file.txt --steps 1
done
expect 0 "" train $small --data enough.txt --steps 1
expect 6 "No such file" train $small --data absent.txt
expect 6 "is a directory" train $small --data .
expect 6 "multiple of 2" train $small --data enough.txt --token-format uint16
printf '\001\000\000\002' >wide.u16
expect 6 "token 1 of" train $small --data wide.u16 --token-format uint16
# 7: checkpoints
expect 7 "is no run folder" generate --run absent
expect 2 "nothing to load" generate
expect 7 "No such file" generate --checkpoint absent.ckpt
expect 7 "is not a checkpoint" generate --checkpoint text.txt
expect 7 "no whole checkpoint" train $small --run empty_run --resume --steps 1
# 8, 10: the network
expect 8 "no port" peer --broker localhost
expect 10 "broker" peer $small --broker 127.0.0.1:1 --connect-timeout 0.5
expect 10 "did not join" broker --broker 127.0.0.1:0 --peers 2 --connect-timeout 0.5

# JSON where it is asked for
expect 0 "" graph --json
python3 -m json.tool <out >/dev/null || failed "graph --json is not JSON"
expect 0 "digraph" graph --format dot
expect 0 "" simulate --topology topology.json --json
python3 -m json.tool <out >/dev/null || failed "simulate --json is not JSON"
finish
