#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peak resident memory of steps of GPT-2 small in fp32, ours and PyTorch's (transformers, eager, AdamW), each in a process
of its own, less the 16 bytes a parameter that weights, gradients and AdamW's two moments must have. Ours at most half.

    memory.py [--batch 4] [--time 256] [--steps 3]

Peaks are VmHWM, the kernel's own mark. They hold what each process had before its model: the second table is without it."""
import json
import subprocess
import sys

import side_by_side as beside

MIB = 1 << 20


def pytorch(options):
    """What the process under `memory.py --pytorch` does: the usual loop."""
    import time

    import torch
    torch.set_num_threads(options.threads)
    before = beside.status_kib("VmRSS")
    model = beside.gpt2()
    optimizer = beside.adamw(model, 3e-4)
    seconds = []
    for _ in range(options.steps):
        batch = {k: torch.randint(0, 50257, (options.batch, options.time)) for k in ("tokens", "targets")}
        begin = time.perf_counter()
        beside.train_step(model, optimizer, batch)
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"parameters": sum(p.numel() for p in model.parameters()), "seconds": seconds,
                      "resident_before_kib": before, "peak_kib": beside.status_kib("VmHWM")}))


def main():
    a = beside.arguments(__doc__)
    a.add_argument("--batch", type=int, default=4)
    a.add_argument("--time", type=int, default=256)
    a.add_argument("--steps", type=int, default=3)
    a.add_argument("--recompute", default="none,selective,block", help="ours is run with each; all have the bar")
    a.add_argument("--pytorch", action="store_true", help="only PyTorch's side, in this process")
    options = a.parse_args()
    if options.pytorch:
        return pytorch(options)
    report = beside.Report(options)
    sizes = {"batch": options.batch, "time": options.time, "steps": options.steps, "threads": options.threads}
    words = [w for k, v in sizes.items() for w in ("--" + k, str(v))]
    runs = {"PyTorch": json.loads(subprocess.run([sys.executable, __file__, "--pytorch", *words], check=True, stdout=subprocess.PIPE).stdout)}
    for policy in options.recompute.split(","):
        runs["ours, recompute " + policy] = beside.steps(options.build, "gpt2_small", recompute=policy, **sizes)
    report.say(f"GPT-2 small, {options.batch} x {options.time} tokens, {options.steps} steps; MiB")
    report.say(f"{'':28}{'peak':>8}{'less 16 B a parameter':>24}{'before the model':>18}{'less both':>11}{'s a step':>10}")
    for r in runs.values():
        states = 16 * r["parameters"] / MIB
        r["peak"], r["before"] = r["peak_kib"] / 1024, r["resident_before_kib"] / 1024
        r["rest"], r["own"] = r["peak"] - states, r["peak"] - r["before"] - states
    for name, r in runs.items():
        report.keep(name, r)
        report.say(f"{name:28}{r['peak']:8.0f}{r['rest']:24.0f}{r['before']:18.0f}{r['own']:11.0f}{min(r['seconds']):10.2f}")
    theirs = runs.pop("PyTorch")
    for name, r in runs.items():
        report.check(f"{name}, over PyTorch's", r["rest"] / theirs["rest"], 0.5, f"{r['own'] / theirs['own']:.2f} less what was there before")
    report.end()


main()
