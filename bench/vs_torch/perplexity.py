#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPT-2 (6 layers, width 384) on the plays of Shakespeare in GPT-2's tokens, ours over two peers and PyTorch's in one
process: the same initial weights, order of samples, learning rates and AdamW, without dropout. Held-out perplexity within
2 % of PyTorch's after equal steps, for every seed.

    perplexity.py [--steps 100] [--seeds 1,2,3] [--batch 4] [--time 128] [--peers 2]

Text and vocabulary are fetched by pip where they are not yet there. PyTorch also reads our trained weights and must find
the same held-out loss in them: 1e-4."""
import math
import pathlib
import subprocess
import time

import numpy
import side_by_side as beside
import torch

SIX = {"layers": 6, "width": 384, "heads": 6}
RATE, LEAST, WARMUP = 1e-3, 1e-4, 20


def data_folder():
    """Where the text and GPT-2's vocabulary are."""
    setup = str(beside.root / "cmake/setup.sh")
    done = subprocess.run(["sh", "-c", '. "$0" && get_text >&2 && get_gpt2_vocabulary >&2 && echo "$cache_dir"', setup],
                          stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit("perplexity.py: the plays of Shakespeare and GPT-2's vocabulary could not be fetched")
    return pathlib.Path(done.stdout.strip())


def learning_rate(step, steps):
    if step < WARMUP:
        return RATE * (step + 1) / WARMUP
    return LEAST + (RATE - LEAST) * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / max(steps - WARMUP, 1)))


def batches(options, tokens, seed, work):
    """Batches of ours, in its order: those to train on, then the held-out ones."""
    path, count = f"{work}/batches", options.steps + options.validation
    beside.ours(beside.program(options.build, "bench/vs_torch_batches_bench"), tokens, path, options.steps, options.batch, options.time,
                seed, options.validation)
    all = torch.from_numpy(numpy.fromfile(path, dtype=numpy.int32).reshape(count, options.batch, options.time + 1).astype(numpy.int64))
    return [{"tokens": b[:, :-1], "targets": b[:, 1:]} for b in all]


def held_out(model, all):
    model.eval()
    with torch.no_grad():
        return sum(beside.loss_of(model, b).item() for b in all) / len(all)


def pytorch(options, model, all):
    optimizer = beside.adamw(model, RATE)
    for step in range(options.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, options.steps)
        beside.train_step(model, optimizer, all[step])
    return held_out(model, all[options.steps:])


def ours(options, tokens, seed, work):
    """Trains from `initial` over peers. Returns the held-out loss."""
    gpt2, run = beside.program(options.build, "examples/gpt2"), f"{work}/run"
    size = {"batch": options.batch, "time": options.time}
    beside.ours(gpt2, "import", "--overwrite", "--json", model="six", weights=f"{work}/initial.safetensors", run=run, **size)
    beside.ours(gpt2, "local", "--resume", "--quiet", "--json", model="six", run=run, data=tokens, peers=options.peers, compressor="none",
                threads=max(options.threads // options.peers, 1), steps=options.steps, seed=seed, learning_rate=RATE, min_learning_rate=LEAST,
                warmup=WARMUP, validation_batches=0, silence_timeout=120, **size)
    beside.ours(gpt2, "export", "--json", run=run, output=f"{work}/trained.safetensors")
    return beside.ours(gpt2, "evaluate", "--json", run=run, data=tokens, validation_batches=options.validation, threads=options.threads)["loss"]


def main():
    a = beside.arguments(__doc__)
    a.add_argument("--steps", type=int, default=100)
    a.add_argument("--seeds", default="1,2,3")
    a.add_argument("--batch", type=int, default=4)
    a.add_argument("--time", type=int, default=128)
    a.add_argument("--validation", type=int, default=20, help="held-out batches")
    a.add_argument("--peers", type=int, default=2)
    options = a.parse_args()
    torch.set_num_threads(options.threads)
    report = beside.Report(options)
    with beside.folder() as work:
        folder, tokens = data_folder(), f"{work}/shakespeare.tokens"
        gpt2 = beside.program(options.build, "examples/gpt2")
        beside.ours(gpt2, "tokenize", "--json", data=folder / "shakespeare.txt", tokenizer=folder / "gpt2", output=tokens)
        for seed in map(int, options.seeds.split(",")):
            all = batches(options, tokens, seed, work)
            model = beside.gpt2(seed, **SIX)
            beside.save_weights(model, f"{work}/initial.safetensors")
            first = held_out(model, all[options.steps:])
            model.train()
            begin = time.time()
            mine = ours(options, tokens, seed, work)
            between = time.time()
            report.say(f"     seed {seed}: ours has perplexity {math.exp(mine):.2f}, after {between - begin:.0f} s; PyTorch begins")
            theirs = pytorch(options, model, all)
            end = time.time()
            model.load_state_dict({**beside.load_file(f"{work}/trained.safetensors"),
                                   "lm_head.weight": beside.load_file(f"{work}/trained.safetensors")["transformer.wte.weight"]})
            read = held_out(model, all[options.steps:])
            report.keep(f"seed {seed}", {"steps": options.steps, "before": first, "ours": mine, "pytorch": theirs, "ours_read_by_pytorch": read})
            report.check(f"seed {seed}, {options.steps} steps: perplexities' ratio less 1", abs(math.exp(mine - theirs) - 1), 0.02,
                         f"ours {math.exp(mine):.2f}, PyTorch's {math.exp(theirs):.2f}, before {math.exp(first):.0f}"
                         f" ({between - begin:.0f} and {end - between:.0f} s)")
            report.check(f"seed {seed}: the loss that PyTorch finds in our weights, difference", abs(read - mine), 1e-4)
    report.end()


main()
