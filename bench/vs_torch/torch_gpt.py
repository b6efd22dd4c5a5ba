#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the small GPT of this bench with PyTorch, eager, fp32: pre-norm blocks, tanh gelu, tied head, no dropout, AdamW
with decay on matrices and embeddings only, clipping of the global norm, scaled_dot_product_attention.

torch_gpt.py [--threads 2] [--warm-up 3] [--steps 10] prints one JSON line: tokens per second by the median step.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, WIDTH, HEADS, VOCABULARY, BATCH, TIME = 4, 256, 4, 256, 16, 128


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.c_fc, self.mlp_proj = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, HEADS, c // HEADS).transpose(1, 2) for y in self.c_attn(self.ln_1(x)).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(TIME, WIDTH)
        self.blocks, self.ln_f = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.ln_f(x) @ self.wte.weight.T
        return F.cross_entropy(logits.view(-1, VOCABULARY), targets.reshape(-1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    model = Gpt()
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                                  lr=3e-4, betas=(0.9, 0.95))
    seconds, cpu_seconds, loss = [], [], None
    for step in range(options.warm_up + options.steps):
        data = torch.randint(0, VOCABULARY, (BATCH, TIME + 1))
        begin, cpu_begin = time.perf_counter(), time.process_time()
        loss = model(data[:, :-1], data[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        value = loss.item()
        if step >= options.warm_up:
            seconds.append(time.perf_counter() - begin)
            cpu_seconds.append(time.process_time() - cpu_begin)
    print(json.dumps({"who": "pytorch " + torch.__version__, "threads": options.threads, "loss": value,
                      "seconds": statistics.median(seconds), "tokens_per_s": BATCH * TIME / statistics.median(seconds),
                      "cpu_seconds": statistics.median(cpu_seconds), "least_cpu_seconds": min(cpu_seconds)}))


main()
