#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes numbers/images.txt and numbers/image_distances.txt from PyTorch: what the operators on images and two small
residual networks must compute, to fp64, and how far PyTorch's own fp32 is from its fp64 (norm-wise).

    pip install torch --index-url https://download.pytorch.org/whl/cpu && python3 make_images.py

Inputs and parameters are not stored: they are functions of a name's hash and of an element's index (`drawn`), which
images.hpp has too. A line is `case kind name : value...`; kinds are output, cotangent, gradient, statistic.
"""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "numbers")
SMALL = dict(batch=2, channels=4, height=7, width=6)
LARGE = dict(batch=4, channels=32, height=28, width=26)


def drawn(name, shape, seed):
    """Multiples of 2^-24 in [-1/2, 1/2): exact in fp32."""
    h = 2166136261
    for c in name.encode():
        h = (h ^ c) * 16777619 & 0xFFFFFFFF
    x = (torch.arange(torch.Size(shape).numel(), dtype=torch.int64) * 2654435761 + h + seed * 40503) & 0xFFFFFFFF
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = (x ^ x >> shift) * factor & 0xFFFFFFFF
    x ^= x >> 16
    return ((x >> 8).double() / 2**24 - 0.5).reshape(shape)


class Operator(nn.Module):
    """A 1x1 convolution, so that what is tested has an input with a cotangent; then the operator."""

    def __init__(self, channels, op):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 1, bias=False)
        self.conv = op if isinstance(op, nn.Conv2d) else None
        self.bn = op if isinstance(op, nn.BatchNorm2d) else None
        self.op = [op]

    def forward(self, x):
        x = self.first(x)
        return {"x": x, "y": self.op[0](x)}


OPERATORS = {
    "pointwise": lambda c: nn.Conv2d(c, 2 * c, 1),
    "three": lambda c: nn.Conv2d(c, c, 3, padding=1),
    "strided": lambda c: nn.Conv2d(c, 2 * c, 3, stride=2, padding=1, bias=False),
    "strided_pointwise": lambda c: nn.Conv2d(c, 2 * c, 1, stride=2, bias=False),
    "dilated": lambda c: nn.Conv2d(c, c, 3, padding=2, dilation=2, groups=2),
    "depthwise": lambda c: nn.Conv2d(c, c, 3, padding=1, groups=c),
    "seven": lambda c: nn.Conv2d(c, c, 7, stride=2, padding=3, bias=False),
    "batch_norm": nn.BatchNorm2d,
    "max_pool": lambda c: nn.MaxPool2d(3, stride=2, padding=1),
    "average_pool": lambda c: nn.AvgPool2d(3, stride=2, padding=1),
    "global_average_pool": lambda c: nn.AdaptiveAvgPool2d(1),
}


class Block(nn.Module):
    """torchvision's names, and the stride where it has it."""

    def __init__(self, inputs, width, stride, bottleneck):
        super().__init__()
        out = width * (4 if bottleneck else 1)
        shapes = [(inputs, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)] if bottleneck else [
            (inputs, width, 3, stride), (width, width, 3, 1)]
        self.count = len(shapes)
        for i, (a, b, k, s) in enumerate(shapes, 1):
            setattr(self, "conv%d" % i, nn.Conv2d(a, b, k, s, k // 2, bias=False))
            setattr(self, "bn%d" % i, nn.BatchNorm2d(b))
        self.downsample = None
        if stride != 1 or inputs != out:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = x
        for i in range(1, self.count + 1):
            y = getattr(self, "bn%d" % i)(getattr(self, "conv%d" % i)(y))
            if i < self.count:
                y = F.relu(y)
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, blocks, bottleneck, small_stem, width, classes=10):
        super().__init__()
        k, s = (3, 1) if small_stem else (7, 2)
        self.conv1 = nn.Conv2d(3, width, k, s, k // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.pool = nn.Identity() if small_stem else nn.MaxPool2d(3, 2, 1)
        inputs = width
        for i, n in enumerate(blocks):
            layer = []
            for j in range(n):
                layer.append(Block(inputs, width << i, 2 if i and not j else 1, bottleneck))
                inputs = (width << i) * (4 if bottleneck else 1)
            setattr(self, "layer%d" % (i + 1), nn.Sequential(*layer))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        for i in range(1, 5):
            x = getattr(self, "layer%d" % i)(x)
        return self.fc(x.mean((2, 3)))


NETWORKS = {  # name: (network, side); 6 images as two micro-batches of 3
    "basic_blocks": (lambda: ResNet((1, 2, 1, 1), False, True, 8), 16),
    "bottlenecks": (lambda: ResNet((1, 1, 2, 1), True, False, 4), 64),
    "as_deep_as_101": (lambda: ResNet((3, 4, 23, 3), True, False, 4), 64),
}


def start(module, seed, dtype):
    with torch.no_grad():
        for n, p in module.named_parameters():
            scale = 1.0 if p.dim() == 1 else 2.0 / (p[0].numel() ** 0.5)
            p.copy_((1 if p.dim() == 1 and n.endswith("weight") else 0) + scale * drawn(n, p.shape, seed).float())
    return module.to(dtype)


def results_of(module, outputs):
    r = dict(outputs)
    r.update({("gradient", n): p.grad for n, p in module.named_parameters()})
    r.update({("statistic", n): b for n, b in module.named_buffers() if "running" in n})
    return {k: v.detach() for k, v in r.items()}


def operator(name, size, seed, dtype):
    module = start(Operator(size["channels"], OPERATORS[name](size["channels"])), seed, dtype)
    shape = (size["batch"], size["channels"], size["height"], size["width"])
    y = module(2 * drawn("images", shape, seed).to(dtype))
    y["x"].retain_grad()
    loss = F.mse_loss(y["y"], 2 * drawn("target", y["y"].shape, seed).to(dtype))
    loss.backward()
    return results_of(module, {("output", "loss"): loss.reshape(1), ("output", "x"): y["x"], ("output", "y"): y["y"],
                               ("cotangent", "x"): y["x"].grad})


def network(name, seed, dtype):
    make, side = NETWORKS[name]
    module = start(make(), seed, dtype)
    images = 2 * drawn("images", (6, 3, side, side), seed).to(dtype)
    targets = torch.arange(6) * 7 % 10
    losses = 0
    for part in (slice(0, 3), slice(3, 6)):
        loss = F.cross_entropy(module(images[part]), targets[part], reduction="sum") / 6
        loss.backward()
        losses = losses + loss
    return results_of(module, {("output", "loss"): losses.reshape(1)})


def distance(a, b):
    return float((a.double() - b).norm() / b.norm())


def main():
    torch.set_num_threads(1)
    with open(os.path.join(HERE, "images.txt"), "w") as f:
        for name in list(OPERATORS) + list(NETWORKS):
            r = operator(name, SMALL, 1, torch.float64) if name in OPERATORS else network(name, 1, torch.float64)
            for (kind, n), v in r.items():
                v = v.flatten()
                v = v[::max(1, v.numel() // 40)]  # of the larger ones, 40 or a few more
                f.write("%s %s %s : %s\n" % (name, kind, n, " ".join("%.15g" % x for x in v.tolist())))
    with open(os.path.join(HERE, "image_distances.txt"), "w") as f:
        for name in list(OPERATORS) + list(NETWORKS):
            seeds = []
            for seed in range(1, 6):
                run = (lambda d: operator(name, LARGE, seed, d)) if name in OPERATORS else (lambda d: network(name, seed, d))
                exact, single = run(torch.float64), run(torch.float32)
                seeds.append({k: distance(single[k], exact[k]) for k in exact if k[1] != "loss"})
            for k in seeds[0]:
                f.write("%s %s %s %.3g\n" % (name, k[0], k[1], sorted(s[k] for s in seeds)[2]))


main()
