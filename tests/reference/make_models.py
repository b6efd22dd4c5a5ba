#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes numbers/gpt2.txt and numbers/llama.txt: loss, logits and every gradient of the first step of a small GPT-2 (2
layers, width 32, 61 tokens, 9 of 16 positions) and a smaller Llama; and numbers/trained.txt: losses and weights of five
steps of AdamW on a GPT-2 of one layer. All in fp64, from transformers on PyTorch.

    pip install torch transformers && python3 make_models.py

Weights and data are not stored: they are functions of a parameter's position in alphabetical order and of the
element's index (`drawn`), which drawn.hpp has too. Results have 7 digits; matrices are (out, in).
"""
import os

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "numbers")
TOKENS, BATCH, TIME, IGNORED = 61, 3, 9, -100


def mixed(stream, count):
    """32 random bits for each of `count` indices."""
    x = (torch.arange(count, dtype=torch.int64) + stream * 1000003) & 0xFFFFFFFF
    x ^= x >> 16
    x = x * 0x7FEB352D & 0xFFFFFFFF
    x ^= x >> 15
    x = x * 0x846CA68B & 0xFFFFFFFF
    return x ^ x >> 16


def drawn(stream, shape):
    """Multiples of 2^-24 in [-1/2, 1/2): exact in fp32."""
    count = torch.Size(shape).numel()
    return ((mixed(stream, count) >> 8).double() / 2**24 - 0.5).reshape(shape)


def is_matrix_of_conv1d(model, name):
    return isinstance(model, GPT2LMHeadModel) and name.endswith("weight") and any(
        s in name for s in ("c_attn", "c_proj", "c_fc"))


def start(model):
    """Draws all parameters; returns them by name."""
    tied = isinstance(model, GPT2LMHeadModel)
    parameters = {n.removeprefix("transformer."): p for n, p in model.named_parameters()
                  if not (tied and n == "lm_head.weight")}
    with torch.no_grad():
        for stream, name in enumerate(sorted(parameters)):
            p = parameters[name]
            if is_matrix_of_conv1d(model, name):
                p.copy_(drawn(stream, p.t().shape).t() * 0.5)
            elif ("ln_" in name or "norm" in name) and name.endswith("weight"):
                p.copy_(1 + drawn(stream, p.shape) * 0.5)
            else:
                p.copy_(drawn(stream, p.shape) * 0.5)
    return parameters


def loss_of(logits, targets):
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)


def write(file, results):
    with open(os.path.join(HERE, file), "w") as f:
        for kind, name, v in results:
            values = " ".join("%.7g" % x for x in v.flatten().tolist())
            f.write("%s %s %s : %s\n" % (kind, name, " ".join(map(str, v.shape)), values))


def first_step(model, file):
    model = model.double()
    parameters = start(model)
    tokens = (mixed(100, BATCH * TIME) % TOKENS).reshape(BATCH, TIME)
    targets = (mixed(101, BATCH * TIME) % TOKENS).reshape(BATCH, TIME)
    targets[1, 4:6] = IGNORED
    logits = model(tokens).logits
    loss = loss_of(logits, targets)
    loss.backward()
    results = [("output", "loss", loss.detach().reshape(1)), ("output", "logits", logits.detach())]
    for name in sorted(parameters):
        gradient = parameters[name].grad
        results.append(("gradient", name, gradient.t() if is_matrix_of_conv1d(model, name) else gradient))
    write(file, results)


def train(model, file, rows=6):
    model = model.double()
    parameters = start(model)
    groups = [{"params": [p for p in parameters.values() if p.dim() > 1], "weight_decay": 0.1},
              {"params": [p for p in parameters.values() if p.dim() == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95), eps=1e-8)
    losses = []
    for step in range(5):
        tokens = (mixed(200 + step, rows * TIME) % TOKENS).reshape(rows, TIME)
        targets = (mixed(300 + step, rows * TIME) % TOKENS).reshape(rows, TIME)
        targets.view(-1)[::7] = IGNORED
        optimizer.zero_grad()
        loss = loss_of(model(tokens).logits, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters.values(), 0.5)
        optimizer.step()
        losses.append(loss.detach())
    weights = [("weight", n, p.detach().t() if is_matrix_of_conv1d(model, n) else p.detach())
               for n, p in sorted(parameters.items())]
    write(file, [("output", "losses", torch.stack(losses))] + weights)


def main():
    torch.set_num_threads(1)
    first_step(GPT2LMHeadModel(GPT2Config(
        vocab_size=TOKENS, n_positions=16, n_embd=32, n_layer=2, n_head=4, activation_function="gelu_new",
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, layer_norm_epsilon=1e-5, bos_token_id=0, eos_token_id=0,
        attn_implementation="eager")), "gpt2.txt")
    first_step(LlamaForCausalLM(LlamaConfig(
        vocab_size=TOKENS, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=40, rms_norm_eps=1e-5, max_position_embeddings=16, tie_word_embeddings=False,
        bos_token_id=0, eos_token_id=0, attn_implementation="eager")), "llama.txt")
    train(GPT2LMHeadModel(GPT2Config(
        vocab_size=TOKENS, n_positions=16, n_embd=16, n_layer=1, n_head=2, activation_function="gelu_new",
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, layer_norm_epsilon=1e-5, bos_token_id=0, eos_token_id=0,
        attn_implementation="eager")), "trained.txt")


main()
