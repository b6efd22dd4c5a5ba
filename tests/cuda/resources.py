#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds kernels to their budget: registers, stack and shared memory as stored, and no spills at all.

    resources.py BUDGET OBJECTS...            exit status 1, and a line for each kernel that takes more than BUDGET says
    resources.py --write BUDGET OBJECTS...    stores what is measured

Beside an object lies OBJECT.report, what `nvcc -Xptxas=-v` printed (keep_report.sh). The budget holds for the nvcc that
its first line names; with another one only spills are looked for. Of a kernel's instances and architectures the largest
numbers count. CUB's kernels are CUB's affair.
"""
import os
import re
import subprocess
import sys

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


def short(name):
    """A demangled kernel as its readers call it: chains by their operators."""
    name = re.sub(r"fusionllm::v0::|detail::|^void ", "", name)
    chain = re.match(r"chain_\w+", name)
    if chain:
        element = re.search(r"chain_body<(\w+)", name)
        links = re.findall(r"scalar_of<(\w+)_op\b", name)  # each is named as a template's argument and in its type
        return "%s<%s: %s>" % (chain.group(), element.group(1) if element else "?", ", ".join(links[:len(links) // 2]))
    depth, end = 0, len(name)
    for i, c in enumerate(name):  # up to the parameters
        depth += (c == "<") - (c == ">")
        if c == "(" and depth == 0:
            end = i
            break
    return name[:end]


def measured(objects):
    """{kernel: [registers, stack, shared]}, and lines about spills."""
    entries = []
    for path in objects:
        with open(path + ".report", encoding="utf-8", errors="replace") as f:
            for line in f:
                if m := ENTRY.search(line):
                    entries.append({"name": m.group(1), "for": m.group(2), "stack": 0, "spills": 0, "registers": 0, "shared": 0})
                elif entries and (m := FRAME.search(line)):
                    entries[-1].update(stack=int(m.group(1)), spills=int(m.group(2)) + int(m.group(3)))
                elif entries and (m := USED.search(line)):
                    shared = SHARED.search(line)
                    entries[-1].update(registers=int(m.group(1)), shared=int(shared.group(1)) if shared else 0)
    names = subprocess.run(["c++filt"], input="\n".join(e["name"] for e in entries), text=True, check=True,
                           stdout=subprocess.PIPE).stdout.split("\n")
    kernels, spills = {}, []
    for e, name in zip(entries, names):
        if "fusionllm::v0::" not in name.split("(")[0] or "cub::" in name.split("<")[0]:
            continue
        kernel = short(name)
        most = kernels.setdefault(kernel, [0, 0, 0])
        kernels[kernel] = [max(a, e[k]) for a, k in zip(most, ("registers", "stack", "shared"))]
        if e["spills"]:
            spills.append("%s for %s: %d bytes of registers spilled" % (kernel, e["for"], e["spills"]))
    return kernels, spills


def main():
    arguments = sys.argv[1:]
    write = arguments[:1] == ["--write"]
    budget, *objects = arguments[write:]
    compiler = os.environ.get("NVCC", "nvcc")
    release = re.search(r"V[\d.]+", subprocess.run([compiler, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout)
    kernels, wrong = measured(objects)
    if not kernels:
        sys.exit("no kernels in %s" % (objects or "no objects"))
    if write:
        with open(budget, "w", encoding="utf-8") as f:
            f.write("nvcc %s: registers, bytes of stack, bytes of shared memory\n" % release.group())
            f.writelines("%3d %4d %6d  %s\n" % (*used, name) for name, used in sorted(kernels.items()))
    with open(budget, encoding="utf-8") as f:
        head, *lines = f.read().splitlines()
    if head.split()[1].rstrip(":") != release.group():
        print("the budget is of %s, this is nvcc %s: only spills are checked" % (head.split(":")[0], release.group()))
    else:
        allowed = {line[17:]: [int(x) for x in line.split()[:3]] for line in lines}
        for name, used in sorted(kernels.items()):
            if name not in allowed:
                wrong.append("%s has no budget; resources.py --write gives it %s" % (name, used))
            elif any(u > a for u, a in zip(used, allowed[name])):
                wrong.append("%s takes %s registers, stack, shared memory; its budget is %s" % (name, used, allowed[name]))
    print("\n".join(wrong + ["%d kernels, %d over their budget" % (len(kernels), len(wrong))]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
