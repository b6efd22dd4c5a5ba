#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# keep_report.sh nvcc ARGUMENTS...: compiles, and keeps what ptxas says of resources in OUTPUT.report for resources.py.
output= before=
for word; do
  [ "$before" = -o ] && output=$word
  before=$word
done
"$@" 2>"$output.report"
code=$?
grep -v -e '^ptxas info' -e '^ *[0-9]* bytes stack frame' "$output.report" >&2
exit $code
