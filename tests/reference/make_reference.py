#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes numbers/*.txt from PyTorch: what the operators of models.hpp must compute, to fp64, and how far PyTorch's own
fp32 is from its fp64 (norm-wise), which is the measure for other fp32 devices.

    pip install torch --index-url https://download.pytorch.org/whl/cpu && python3 make_reference.py

A line of a case is `kind name extent... : value...`; kinds are input, integers, parameter, output, gradient.
"""
import math
import os

import torch
import torch.nn.functional as F

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "numbers")
SMALL = dict(batch=2, time=5, features=6, heads=2, kv_heads=1, turning=2, rows=7, positions=9)
LARGE = dict(batch=4, time=64, features=96, heads=6, kv_heads=2, turning=16, rows=256, positions=64)
IGNORED = 2


def attention(x, p, size, kv_heads=None):
    """Causal multi-head attention by its definition, so that no fused kernel stands between us and the numbers."""
    b, t, f = x.shape
    width = f // size["heads"]
    qkv = F.linear(x, p["c_attn.weight"], p["c_attn.bias"])
    shared = width * (kv_heads or size["heads"])
    q, k, v = (z.view(b, t, -1, width).transpose(1, 2) for z in qkv.split([f, shared, shared], dim=2))
    k, v = (z.repeat_interleave(q.shape[1] // z.shape[1], dim=1) for z in (k, v))
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    s = s.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
    y = (s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, f)
    return F.linear(y, p["c_proj.weight"], p["c_proj.bias"])


def rotary(x, width):
    """Llama's rotary positions: each half of a head's features turns with the other."""
    b, t, f = x.shape
    angles = torch.arange(t, dtype=x.dtype)[:, None] * 10000.0 ** (-torch.arange(0, width, 2, dtype=x.dtype) / width)
    cosine, sine = (z.repeat(1, 2)[:, None, :] for z in (angles.cos(), angles.sin()))  # (time, 1, width)
    heads = x.view(b, t, -1, width)
    first, second = heads.chunk(2, dim=-1)
    return (heads * cosine + torch.cat((-second, first), dim=-1) * sine).reshape(b, t, f)


def attention_parameters(kv_heads):
    def parameters(s):
        out = s["features"] + 2 * s["features"] // s["heads"] * s[kv_heads]
        return {"c_attn.weight": (out, s["features"]), "c_attn.bias": (out,),
                "c_proj.weight": (s["features"], s["features"]), "c_proj.bias": (s["features"],)}
    return parameters


def linear(out, bias=True, name="linear"):
    def parameters(s):
        own = {name + ".weight": (out(s), s["features"])}
        if bias:
            own[name + ".bias"] = (out(s),)
        return own
    return parameters


def same(s):
    return s["features"]


CASES = {  # name: (parameters, y of x)
    "linear": (linear(same), lambda x, p, s: F.linear(x, p["linear.weight"], p["linear.bias"])),
    "linear_without_bias": (linear(same, bias=False), lambda x, p, s: F.linear(x, p["linear.weight"])),
    "layer_norm": (lambda s: {"ln.weight": (s["features"],), "ln.bias": (s["features"],)},
                   lambda x, p, s: F.layer_norm(x, x.shape[-1:], p["ln.weight"], p["ln.bias"], 1e-5)),
    "attention": (attention_parameters("heads"), attention),
    "gelu": (lambda s: {}, lambda x, p, s: F.gelu(x, approximate="tanh")),
    "relu": (lambda s: {}, lambda x, p, s: F.relu(x)),
    "add": (linear(same), lambda x, p, s: F.linear(x, p["linear.weight"], p["linear.bias"]) + x),
    "multiply": (linear(same), lambda x, p, s: F.linear(x, p["linear.weight"], p["linear.bias"]) * x),
    "subtract": (linear(same), lambda x, p, s: F.linear(x, p["linear.weight"], p["linear.bias"]) - x),
    "divide": (lambda s: {}, lambda x, p, s: x / (x * 0.37).softmax(-1)),
    "scale": (lambda s: {}, lambda x, p, s: x * 0.37),
    "silu": (lambda s: {}, lambda x, p, s: F.silu(x)),
    "softmax": (lambda s: {}, lambda x, p, s: x.softmax(-1)),
    "mean": (lambda s: {}, lambda x, p, s: torch.cat((x.mean(-1, keepdim=True), x[..., 1:] * 1.0), dim=-1)),
    "rms_norm": (lambda s: {"norm.weight": (s["features"],)},
                 lambda x, p, s: F.rms_norm(x, x.shape[-1:], p["norm.weight"], 1e-5)),
    "rotary": (lambda s: {}, lambda x, p, s: rotary(x, s["turning"])),
    "transpose": (lambda s: {}, lambda x, p, s: x.transpose(1, 2).softmax(-1).transpose(1, 2)),
    "grouped_attention": (attention_parameters("kv_heads"), lambda x, p, s: attention(x, p, s, s["kv_heads"])),
}


def draw(shape, generator, deviation):
    return torch.randn(shape, generator=generator) * deviation


def regression(name, size, seed):
    """Inputs and parameters, and a function from them to (outputs, loss)."""
    g = torch.Generator().manual_seed(seed)
    shape = (size["batch"], size["time"], size["features"])
    tensors = {("input", "x"): draw(shape, g, 1.0), ("input", "target"): draw(shape, g, 1.0),
               ("parameter", "wpe.weight"): draw((size["positions"], size["features"]), g, 0.5)}
    parameters, y_of = CASES[name]
    for n, dims in parameters(size).items():
        tensors["parameter", n] = draw(dims, g, 0.5)

    def run(t):
        p = {n: v for (kind, n), v in t.items() if kind == "parameter"}
        x = t["input", "x"] + p["wpe.weight"][:size["time"]]
        y = y_of(x, p, size)
        return {"x": x, "y": y}, F.mse_loss(y, t["input", "target"])
    return tensors, run


def language(size, seed, smoothing):
    g = torch.Generator().manual_seed(seed)
    shape = (size["batch"], size["time"])
    tensors = {("integers", "tokens"): torch.randint(size["rows"], shape, generator=g),
               ("integers", "targets"): torch.randint(size["rows"], shape, generator=g),
               ("parameter", "table"): draw((size["rows"], size["features"]), g, 0.5),
               ("parameter", "wpe.weight"): draw((size["positions"], size["features"]), g, 0.5)}

    def run(t):
        x = F.embedding(t["integers", "tokens"], t["parameter", "table"]) + t["parameter", "wpe.weight"][:size["time"]]
        logits = F.linear(x, t["parameter", "table"])
        loss = F.cross_entropy(logits.flatten(0, 1), t["integers", "targets"].flatten(), ignore_index=IGNORED,
                               label_smoothing=smoothing)
        return {"x": x, "y": logits}, loss
    return tensors, run


def case(name, size, seed):
    smoothing = {"language": 0.0, "language_smoothed": 0.1}
    return language(size, seed, smoothing[name]) if name in smoothing else regression(name, size, seed)


def compute(name, size, seed, dtype):
    tensors, run = case(name, size, seed)
    tensors = {k: v if k[0] == "integers" else v.to(dtype).requires_grad_(k[0] == "parameter") for k, v in tensors.items()}
    outputs, loss = run(tensors)
    outputs["x"].retain_grad()
    loss.backward()
    results = {("output", "loss"): loss.reshape(1)}
    results.update({("output", n): v for n, v in outputs.items()})
    results["cotangent", "x"] = outputs["x"].grad
    results.update({("gradient", n): v.grad for (kind, n), v in tensors.items() if kind == "parameter"})
    return tensors, {k: v.detach() for k, v in results.items()}


def distance(a, b):
    return float((a.double() - b).norm() / b.norm())


def main():
    os.makedirs(HERE, exist_ok=True)
    torch.set_num_threads(2)
    names = list(CASES) + ["language", "language_smoothed"]
    for name in names:
        tensors, results = compute(name, SMALL, 1, torch.float64)
        with open(os.path.join(HERE, name + ".txt"), "w") as f:
            for (kind, n), v in list(tensors.items()) + list(results.items()):
                # Inputs are exact in fp32 and short; results have the 17 digits of fp64.
                form = "%d" if kind == "integers" else "%.9g" if (kind, n) in tensors else "%.17g"
                values = " ".join(form % x for x in v.detach().flatten().tolist())
                f.write("%s %s %s : %s\n" % (kind, n, " ".join(map(str, v.shape)), values))
    with open(os.path.join(HERE, "distances.txt"), "w") as f:
        for name in names:
            seeds = []
            for seed in range(5):
                exact, single = compute(name, LARGE, seed, torch.float64)[1], compute(name, LARGE, seed, torch.float32)[1]
                seeds.append({k: distance(single[k], exact[k]) for k in exact if k != ("output", "loss")})
            for k in seeds[0]:
                f.write("%s %s %s %.3g\n" % (name, k[0], k[1], sorted(s[k] for s in seeds)[2]))


main()
