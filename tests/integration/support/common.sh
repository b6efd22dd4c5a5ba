# SPDX-License-Identifier: Apache-2.0
# What the scripts of this folder share: a folder of their own, the program, and checks that count what failed.
gpt=${FUSIONLLM_GPT:-$FUSIONLLM_BUILD/examples/gpt}
[ -x "$gpt" ] || { echo "SKIPPED: $gpt is not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

# A text of its own, so that no test needs a network: 40,000 bytes that repeat, with some variety.
i=0
while [ $i -lt 1000 ]; do
  echo "line $i of a text that $((i * 7919 % 1009)) tells"
  i=$((i + 1))
done | head -c 40000 >text.txt
small="--data text.txt --batch 4 --time 16 --validation-batches 0 --quiet"

failed() {
  failures=$((failures + 1))
  echo "FAILED: $*"
  [ -f out ] && sed 's/^/  out: /' out | tail -5
  [ -f err ] && sed 's/^/  err: /' err | tail -5
}

# expect STATUS TEXT WORDS...: the program ends with STATUS within a minute; TEXT is in what it says ("" for anything).
expect() {
  status=$1 text=$2
  shift 2
  timeout -k 5 120 "$gpt" "$@" >out 2>err
  found=$?
  [ $found = "$status" ] || failed "gpt $*: status $found, expected $status"
  [ -z "$text" ] || grep -qF -- "$text" out err || failed "gpt $*: does not say '$text'"
}

# same FILE FILE: equal bytes.
same() {
  cmp "$1" "$2" >/dev/null 2>&1 || failed "$1 and $2 differ"
}

# wait_for TEXT FILE: until a background program has written it, ten seconds at most.
wait_for() {
  tries=0
  until grep -qF -- "$1" "$2" 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || { failed "'$1' did not appear in $2"; return 1; }
    sleep 0.1
  done
}

finish() {
  [ $failures = 0 ] || { echo "$failures checks failed"; exit 1; }
  echo "all checks passed"
}
