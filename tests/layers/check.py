#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks headers against the order of layers and the house rules that a script can see.

check.py INCLUDE_ROOT         prints each fault and ends with 1 if there is any
check.py --gate INCLUDE_ROOT  each line marked `// fault: TEXT` must be reported with TEXT, and no other line
"""
import os
import re
import sys

LAYERS = ["core", "graph", "ops", "models", "device", "estimate", "compress", "schedule", "simulate", "transport",
          "runtime", "cluster", "trainer", "run"]
# Which headers of others may be included where: (pattern of the include, pattern of the file, in words).
ONLY_IN = [
    (r"(oneapi/)?dnnl", r"device/cpu", "oneDNN belongs to device/cpu"),
    (r"asio", r"transport/asio", "Asio belongs to transport/asio*"),
    (r"cereal/", r"cluster/", "cereal belongs to cluster/"),
    (r"(cuda|cublas|cub/|thrust/|device_launch)", r"device/cuda", "CUDA belongs to kernels/ and device/cuda"),
]
HEAVY = {"iostream", "regex", "filesystem", "ranges"}
HEAVY_FREE = {"core", "graph", "ops"}


def layer_of(path):
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else None


def faults_of(root, path):
    """Yields (line number, text) for the header root/path."""
    with open(os.path.join(root, path), encoding="utf-8") as f:
        lines = f.read().splitlines()
    mine = layer_of(path)
    if mine is not None and mine not in LAYERS:
        yield 1, "the layer %s is not one of %s" % (mine, ", ".join(LAYERS))
        return
    if not lines or "SPDX-License-Identifier: Apache-2.0" not in lines[0]:
        yield 1, "the first line is not the SPDX licence line"
    if "#pragma once" not in lines:
        yield 1, "no #pragma once"
    for number, line in enumerate(lines, 1):
        code = line.split("//")[0]
        if re.match(r"\s*#\s*define\b(?! (XXH|ASIO|CEREAL|JSON)_)", code) and path != "fusionllm/core/config.hpp":
            yield number, "a macro outside core/config.hpp"
        if "__has_include" in code:
            yield number, "__has_include: a type must not depend on what is installed"
        if re.match(r"\s*namespace\s*(\{|$)", code):
            yield number, "an anonymous namespace in a header"
        found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', code)
        if not found:
            continue
        own = found.group(1) == '"' or found.group(2).startswith("fusionllm/")
        if not own:
            name = found.group(2)
            for include, where, words in ONLY_IN:
                if re.match(include, name) and not re.match("fusionllm/" + where, path):
                    yield number, words
            if name in HEAVY and mine in HEAVY_FREE:
                yield number, "<%s> is too heavy for a model declaration" % name
            continue
        if found.group(1) == "<":
            yield number, "an include of the library by <>, expected a relative path"
            target = found.group(2)
        else:
            target = os.path.normpath(os.path.join(os.path.dirname(path), found.group(2)))
        if not os.path.exists(os.path.join(root, target)):
            yield number, "includes %s, which does not exist" % target
        other = layer_of(target)
        if mine is None:
            continue
        if other is None:
            yield number, "a layer includes the umbrella"
        elif other in LAYERS and LAYERS.index(other) > LAYERS.index(mine):
            yield number, "%s includes %s, which comes after it" % (mine, other)


def headers(root):
    for folder, _, files in sorted(os.walk(root)):
        for name in sorted(files):
            if name.endswith(".hpp"):
                yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


def main():
    gate = "--gate" in sys.argv
    root = sys.argv[-1]
    bad = count = 0
    for path in headers(root):
        count += 1
        found = list(faults_of(root, path))
        if not gate:
            for number, text in found:
                print("%s:%d: %s" % (path, number, text))
            bad += len(found)
            continue
        with open(os.path.join(root, path), encoding="utf-8") as f:
            marked = {(n, line.split("// fault: ")[1]) for n, line in enumerate(f.read().splitlines(), 1)
                      if "// fault: " in line}
        for number, text in set(found) ^ marked:
            print("%s:%d: %s: %s" % (path, number, "not found" if (number, text) in marked else "not a fault", text))
            bad += 1
        if not marked and path.split("/")[-1] != "right.hpp":
            print("%s: a sample without a fault" % path)
            bad += 1
    if count == 0:
        print("no headers under", root)
        bad = 1
    print("%d headers, %d faults" % (count, bad))
    sys.exit(1 if bad else 0)


main()
