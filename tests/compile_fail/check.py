#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a program is rejected with the message its user should read.

A file holds one or more lines `// expect: TEXT` (or `// expect nvcc: TEXT` for one of g++, clang++, nvcc alone, or
`// only: g++ clang++` to leave a compiler out), the wrong program, and its right twin under #ifdef POSITIVE. It passes
only if the wrong program is rejected, the compiler's first line with `error:` holds every TEXT, and the twin compiles.

With --gate the files are samples that must be refused: `// refused: REASON` says for which of the reasons below.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ACCEPTED = "the wrong program compiles"
TEXT = "the first error does not say it"
POSITIVE = "the positive twin does not compile"
NO_EXPECTATION = "no expected text"


def run(kind, compiler, flags, path, positive):
    command = [compiler] + flags + (["-DPOSITIVE"] if positive else [])
    with tempfile.TemporaryDirectory() as folder:
        if kind == "nvcc":
            stage = "-ptx" if positive else "-c"  # what is right for its front end needs no host compiler
            command += ["-x", "cu", "--expt-relaxed-constexpr", stage, "-o", os.path.join(folder, "out")]
        else:
            command += ["-fsyntax-only"]
        command += ["-I", os.path.dirname(os.path.abspath(path)), path]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              env={**os.environ, "LC_ALL": "C", "GCC_COLORS": ""})
    return done.returncode, done.stdout


def expectations(source, kind):
    return re.findall(r"^\s*// expect(?: %s)?: (.*?)\s*$" % re.escape(kind), source, re.M)


def check(kind, compiler, flags, path):
    """Returns (reason, detail), reason None if the file passes."""
    with open(path, encoding="utf-8") as f:
        source = f.read()
    only = re.search(r"^\s*// only: (.*)$", source, re.M)
    if only and kind not in only.group(1).split():
        print("not for", kind)
        sys.exit(77)
    texts = expectations(source, kind)
    if not texts or "POSITIVE" not in source:
        return NO_EXPECTATION, "expected a line '// expect: TEXT' and an '#ifdef POSITIVE' twin"
    code, output = run(kind, compiler, flags, path, False)
    if code == 0:
        return ACCEPTED, output
    first = next((line for line in output.splitlines() if "error:" in line), "")
    for text in texts:
        if text not in first:
            return TEXT, "expected: %s\nfirst:    %s\n\n%s" % (text, first, output[:4000])
    code, output = run(kind, compiler, flags, path, True)
    if code != 0:
        return POSITIVE, output[:4000]
    print("%s: %s" % (os.path.basename(path), first.strip()))
    return None, ""


def main():
    arguments = sys.argv[1:]
    flags = []
    if "--flags" in arguments:
        at = arguments.index("--flags")
        arguments, flags = arguments[:at], arguments[at + 1:]
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", required=True, choices=["g++", "clang++", "nvcc"])
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--gate", action="store_true", help="the files must be refused, for the reason they name")
    parser.add_argument("files", nargs="*")
    a = parser.parse_args(arguments)
    if not a.files:
        sys.exit("no files")
    bad = 0
    for path in a.files:
        reason, detail = check(a.kind, a.compiler, flags, path)
        if a.gate:
            with open(path, encoding="utf-8") as f:
                wanted = re.search(r"^// refused: (.*?)\s*$", f.read(), re.M).group(1)
            print("%s: refused: %s" % (os.path.basename(path), reason))
            if reason != wanted:
                print("  the gate should have refused it: %s" % wanted)
                bad += 1
        elif reason:
            print("%s with %s: %s\n%s" % (path, a.kind, reason, detail))
            bad += 1
    sys.exit(1 if bad else 0)


main()
