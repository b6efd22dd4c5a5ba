#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Case C20: a run that was stopped and resumed is the run that was not, to the last bit: in one process and over
# several, over an edge of an epoch, with warm-up and compression.
. "$(dirname -- "$0")/support/common.sh"

# 57 samples: an epoch ends within step 14.
head -c 73 text.txt >tiny.txt
once="--data tiny.txt --batch 4 --time 16 --validation-batches 0 --quiet --warmup 5 --steps 20"

expect 0 "" train $once --run whole
for stop in 1 10 14 19; do
  expect 0 "" train $once --run part$stop --stop-after $stop
  expect 0 "" train $once --run part$stop --resume
  same whole/checkpoints/step-0000000020.ckpt part$stop/checkpoints/step-0000000020.ckpt
done
expect 0 "nothing left to do: step 20 of 20" train $once --run whole --resume --no-quiet
expect 3 "holds checkpoints" train $once --run whole
expect 3 "learning_rate = '0.001', now it is '0.5'" train $once --run whole --resume --learning-rate 0.5
expect 0 "" train $once --run whole --overwrite --stop-after 2
[ "$(ls whole/checkpoints)" = step-0000000002.ckpt ] || failed "overwrite left $(ls whole/checkpoints)"

# The same data by another name resumes, other data does not.
cp tiny.txt moved.txt
expect 0 "" train $once --run whole --resume --data moved.txt --stop-after 3
tr a-y b-z <tiny.txt >other.txt
expect 3 "data digest" train $once --run whole --resume --data other.txt

# A damaged newest checkpoint is passed over, with a warning.
expect 0 "" train $once --run keep --checkpoint-interval 5 --keep 3
[ "$(ls keep/checkpoints | wc -l)" = 3 ] || failed "keep 3 kept $(ls keep/checkpoints)"
head -c 1000 keep/checkpoints/step-0000000020.ckpt >cut && cp cut keep/checkpoints/step-0000000020.ckpt
expect 0 "is damaged" train $once --run keep --resume --no-quiet
expect 0 "" train $once --run again
same keep/checkpoints/step-0000000020.ckpt again/checkpoints/step-0000000020.ckpt

# Over processes: the same bits without compression, and with it the same as its own uninterrupted run.
split="--peers 2 --scheduler equal_number"
expect 0 "" local $once $split --compressor none --run split
same split/checkpoints/step-0000000020.ckpt again/checkpoints/step-0000000020.ckpt
expect 0 "" local $once $split --compressor ada_top_k --ratio 4 --run lossy
expect 0 "" local $once $split --compressor ada_top_k --ratio 4 --run parted --stop-after 9
expect 0 "" local $once $split --compressor ada_top_k --ratio 4 --run parted --resume
same lossy/checkpoints/step-0000000020.ckpt parted/checkpoints/step-0000000020.ckpt
expect 0 "nothing left to do" local $once $split --run parted --resume --no-quiet

# What was saved is used: text, and a loss.
expect 0 "" generate --run split --length 8 --prompt "line"
expect 0 "bigram" evaluate --run split --data text.txt
finish
