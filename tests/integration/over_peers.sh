#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A trained model used over several processes says what one process says, to the last byte: started here, on emulated
# links, by a plan made by hand, and by peers that come from elsewhere. Whoever is lost is named, and nobody stays.
. "$(dirname -- "$0")/support/common.sh"

expect 0 "" train $small --steps 12 --micro-batches 3 --run run
use="--run run --scheduler equal_number --connect-timeout 120"
drawn="--length 40 --prompt line --seed 5"
held="--data text.txt --validation-batches 3"

alone() {  # alone NAME WORDS: what one process says, to NAME
  name=$1
  shift
  expect 0 "" "$@"
  cp out "$name"
}
alike() {  # alike NAME WORDS: it is what NAME has, and several peers computed it
  name=$1
  shift
  expect 0 "computed by" "$@"
  cmp out "$name" >/dev/null 2>&1 || failed "$*: not what one process says"
}
alone text generate $use $drawn
alone json generate $use $drawn --json
alone likeliest generate $use --length 5 --prompt "line 1" --temperature 0
alone loss evaluate $use $held --json
alone said evaluate $use $held
for peers in 2 3; do
  alike text generate $use $drawn --peers $peers
  alike loss evaluate $use $held --json --peers $peers
done
alike json generate $use $drawn --json --peers 2
alike said evaluate $use $held --peers 2
grep "peer-0 (" err | grep -q "peer-1 (" || failed "one peer did it all: $(cat err)"
# The run folder's own number of peers does not matter, and neither does a plan's shape.
expect 0 "" local $small --peers 2 --scheduler equal_number --compressor none --steps 12 --micro-batches 3 --run over
expect 0 "" generate --run over $drawn
grep -q "computed by" err && failed "a run over peers is used over peers unasked"
cmp out text >/dev/null || failed "a run over peers says something else"

cat >slow.json <<'T'
{"sites": [{"name": "a", "devices": 1, "tflops": 0.01, "memory_gib": 4}, {"name": "b", "devices": 1, "tflops": 0.01, "memory_gib": 4}],
 "links": [{"between": ["a", "b"], "mbps": 50, "latency_ms": 3}]}
T
alike likeliest generate $use --length 5 --prompt "line 1" --temperature 0 --topology slow.json --emulate
# Both ends of the model on one peer, in another order; replicas, which take turns.
echo '{"stages": [{"peers": [1], "nodes": ["h.1"]}, {"peers": [0], "nodes": ["rest"]}]}' >ends.json
alike loss evaluate $use $held --json --topology slow.json --use ends.json
alike text generate $use $drawn --peers 2 --use ends.json
echo '{"stages": [{"peers": [0, 2], "nodes": ["h.0", "h.1"]}, {"peers": [1], "nodes": ["rest"]}]}' >replicas.json
alike loss evaluate $use $held --json --groups 2 --peers 3 --use replicas.json
alike text generate $use $drawn --groups 2 --peers 3 --use replicas.json
# Left to itself, the planner gives each peer a part.
alike text generate --run run $drawn --peers 2 --connect-timeout 120
grep "peer-0 (" err | grep -q "peer-1 (" || failed "one peer did it all: $(cat err)"

# Peers from elsewhere: they need neither data nor configuration nor checkpoint.
FUSIONLLM_TOKEN=secret
export FUSIONLLM_TOKEN
"$gpt" generate $use $drawn --peers 2 --listen 127.0.0.1:0 >asked.out 2>asked.err &
asks=$!
wait_for "waiting on" asked.err
at=$(sed -n 's/.*waiting on \([0-9.:]*\) .*/\1/p' asked.err)
expect 9 "'answer' is 'false' at 'peer-0'" peer $small --peers 2 --broker "$at" --rank 0 --connect-timeout 60
for rank in 0 1; do
  "$gpt" peer --answer --peers 2 --broker "$at" --rank $rank >$rank.out 2>$rank.err &
done
wait $asks || failed "generate with peers from elsewhere ended with $?"
cmp asked.out text >/dev/null || failed "peers from elsewhere say something else: $(cat asked.err ?.err)"
wait

# Whoever dies is named, and the others end.
gone() {
  tries=0
  while [ -e "/proc/$1/stat" ] && ! grep -q ") [ZX] " "/proc/$1/stat" 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || return 1
    sleep 0.1
  done
}
strike() {  # strike SIGNAL WHOM STATUS TEXT
  rm -f out  # what the one before has written
  "$gpt" generate $use --length 1000000 --prompt line --peers 3 --silence-timeout 10 >out 2>err &
  asks=$!
  tries=0
  until [ -s out ] && [ "$(wc -c <out)" -gt 200 ]; do
    tries=$((tries + 1))
    [ $tries -lt 1200 ] || { failed "$1 of $2: no text in two minutes: $(cat err)"; break; }
    sleep 0.1
  done
  children=$(pgrep -P $asks)
  [ "$(echo "$children" | wc -l)" = 3 ] || { failed "$1 of $2: its processes are '$children'"; kill -KILL $asks $children; return; }
  set -- "$1" "$2" "$3" "$4" $children
  case $2 in
    asker) kill "-$1" $asks ;;
    *) eval "kill -$1 \$$((5 + $2))" ;;
  esac
  wait $asks
  found=$?
  [ $found = "$3" ] || failed "$1 of $2: status $found, expected $3"
  grep -qF -- "$4" err || failed "$1 of $2: does not say '$4'"
  for pid in $children; do
    gone "$pid" || failed "$1 of $2: process $pid was left behind"
  done
}
strike KILL 1 11 "peer-1"
strike STOP 2 10 "peer-2"
strike INT asker 130 "stopped by its user"

# Pictures: accuracy and classes of a residual network, of which no peer is given the data.
resnet=$FUSIONLLM_BUILD/examples/resnet
if [ -x "$resnet" ] && command -v python3 >/dev/null; then
  mkdir pictures
  python3 - <<'P' || failed "no pictures were made"
import os, random, struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(b"\0ab\0cd")) + chunk(b"IEND", b"")
for folder in "train/cat", "train/dog", "test/cat", "test/dog":
    os.makedirs("animals/" + folder)
    open(f"animals/{folder}/one.png", "wb").write(png)
random.seed(1)
for name, n in ("train", 16), ("t10k", 11):
    with open(f"pictures/{name}-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">IIII", 2051, n, 28, 28) + bytes(random.randrange(256) for _ in range(n * 784)))
    with open(f"pictures/{name}-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">II", 2049, n) + bytes(random.randrange(10) for _ in range(n)))
P
  program=$gpt gpt=$resnet
  expect 0 "" train --data pictures --run classes --steps 1 --batch 4 --micro-batches 2 --validation-batches 1 --threads 1 --quiet
  use="--run classes --scheduler equal_number --connect-timeout 120 --data pictures --threads 1"
  alone loss evaluate $use --json
  alone said predict $use
  [ "$(wc -l <said)" = 11 ] || failed "predict: $(wc -l <said) lines for 11 pictures"
  [ "$(grep -c '"label":[0-9],"class":[0-9],' said)" = 11 ] || failed "predict: lines without a label: $(cat said)"
  grep -qF '"rows": 11' loss || failed "evaluate did not see all 11 pictures: $(cat loss)"
  expect 0 '"file":"animals/test/dog/one.png","label":1,"label_name":"dog","class":' predict --run classes --data animals --threads 1
  alike loss evaluate $use --json --peers 2
  alike said predict $use --peers 3
  # Who reads no data need not have any.
  expect 10 "did not join" broker --broker 127.0.0.1:0 --peers 2 --connect-timeout 0.5
  expect 10 "broker" peer --rank 1 --peers 2 --broker 127.0.0.1:1 --connect-timeout 0.5
  gpt=$program
  use="--run run --scheduler equal_number --connect-timeout 120"
fi

# What is wrong is told before or instead of an answer.
expect 5 "stages[0].peers[0]" generate $use $drawn --use ends.json
expect 3 "has 2 devices" generate $use $drawn --topology slow.json --peers 3
expect 10 "did not join" generate $use $drawn --peers 2 --listen 127.0.0.1:0 --connect-timeout 0.5
expect 2 "is a flag of" train $small --listen 127.0.0.1:0
finish
