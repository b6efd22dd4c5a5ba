#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a text to tokens, a run on them, and text again; what is wrong with a tokenizer or a token file ends with status 6.
. "$(dirname -- "$0")/support/common.sh"
tokens=$FUSIONLLM_SOURCE/tests/reference/tokens

# A tokenizer for the example's 256 tokens: single bytes, numbered from the last to the first.
mkdir bytes
python3 - <<'P'
import json
own = [*range(33, 127), *range(161, 173), *range(174, 256)]
others = [b for b in range(256) if b not in own]
symbols = [chr(b) if b in own else chr(256 + others.index(b)) for b in range(256)]
json.dump({s: 255 - b for b, s in enumerate(symbols)}, open("bytes/encoder.json", "w"))
open("bytes/vocab.bpe", "w").write("#version: 0.2\n")
P

bytes=$(wc -c <text.txt)
expect 0 "$bytes tokens of 2 bytes, vocabulary 256" tokenize --data text.txt --tokenizer bytes --output bytes.tok
[ "$(wc -c <bytes.tok)" = $((64 + 2 * bytes)) ] || failed "bytes.tok has $(wc -c <bytes.tok) bytes"
expect 0 "\"tokens\": $bytes" tokenize --data text.txt --tokenizer bytes --output bytes.tok --json
python3 -m json.tool <out >/dev/null || failed "tokenize --json is not JSON"
expect 0 "vocabulary 1200" tokenize --data "$tokens/page.txt" --tokenizer "$tokens/small" --output page.tok
expect 0 "vocabulary 1200" tokenize --data "$tokens/page.txt" --tokenizer "$tokens/small/tokenizer.json" --output same.tok
same page.tok same.tok
for kind in small small_special; do
  special=$([ $kind = small ] || echo --special)
  expect 0 "" tokenize --data "$tokens/page.txt" --tokenizer "$tokens/small" --output page.tok $special
  python3 - "$tokens/ids.txt" $kind <<'P' || failed "ids of $kind differ"
import array, sys
found = array.array("H", open("page.tok", "rb").read()[64:])
lines = {line.split()[0]: [int(x) for x in line.split()[1:]] for line in open(sys.argv[1])}
sys.exit(list(found) != lines[sys.argv[2]])
P
done
cp text.txt named.tok.part  # a text may be called as a file that is being written once was
expect 0 "$bytes tokens" tokenize --data named.tok.part --tokenizer bytes --output named.tok
same bytes.tok named.tok
: >empty.txt
expect 0 "0 tokens" tokenize --data empty.txt --tokenizer bytes --output empty.tok

# what tokenize refuses
expect 3 "tokenizer is empty" tokenize --data text.txt --output x.tok
expect 3 "data is empty" tokenize --tokenizer bytes --output x.tok
expect 2 "no output" tokenize --data text.txt --tokenizer bytes
expect 2 "is the text itself" tokenize --data text.txt --tokenizer bytes --output ./text.txt
expect 6 "No such file" tokenize --data absent.txt --tokenizer bytes --output x.tok
expect 6 "No such file" tokenize --data text.txt --tokenizer absent --output x.tok
expect 6 "holds none of encoder.json" tokenize --data text.txt --tokenizer . --output x.tok
expect 6 "token file already" tokenize --data bytes.tok --tokenizer bytes --output x.tok
expect 6 "cannot create" tokenize --data text.txt --tokenizer bytes --output no/such/folder/x.tok
[ -z "$(ls | grep ^x.tok)" ] || failed "a refused tokenize left a file"

# a run on tokens: the same samples as those of the bytes, in other numbers; resumed to the same bits
run="--batch 4 --time 16 --validation-batches 2 --quiet --data bytes.tok --tokenizer bytes"
expect 0 "" train $run --steps 6 --run whole
expect 0 "" train $run --steps 6 --stop-after 3 --run halves
expect 0 "" train $run --steps 6 --run halves --resume
same whole/checkpoints/step-0000000006.ckpt halves/checkpoints/step-0000000006.ckpt
expect 0 "" local $run --steps 6 --peers 2 --compressor none --run two
same whole/checkpoints/step-0000000006.ckpt two/checkpoints/step-0000000006.ckpt
expect 0 "over 53 batches" evaluate --run whole --data bytes.tok
expect 0 "over 3 batches" evaluate --run whole --data bytes.tok --validation-batches 3
expect 0 "line 7" generate --run whole --prompt "line 7" --length 20
[ "$(head -c 6 out)" = "line 7" ] || failed "generate does not begin with its prompt"
expect 0 '{"prompt":"line 7","text":"line 7' generate --run whole --prompt "line 7" --length 5 --json
expect 2 "the prompt is empty" generate --run whole --prompt ""

# what a run refuses
head -c 1001 bytes.tok >cut.tok
expect 6 "holds 468 whole tokens (937 bytes after its header), expected $bytes" train $run --data cut.tok
(cat bytes.tok; printf x) >long.tok
expect 6 "behind its end" train $run --data long.tok
expect 6 "holds 0 tokens" train $run --data empty.tok
expect 6 "expected 17 or more" train $run --data empty.tok
head -c 17 text.txt >enough.txt
expect 0 "17 tokens" tokenize --data enough.txt --tokenizer bytes --output enough.tok
expect 0 "" train $run --data enough.tok --steps 1
expect 6 "a vocabulary of 1200 tokens, the model knows 256" train $run --data page.tok
expect 6 "make tokens of it first" train $run --data text.txt
expect 6 "made with another tokenizer" train $run --tokenizer "$tokens/small"
expect 6 "has 1200 tokens, the model knows 256" generate --run whole --tokenizer "$tokens/small"
finish
