# SPDX-License-Identifier: Apache-2.0
"""What the comparisons of this folder share: PyTorch and its packages, our programs, weights that both read, and bars."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent.parent
try:
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
    from torch.nn import functional as F
except ImportError as why:
    print(f"{sys.argv[0]}: {why}. In a virtual environment: pip install torch transformers safetensors", file=sys.stderr)
    sys.exit(2)


def arguments(about):
    """The options that every comparison has."""
    a = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--build", type=pathlib.Path, default=root / "build/bench", help="where our programs were built")
    a.add_argument("--threads", type=int, default=2, help="of either side")
    a.add_argument("--json", action="store_true", help="results as JSON on stdout, all else on stderr")
    return a


def program(build, *names):
    """The first of the names in the build folder."""
    for name in names:
        if (build / name).exists():
            return build / name
    print(f"{sys.argv[0]}: {build / names[0]} is not there: cmake --preset bench -B {build} && cmake --build {build} --target "
          + pathlib.Path(names[0]).name, file=sys.stderr)
    sys.exit(2)


def ours(path, *words, **keys):
    """What one of our programs says, JSON on its last line."""
    command = [str(path), *map(str, words), *(str(x) for k, v in keys.items() for x in ("--" + k, v))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"{sys.argv[0]}: `{' '.join(command)}` ended with status {done.returncode}", file=sys.stderr)
        sys.exit(2)
    return json.loads(done.stdout) if done.stdout.strip() else {}


def steps(build, model, **keys):
    """Runs vs_torch_steps_bench."""
    return ours(program(build, "bench/vs_torch_steps_bench"), model, **keys)


def gpt2(seed=1, layers=12, width=768, heads=12, vocabulary=50257, positions=1024):
    """transformers' GPT-2 with its random weights, without dropout; the default is GPT-2 small."""
    torch.manual_seed(seed)
    transformers.logging.set_verbosity_error()
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=layers, n_embd=width, n_head=heads, vocab_size=vocabulary, n_positions=positions, use_cache=False, resid_pdrop=0,
        embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0)).train()


def loss_of(model, batch):
    """Mean cross-entropy of a batch: tokens and targets, or images and labels."""
    if "tokens" in batch:
        return F.cross_entropy(model(input_ids=batch["tokens"]).logits.flatten(0, 1), batch["targets"].flatten())
    return F.cross_entropy(model(batch["images"].to(next(model.parameters()).dtype)), batch["labels"])


def adamw(model, learning_rate, weight_decay=0.1):
    """The optimizer with our defaults: no decay of norms and biases."""
    parameters = list(model.parameters())
    return torch.optim.AdamW([{"params": [p for p in parameters if p.dim() > 1], "weight_decay": weight_decay},
                              {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}],
                             lr=learning_rate, betas=(0.9, 0.95), eps=1e-8)


def train_step(model, optimizer, batch):
    """One step as ours does it: the gradient's norm is clipped at 1. Returns the loss."""
    optimizer.zero_grad(set_to_none=True)
    loss = loss_of(model, batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def weights_of(model):
    """Everything that a file of weights has, each tied weight once."""
    return {k: v.detach().clone() for k, v in model.state_dict().items() if k != "lm_head.weight"}


def save_weights(model, path):
    save_file({k: v.contiguous() for k, v in weights_of(model).items()}, path, metadata={"format": "pt"})


def folder():
    """A folder that goes away with the process."""
    return tempfile.TemporaryDirectory(prefix="vs_torch_")


def status_kib(key):
    """A line of /proc/self/status, in KiB."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(key + ":"))


class Report:
    """Prints what is measured as it comes, compares it with its bar, and ends the program."""

    def __init__(self, options):
        self.to, self.json = sys.stderr if options.json else sys.stdout, options.json
        self.results, self.checks = {"torch": torch.__version__, "transformers": transformers.__version__}, []
        self.say(f"PyTorch {torch.__version__}, transformers {transformers.__version__}, {options.threads} threads")
        if os.path.exists("/proc/loadavg"):
            self.say("load of the machine before: " + " ".join(open("/proc/loadavg").read().split()[:3]))

    def say(self, text=""):
        print(text, file=self.to, flush=True)

    def keep(self, name, values):
        self.results[name] = values

    def check(self, name, value, bar, detail=""):
        """`value` must be at most `bar`."""
        good = value <= bar  # false for what is no number
        self.checks.append({"name": name, "value": value, "bar": bar, "pass": good})
        self.say(f"{'ok  ' if good else 'MISS'} {name:62} {value:10.3g} <= {bar:<8g} {detail}")

    def end(self):
        missed = sum(not c["pass"] for c in self.checks) or not self.checks
        if self.json:
            print(json.dumps({**self.results, "checks": self.checks}, indent=2))
        self.say(f"{sum(c['pass'] for c in self.checks)} of {len(self.checks)} bars are met")
        sys.exit(1 if missed else 0)
