#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Cases C14 and C16: whoever does not belong to a run is turned away, told why, and the run goes on; addresses that
# cannot be used are named with a remedy.
. "$(dirname -- "$0")/support/common.sh"
command -v python3 >/dev/null || { echo "SKIPPED: no python3"; exit 77; }

run="--data text.txt --batch 4 --time 16 --validation-batches 0 --peers 2 --scheduler equal_number --compressor none --steps 4"
FUSIONLLM_TOKEN=secret
export FUSIONLLM_TOKEN

"$gpt" broker $run --run-id one --broker 127.0.0.1:0 --connect-timeout 100 >broker.out 2>broker.err &
broker=$!
wait_for "listens on" broker.out
at=$(sed -n 's/.*listens on \([0-9.:]*\) .*/\1/p' broker.out)

turned_away() {  # turned_away TEXT WORDS...: a peer that is refused, and both sides say why
  text=$1
  shift
  expect 9 "$text" peer $run --run-id one --broker "$at" --quiet "$@"
  wait_for "$text" broker.out
}
turned_away "'learning_rate'" --learning-rate 0.5
turned_away "'steps'" --steps 5
turned_away "run id is" --run-id two
tr a-y b-z <text.txt >other.txt
FUSIONLLM_TOKEN=wrong turned_away "token"

python3 - "$at" <<'P' || failed "the broker did not answer strangers with a closed connection"
import socket, sys
host, port = sys.argv[1].split(":")
for words in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", bytes(range(256)) * 4, b"\0" * 4096, b""):
    s = socket.create_connection((host, int(port)), timeout=5)
    s.settimeout(5)
    s.sendall(words)
    try:
        while s.recv(4096):
            pass
    except ConnectionResetError:
        pass
P

"$gpt" peer $run --run-id one --broker "$at" --rank 0 --quiet 2>p0.err &
"$gpt" peer $run --run-id one --broker "$at" --rank 1 --quiet 2>p1.err || failed "peer 1: $(cat p1.err)"
wait $broker || failed "the broker ended with $?: $(cat broker.err)"
grep -q "steps 4" broker.out || failed "the run did not finish"

# C16
python3 -c "
import socket, time
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()
print(s.getsockname()[1], flush=True); time.sleep(60)" >port &
holder=$!
tries=0
until [ -s port ] || [ $tries -gt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
expect 8 "port $(cat port) is in use" broker --broker 127.0.0.1:"$(cat port)" --peers 1
kill $holder
expect 8 "will not bind" broker --broker 0.0.0.0:0 --peers 1
expect 8 "no.such.name.invalid" broker --broker no.such.name.invalid:0 --peers 1
expect 8 "it an interface of this machine" broker --broker no-such-interface0:0 --peers 1
expect 8 "brackets" broker --broker ::1:0 --peers 1
expect 10 "did not join" broker --broker localhost:0 --peers 1 --connect-timeout 0.3
finish
