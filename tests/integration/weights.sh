#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Weights leave a run and come back: export, import, the same held-out loss; training goes on from them, in one process
# and over peers. Where python3 has the package safetensors, it reads our files and we read its.
. "$(dirname -- "$0")/support/common.sh"

loss() {  # loss FOLDER: held-out loss of its newest checkpoint
  timeout 60 "$gpt" evaluate --run "$1" --data text.txt --time 16 --batch 4 --validation-batches 2 --json 2>err | sed -n 's/.*"loss": //p'
}
# same_loss A B: equal texts of numbers.
same_loss() {
  [ -n "$1" ] && [ "$1" = "$2" ] || failed "losses '$1' and '$2' differ"
}

expect 0 "usage: " import --help
expect 0 "usage: " export --help
expect 0 "" train $small --steps 2 --run first
expect 0 "are in model.safetensors as fp32" export --run first --output model.safetensors
expect 0 "go on with --resume" import --weights model.safetensors --run second --time 16 --batch 4
first=$(loss first)
same_loss "$first" "$(loss second)"
expect 0 "" export --run second --output again.safetensors
same model.safetensors again.safetensors
expect 0 "line" generate --run second --prompt "line" --length 3

# Training goes on from step 0 with settings of its own, the same over peers.
cp -r second third
expect 0 "" train $small --steps 2 --learning-rate 0.0005 --run second --resume
expect 0 "" local $small --steps 2 --learning-rate 0.0005 --run third --resume --peers 2 --compressor none
same_loss "$(loss second)" "$(loss third)"
[ "$(loss second)" != "$first" ] || failed "training changed nothing"
expect 3 "learning_rate" train $small --steps 2 --run second --resume
expect 3 "holds checkpoints" import --weights model.safetensors --run second
# A run that an import was to overwrite stays when that fails in the middle.
cp -r second before
(ulimit -f 200; exec "$gpt" import --weights model.safetensors --run second --overwrite --time 16 --batch 4 >out 2>err)
[ $? = 15 ] || failed "import into a file of limited size: not 15"
diff -r second before || failed "a failed import changed the run that it was to overwrite"
expect 0 "" import --weights model.safetensors --run second --overwrite --time 16 --batch 4
[ "$(ls second/checkpoints)" = step-0000000000.ckpt ] || failed "import --overwrite left $(ls second/checkpoints)"
same_loss "$first" "$(loss second)"

# Smaller types, and wider ones.
for type in fp16 bf16 fp64; do
  expect 0 "as $type" export --run first --output $type.safetensors --dtype $type
  expect 0 "" import --weights $type.safetensors --run run_$type --time 16 --batch 4
  expect 0 "" export --run run_$type --output $type.again --dtype $type
  same $type.safetensors $type.again
done
same_loss "$first" "$(loss run_fp64)"

# What is wrong is said, and no run folder is left behind.
expect 2 "--weights" import --run none
expect 2 "--run" import --weights model.safetensors
expect 2 "--output" export --run first
expect 2 "fp32|fp16|bf16|fp64" export --run first --output x --dtype fp8
expect 7 "No such file" import --weights absent --run none
expect 7 "is no run folder" export --run absent --output x
head -c 1000 model.safetensors >cut
expect 7 "header of" import --weights cut --run none
head -c 100000 model.safetensors >cut
expect 7 "it was cut off" import --weights cut --run none
newest=$(ls -d first/checkpoints/*.ckpt | tail -1)
expect 7 "checkpoint of fusionllm" import --weights "$newest" --run none
[ ! -e none ] || failed "a failed import left a run folder"
expect 0 "" import --weights model.safetensors --run json --json
python3 -m json.tool <out >/dev/null || failed "import --json is not JSON"
expect 0 "" export --run first --output json.safetensors --json
python3 -m json.tool <out >/dev/null || failed "export --json is not JSON"

# The package safetensors, with NumPy.
python=${FUSIONLLM_PYTHON:-python3}
if $python -c 'import safetensors.numpy' 2>/dev/null; then
  $python - <<'P' || failed "the package safetensors reads other values"
import numpy, safetensors, safetensors.numpy as st
ours = st.load_file("model.safetensors")
with safetensors.safe_open("model.safetensors", "np") as f:
    assert f.metadata() == {"format": "pt"}, f.metadata()
assert ours["transformer.h.0.attn.c_attn.weight"].shape == (256, 768)
assert ours["transformer.wte.weight"].shape == (256, 256)
half = st.load_file("fp16.safetensors")
for name, value in ours.items():
    assert numpy.array_equal(value.astype("f2"), half[name]), name
# As older files have it: no prefix, the masks, both copies of the embedding with unused rows.
theirs = {name.removeprefix("transformer."): numpy.ascontiguousarray(value) for name, value in ours.items()}
padded = numpy.concatenate([theirs["wte.weight"], numpy.ones((8, 256), "f4")])
theirs |= {"h.0.attn.bias": numpy.tril(numpy.ones((1, 1, 16, 16), "f4")), "wte.weight": padded, "lm_head.weight": padded}
st.save_file(theirs, "theirs.safetensors")
# As other programs have it: (out, in).
turned = {n: numpy.ascontiguousarray(v.T) if n.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")) else v
          for n, v in ours.items()}
st.save_file(turned, "turned.safetensors")
names = sorted(ours)
st.save_file({n: ours[n] for n in names[::2]}, "model-1.safetensors")
st.save_file({n: ours[n] for n in names[1::2]}, "model-2.safetensors")
import json
shards = {n: "model-%d.safetensors" % (1 + i % 2) for i, n in enumerate(names)}
json.dump({"metadata": {"total_size": 1}, "weight_map": shards}, open("model.safetensors.index.json", "w"))
del theirs["ln_f.weight"]
theirs["score.weight"] = padded
st.save_file(theirs, "lacking.safetensors")
P
  expect 0 "264 rows: the first 256 are taken" import --weights theirs.safetensors --run theirs --time 16 --batch 4
  same_loss "$first" "$(loss theirs)"
  expect 0 "(out, in)" import --weights turned.safetensors --run turned --time 16 --batch 4
  same_loss "$first" "$(loss turned)"
  expect 0 "" import --weights model.safetensors.index.json --run shards --time 16 --batch 4
  same_loss "$first" "$(loss shards)"
  expect 14 "1 missing: transformer.ln_f.weight" import --weights lacking.safetensors --run none
  expect 14 "1 of no parameter: score.weight" import --weights lacking.safetensors --run none
  expect 0 "1 missing, which start anew: transformer.ln_f.weight" import --weights lacking.safetensors --run part --partial
else
  echo "SKIPPED in part: $python has no package safetensors"
fi
finish
