#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_tokens.py GPT2_FOLDER SHAKESPEARE: writes tokens/: a page of hostile text, a small byte-level vocabulary in both forms
of file, and the ids that tiktoken gives with it and with GPT-2's own.

    pip install tiktoken tokenizers && python3 make_tokens.py ~/.cache/fusionllm/gpt2 ~/.cache/fusionllm/shakespeare.txt

page.txt     the text, UTF-8          small/       vocab.json and merges.txt, and tokenizer.json
ids.txt      a line each: small, small_special (special tokens allowed), gpt2, then `gpt2_shakespeare COUNT SUM`, where SUM is
             that of (position + 1) * id, modulo 2^64
"""
import json
import os
import random
import sys

import tiktoken
import tokenizers
from tiktoken.load import data_gym_to_mergeable_bpe_ranks

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokens")
PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
END = "<|endoftext|>"
PARTS = ["a", "the", " the", "Nay", "I", " ", "  ", "\n", "\r\n", "\t", "\v\f", "'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S",
         "\u2019s", "'", "''", "1", " 23", "00", "\u00bd", "\u0663", "\u2167", "\u00e9", "e\u0301", "\u0301", "\u4e2d\u6587",
         " \u65e5\u672c", "\u0639\u0631\u0628", "\u05e9\u05dc\u05d5\u05dd", "\u00a0", "\u200b", "\u200d", "\u200e", "\u202e", "\ufeff",
         "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f", "\u3000", "\u0085", "\x1c", "\x00", "\x7f",
         "\u2028", "!", "...", " (", "_", "-", END, "<|", "\u01c5", "\U0001e900", "\ufdfa", "\ufffd", "\ue000", "\U0010ffff", "\u0e01\u0e33",
         "\u0915\u094d\u0937", "\uac00", "\u1100\u1161", "\ufb01", "\u2126", "\u0130", "\u00df", "\U0001d54f", "\u4dc0", "\u3007", "\u2460"]


def page():
    r = random.Random(4)
    lines = ["To be, or not to be: that is the question:", "I'm sure we'll say they've won; she'd've known it's theirs, don't you?",
             "DON'T SHOUT, IT'S RUDE", " ", "", "   indented   text   ", "\ttabs\tand  \t mixed", "a" * 300, "ab" * 150, "1234567890" * 40,
             " " * 100 + "x" + " " * 65, "\n" * 70 + "end of lines", "=" * 130, "naive na\u00efve nai\u0308ve", "x\u00a0y\u00a0\u00a0z",
             "".join(chr(c) for c in range(256)), "".join(chr(0x4e00 + r.randrange(20000)) for _ in range(120)),
             "".join(chr(r.choice((0x300, 0x41, 0x5d0, 0x627)) + r.randrange(20)) for _ in range(200)), END + END + " " + END]
    lines += ["".join(r.choice(PARTS) for _ in range(30)) for _ in range(60)]
    text = "".join(line + r.choice(("\n", "\r\n", "\n\n", " \n", "")) for line in lines)
    while len(text) < 6000:
        c = r.randrange(0x110000)
        text += chr(c) if not 0xD800 <= c < 0xE000 else " "
    return text


def small(text, shakespeare):
    """Trains a vocabulary of 1,200 tokens and writes it in both forms."""
    t = tokenizers.Tokenizer(tokenizers.models.BPE())
    t.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=1200, special_tokens=[END], show_progress=False,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    t.train_from_iterator([shakespeare[:500_000], text * 8], trainer)
    folder = os.path.join(HERE, "small")
    os.makedirs(folder, exist_ok=True)
    t.model.save(folder)
    t.save(os.path.join(folder, "tokenizer.json"), pretty=False)
    with open(os.path.join(folder, "vocab.json"), encoding="utf-8") as f:
        vocabulary = json.load(f)
    characters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    of_symbol = {chr(b): b for b in own}
    of_symbol.update({chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in own)})
    assert sorted(of_symbol) == sorted(characters)
    ranks = {bytes(of_symbol[c] for c in token): i for token, i in vocabulary.items() if token != END}
    return t, tiktoken.Encoding("small", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={END: vocabulary[END]})


def main():
    gpt2_folder, plays = sys.argv[1:]
    with open(plays, encoding="utf-8", newline="") as f:
        shakespeare = f.read()
    text = page()
    os.makedirs(HERE, exist_ok=True)
    with open(os.path.join(HERE, "page.txt"), "wb") as f:
        f.write(text.encode())
    theirs, encoding = small(text, shakespeare)
    ranks = data_gym_to_mergeable_bpe_ranks(os.path.join(gpt2_folder, "vocab.bpe"), os.path.join(gpt2_folder, "encoder.json"))
    gpt2 = tiktoken.Encoding("gpt2", explicit_n_vocab=50257, pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={END: 50256})
    if encoding.encode(text, allowed_special="all") != theirs.encode(text).ids:
        print("tokenizers and tiktoken differ on the page (their versions of Unicode may)")
    all_plays = gpt2.encode_ordinary(shakespeare)
    with open(os.path.join(HERE, "ids.txt"), "w") as f:
        print("small", *encoding.encode_ordinary(text), file=f)
        print("small_special", *encoding.encode(text, allowed_special="all"), file=f)
        print("gpt2", *gpt2.encode_ordinary(text), file=f)
        print("gpt2_shakespeare", len(all_plays), sum((i + 1) * t for i, t in enumerate(all_plays)) % 2**64, file=f)
    print("%d characters, %d bytes" % (len(text), len(text.encode())))


main()
