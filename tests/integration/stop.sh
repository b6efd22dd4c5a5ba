#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How runs over processes end: by Ctrl-C with a checkpoint, by the death or silence of a peer with its name, and never
# with a process left behind.
. "$(dirname -- "$0")/support/common.sh"

many="$small --peers 3 --scheduler equal_number --compressor none --steps 100000 --checkpoint-interval 2 --silence-timeout 5"

gone() {  # gone PID: it has ended, or does within five seconds; whether its parent has asked how is not its matter
  tries=0
  while [ -e "/proc/$1/stat" ] && ! grep -q ") [ZX] " "/proc/$1/stat" 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 50 ] || return 1
    sleep 0.1
  done
}
begin() {  # begin FOLDER [WORDS]: a run in the background, with a checkpoint behind it
  "$gpt" local $many --run "$@" >out 2>err &
  run=$!
  tries=0
  while [ -z "$(ls "$1/checkpoints" 2>/dev/null | grep -v part)" ] && [ $tries -lt 600 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  children=$(pgrep -P $run)
  [ "$(echo "$children" | wc -l)" = 3 ] || failed "$1: its processes are '$children'"
}
ends() {  # ends STATUS TEXT
  wait $run
  found=$?
  [ $found = "$1" ] || failed "status $found, expected $1"
  grep -qF -- "$2" err || failed "does not say '$2'"
  for pid in $children; do
    gone "$pid" || failed "process $pid was left behind"
  done
}

begin interrupted
kill -INT $run
ends 130 "stopped after step"
"$gpt" local $many --run interrupted --resume --stop-after 1 --no-quiet >out 2>err || failed "resume after Ctrl-C"
grep -q "nothing left to do" out || failed "no checkpoint after Ctrl-C"

# Ctrl-C at one peer is a wish of the run's: it is saved before it ends.
begin asked --no-quiet
set -- $children
kill -INT "$2"
ends 130 "stopped after step"
grep -q "'peer-1' was asked to stop" out || failed "does not say who asked"
"$gpt" local $many --run asked --resume --stop-after 1 --no-quiet >out 2>err || failed "resume after Ctrl-C at a peer"
grep -q "nothing left to do" out || failed "no checkpoint after Ctrl-C at a peer"

begin killed
set -- $children
kill -KILL "$2"
ends 11 "peer-1"

begin silent
set -- $children
kill -STOP "$3"
ends 10 "peer-2"

# A parent that is killed takes its children with it.
begin orphans
kill -KILL $run
wait $run 2>/dev/null
for pid in $children; do
  gone "$pid" || failed "process $pid outlived its parent"
done
expect 0 "" evaluate --run orphans --data text.txt

# Ctrl-C in one process.
"$gpt" train $small --steps 100000 --run alone >out 2>err &
run=$! children=
wait_for '"step":2' alone/metrics.jsonl
kill -INT $run
ends 130 "stopped after step"
[ -n "$(ls alone/checkpoints)" ] || failed "no checkpoint after Ctrl-C"
finish
