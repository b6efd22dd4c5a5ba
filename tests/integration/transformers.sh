#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Weights between us and the package transformers, both ways: our file loads there with nothing missing or left over, the
# same held-out loss (1e-5) and the same greedy continuation; its files, whole, in shards and in bf16, load here with the
# same loss. FUSIONLLM_PYTHON names a python3 that has the packages torch and transformers; without it the test is skipped.
. "$(dirname -- "$0")/support/common.sh"
python=${FUSIONLLM_PYTHON:-python3}
$python -c 'import torch, transformers' 2>/dev/null || { echo "SKIPPED: $python has no packages torch and transformers"; exit 77; }

same_data="--time 16 --batch 4"
loss() {
  timeout 60 "$gpt" evaluate --run "$1" --data text.txt $same_data --validation-batches 2 --json 2>err | sed -n 's/.*"loss": \([^,]*\).*/\1/p'
}

expect 0 "" train $small --steps 40 --learning-rate 0.003 --run ours
mkdir folder
expect 0 "" export --run ours --output folder/model.safetensors
timeout 60 "$gpt" generate --run ours --prompt "line 7" --length 10 --temperature 0 >greedy 2>err || failed "generate"

$python - "$(loss ours)" >python.out 2>&1 <<'P' || { failed "transformers differs"; tail -5 python.out; }
import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel

config = GPT2Config(vocab_size=256, n_positions=256, n_embd=256, n_layer=4, n_head=4, bos_token_id=0, eos_token_id=0,
                    resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
config.save_pretrained("folder")
model, info = GPT2LMHeadModel.from_pretrained("folder", output_loading_info=True)
assert not any(info.values()), info
model.eval()

text = open("text.txt", "rb").read()
first = len(text) - len(text) // 10
samples = torch.tensor([list(text[first + 16 * s:first + 16 * s + 17]) for s in range(8)])
with torch.no_grad():
    logits = model(samples[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), samples[:, 1:].flatten()).item()
    tokens = list(b"line 7")
    for _ in range(10):
        tokens.append(int(model(torch.tensor([tokens])).logits[0, -1].argmax()))
ours = float(sys.argv[1])
print("loss", loss, "ours", ours)
assert abs(loss - ours) < 1e-5 * abs(loss), (loss, ours)
assert open("greedy", "rb").read() == bytes(tokens) + b"\n", (open("greedy", "rb").read(), bytes(tokens))

model.save_pretrained("whole")
model.save_pretrained("shards", max_shard_size="2MB")
model.to(torch.bfloat16).save_pretrained("bf16")
P
cat python.out | grep '^loss'
for kind in whole shards bf16; do
  expect 0 "" import --weights $kind --run from_$kind $same_data
done
for kind in whole shards; do
  expect 0 "" export --run from_$kind --output $kind.safetensors
  same $kind.safetensors folder/model.safetensors
done
expect 0 "" export --run from_bf16 --output bf16.safetensors --dtype bf16
expect 0 "" export --run ours --output ours_bf16.safetensors --dtype bf16
same bf16.safetensors ours_bf16.safetensors
[ -f shards/model.safetensors.index.json ] || failed "there are no shards"
finish
