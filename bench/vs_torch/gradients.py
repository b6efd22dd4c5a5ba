#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPT-2 and ResNet-101 beside PyTorch's, from the same random weights, which travel as safetensors.

  double   `fl::reference` in double: loss, every gradient and ResNet's running statistics of step 1 within 1e-4, relative, of
           PyTorch's in fp64, tensor by tensor
  single   `fl::cpu` in fp32 at full size: as far from PyTorch's fp64 as PyTorch's own fp32 is, or at most 3 times as far,
           over all gradients together
  weights  GPT-2 after 5 steps of AdamW: every weight within 1e-3 of PyTorch's; not the biases of keys, whose gradient is
           zero but for rounding, which AdamW blows up

    gradients.py [--parts double,single,weights] [--models gpt2_tiny,gpt2_small,resnet101_64,resnet101]"""
import copy
import time

import side_by_side as beside
import torch
import torch_resnet

TINY = {"layers": 2, "width": 64, "heads": 2, "vocabulary": 503, "positions": 64}
MODELS = {"gpt2_tiny": lambda: beside.gpt2(**TINY), "gpt2_small": beside.gpt2, "resnet101": torch_resnet.ResNet,
          "resnet101_64": torch_resnet.ResNet}
BATCHES = {"double": {"gpt2_tiny": (4, 32), "gpt2_small": (1, 16), "resnet101_64": (4, 64)},
           "single": {"gpt2_small": (4, 256), "resnet101": (4, 224)},
           "weights": {"gpt2_tiny": (4, 32), "gpt2_small": (4, 64)}}
PARTS = tuple(BATCHES)


def made(name, perturbed):
    """The model with random weights; `perturbed`: also norms, biases and running statistics are random."""
    torch.manual_seed(1)
    model = MODELS[name]()
    with torch.no_grad():
        for k, v in model.state_dict().items():
            if perturbed and v.dim() == 1:
                v += 0.05 * (torch.rand(v.shape) if k.endswith("running_var") else torch.randn(v.shape))
    return model.train()


def batches(name, size, steps):
    """Random data, (steps, batch, ...)."""
    torch.manual_seed(2)
    batch, extent = size
    if name.startswith("gpt2"):
        vocabulary = TINY["vocabulary"] if name == "gpt2_tiny" else 50257
        return {k: torch.randint(0, vocabulary, (steps, batch, extent)) for k in ("tokens", "targets")}
    return {"images": torch.randn(steps, batch, 3, extent, extent), "labels": torch.randint(0, 1000, (steps, batch))}


def torch_step(model, data):
    """Loss, gradients and running statistics of one step."""
    model.zero_grad(set_to_none=True)
    loss = beside.loss_of(model, {k: v[0] for k, v in data.items()})
    loss.backward()
    return {"loss": {"loss": loss.detach()}, "gradients": {k: p.grad.detach() for k, p in model.named_parameters()},
            "statistics": {k: v.clone() for k, v in model.state_dict().items() if ".running_" in "." + k}}


def our_step(options, work, name, data, model, device):
    path = f"{work}/{name}"
    beside.save_weights(model, path + ".weights")
    beside.save_file(data, path + ".batches")
    said = beside.steps(options.build, name, device=device, threads=options.threads, weights=path + ".weights",
                        batches=path + ".batches", gradients=path + ".gradients", first=path + ".first")
    found, after = beside.load_file(path + ".gradients"), beside.load_file(path + ".first")
    return {"loss": {"loss": torch.tensor(said["losses"][0], dtype=torch.float64)},
            "gradients": {k: v for k, v in found.items() if "running_" not in k},
            "statistics": {k: v for k, v in after.items() if "running_" in k}}


def norm(x):
    return x.double().norm().item()


def distances(found, expected):
    """By tensor: norms of the difference and of what is expected."""
    if found.keys() != expected.keys():
        raise SystemExit(f"gradients.py: these names are on one side only: {sorted(found.keys() ^ expected.keys())[:5]}")
    return {k: (norm(found[k].double() - expected[k].double()), norm(expected[k])) for k in expected}


def relative(d):
    r = d[0] / d[1] if d[1] > 0 else d[0]
    return r if r == r else float("inf")  # what is no number is the worst of all, and found


def together(ds):
    return (sum(a * a for a, _ in ds.values()) ** 0.5 / max(sum(b * b for _, b in ds.values()) ** 0.5, 1e-300)) if ds else 0.0


def double(options, report, work, name, size):
    model, data = made(name, True), batches(name, size, 1)
    found = our_step(options, work, name, data, model, "reference_f64")
    expected = torch_step(model.double(), data)
    for what, of in (("loss", "loss"), ("gradients", "gradient"), ("statistics", "running statistic")):
        ds = {k: relative(d) for k, d in distances(found[what], expected[what]).items()}
        report.keep(f"double.{name}.{what}", ds)
        if ds:
            worst = max(ds, key=ds.get)
            report.check(f"{name} {size}, fp64: {of}", ds[worst], 1e-4, f"the worst of {len(ds)}: {worst}" if len(ds) > 1 else "")


def single(options, report, work, name, size):
    model, data = made(name, True), batches(name, size, 1)
    found = our_step(options, work, name, data, model, "cpu")
    exact = torch_step(copy.deepcopy(model).double(), data)
    theirs = torch_step(model, data)
    for what, of in (("gradients", "gradients"), ("statistics", "running statistics")):
        mine, own = distances(found[what], exact[what]), distances(theirs[what], exact[what])
        if not mine:
            continue
        report.keep(f"single.{name}.{what}", {k: {"ours": relative(mine[k]), "pytorch": relative(own[k])} for k in mine})
        report.check(f"{name} {size}, fp32: {of}, our distance / PyTorch's", together(mine) / together(own), 3,
                     f"{together(mine):.2e} and {together(own):.2e}")
        ratio = {k: mine[k][0] / max(own[k][0], 1e-300) for k in mine}
        worst = sorted(ratio, key=ratio.get)[::-1]
        values = sorted(ratio.values())
        report.say(f"     by tensor: median {values[len(values) // 2]:.2f}, above 3: {sum(v > 3 for v in values)} of {len(values)}; the largest: "
                   + ", ".join(f"{k} {ratio[k]:.1f} ({relative(mine[k]):.1e} and {relative(own[k]):.1e})" for k in worst[:3]))
    (mine,), (own,) = (distances(x["loss"], exact["loss"]).values() for x in (found, theirs))
    report.check(f"{name} {size}, fp32: loss", relative(mine), max(3 * relative(own), 2.0**-22), f"PyTorch's {relative(own):.1e}")


def weights(options, report, work, name, size):
    """Ours, in fp32 and of the small model also in double, and PyTorch's in fp32 beside PyTorch's in fp64."""
    model, data = made(name, False), batches(name, size, 5)
    path = f"{work}/{name}"
    beside.save_weights(model, path + ".weights")
    beside.save_file(data, path + ".batches")

    def trained(model):
        optimizer = beside.adamw(model, 3e-4)
        for s in range(5):
            beside.train_step(model, optimizer, {k: v[s] for k, v in data.items()})
        return without_key_biases(beside.weights_of(model))

    def worst(found):
        ds = {k: relative(d) for k, d in distances(found, exact).items()}
        at = max(ds, key=ds.get)
        return ds, ds[at], at

    exact = trained(copy.deepcopy(model).double())
    _, theirs, at = worst(trained(model))
    for device in ("cpu", "reference_f64") if name == "gpt2_tiny" else ("cpu",):
        beside.steps(options.build, name, device=device, threads=options.threads, weights=path + ".weights", steps=5,
                     batches=path + ".batches", last=path + ".last", learning_rate=3e-4)
        ds, mine, where = worst(without_key_biases(beside.load_file(path + ".last")))
        report.keep(f"weights.{name}.{device}", ds)
        report.check(f"{name} {size}, {device}: weights after 5 steps of AdamW", mine, 1e-3,
                     f"the worst of {len(ds)}: {where}; PyTorch's own fp32: {theirs:.1e}, {at}")


def without_key_biases(weights):
    """Their gradient is zero in exact arithmetic: a softmax does not see what is added to all its scores."""
    kept = dict(weights)
    for k, v in weights.items():
        if k.endswith("attn.c_attn.bias"):
            kept[k] = torch.cat([v[:len(v) // 3], v[2 * len(v) // 3:]])
    return kept


def main():
    a = beside.arguments(__doc__)
    a.add_argument("--parts", default=",".join(PARTS))
    a.add_argument("--models", default=",".join(MODELS))
    a.add_argument("--size", type=lambda text: tuple(map(int, text.split("x"))), help="BATCHxTIME or BATCHxSIDE, for a quick try")
    options = a.parse_args()
    for given, known in ((options.parts, PARTS), (options.models, MODELS)):
        if unknown := set(given.split(",")) - set(known):
            a.error(f"{', '.join(sorted(unknown))}: expected some of {', '.join(known)}")
    torch.set_num_threads(options.threads)
    report = beside.Report(options)
    with beside.folder() as work:
        for part in options.parts.split(","):
            for name, size in BATCHES[part].items():
                if name not in options.models.split(","):
                    continue
                begin = time.time()
                globals()[part](options, report, work, name, options.size or size)
                report.say(f"     ({time.time() - begin:.0f} s)")
    report.end()


main()
