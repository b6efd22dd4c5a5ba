#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""unicode_ranges.py [OUTPUT]: writes include/fusionllm/trainer/bpe_unicode_ranges.hpp, the letters, numbers and white
space of Unicode.

    pip install unicodedata2==16.0.0 && python3 cmake/unicode_ranges.py

With tiktoken installed too, the result is compared with the classes that its own regular expressions see.
"""
import os
import sys

import unicodedata2 as unicode

OUTPUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../include/fusionllm/trainer/bpe_unicode_ranges.hpp")
OTHER, LETTER, NUMBER, SPACE = range(4)
WHITE_SPACE = {*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
HEAD = """// SPDX-License-Identifier: Apache-2.0
// Letters (general categories L*), numbers (N*) and white space of Unicode %s, made by cmake/unicode_ranges.py: where a run
// of code points of one class begins, times four, plus the class (0: another, 1: letter, 2: number, 3: white space).
#pragma once

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

namespace detail {

inline constexpr u32 unicode_ranges[] = {
%s
};

}  // namespace detail

}  // namespace fusionllm::inline v0
"""


def class_of(point):
    if point in WHITE_SPACE:
        return SPACE
    return {"L": LETTER, "N": NUMBER}.get(unicode.category(chr(point))[0], OTHER)


def compare(classes):
    try:
        import tiktoken
    except ImportError:
        print("tiktoken is not installed: not compared")
        return
    points = [p for p in range(0x110000) if not 0xD800 <= p < 0xE000]
    for pattern, wanted in ((r"\p{L}", LETTER), (r"\p{N}", NUMBER), (r"\s", SPACE)):
        seen = tiktoken.Encoding("class", pat_str=pattern, mergeable_ranks={bytes([i]): i for i in range(256)}, special_tokens={})
        text = "".join(chr(p) for p in points)
        parts = [seen.decode(seen.encode_ordinary(text[i:i + 4096])) for i in range(0, len(text), 4096)]
        if set("".join(parts)) != {chr(p) for p in points if classes[p] == wanted}:
            sys.exit("tiktoken sees %s otherwise" % pattern)
    print("tiktoken sees the same")


classes = [class_of(p) for p in range(0x110000)]
begins = [p for p in range(0x110000) if p == 0 or classes[p] != classes[p - 1]]
lines, line = [], "   "
for b in begins:
    word = " 0x%X," % (b * 4 + classes[b])
    if len(line + word) > 120:
        lines.append(line)
        line = "   "
    line += word
lines.append(line)
compare(classes)
with open(sys.argv[1] if len(sys.argv) > 1 else OUTPUT, "w") as f:
    f.write(HEAD % (unicode.unidata_version, "\n".join(lines)))
print("%d runs of Unicode %s" % (len(begins), unicode.unidata_version))
