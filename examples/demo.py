# SPDX-License-Identifier: Apache-2.0
"""The main job: a GPT learns Shakespeare over four processes joined by slow, uneven links, and is measured beside the
same training without compression, without OP-Fence, and on the best single device. Every number is of this run."""
import argparse
import json
import os
import subprocess
import sys
import time

BARS = {"below bigram": 0.3, "of lossless": 0.05, "prediction": 0.15, "op-fence": 1.3, "compression": 2.0}


def main():
    a = argparse.ArgumentParser()
    a.add_argument("gpt"), a.add_argument("text"), a.add_argument("topology"), a.add_argument("work")
    a.add_argument("--steps", type=int, default=300)
    a.add_argument("--probe", type=int, default=5, help="steps of each run that is only timed")
    a.add_argument("--ratio", type=float, default=3.9)
    o = a.parse_args()
    os.makedirs(o.work, exist_ok=True)
    data = ["--data", o.text, "--learning_rate", "2e-3", "--warmup", "20", "--min_learning_rate", "2e-4", "--seed", "1"]
    cluster = ["--peers", "4", "--topology", o.topology, "--emulate", "--micro_batches", "8", "--threads", "1", "--log_interval", "10"]

    def gpt(*words):
        """Runs a command that prints JSON; what it says meanwhile goes on to the terminal."""
        done = subprocess.run([o.gpt, *words, "--json"], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"demo: `gpt {' '.join(words)}` ended with status {done.returncode}")
        return json.loads(done.stdout)

    def timed(plan, **run):
        more = [w for k, v in run.items() for w in (f"--{k}", str(v))]
        use = ["--use", plan] if plan else []
        r = gpt("local", *data, *cluster, *use, "--steps", str(o.probe), "--validation_batches", "0", "--quiet", *more)
        return r["median_step_seconds"]

    say("1. The plan: what OP-Fence does with the machines, and at which ratios AdaTopK sends")
    ours, raw = o.work + "/plan.json", o.work + "/raw.json"
    planning = [*data, *cluster, "--scheduler", "op_fence", "--output"]
    subprocess.run([o.gpt, "plan", *planning, ours, "--compressor", "ada_top_k", "--ratio", str(o.ratio)], check=True)
    with open(ours) as f:
        plan = json.load(f)
    plan.pop("codecs", None)
    with open(raw, "w") as f:
        json.dump(plan, f)

    say(f"2. {o.steps} steps over four processes, compressed")
    began = time.time()
    run = gpt("local", *data, *cluster, "--use", ours, "--compressor", "ada_top_k", "--ratio", str(o.ratio), "--steps", str(o.steps),
              "--run", o.work + "/compressed", "--validation_batches", "1", "--overwrite")
    trained = time.time() - began

    say(f"3. The same {o.steps} steps in one process without compression, as fast as this machine can")
    gpt("train", *data, "--micro_batches", "8", "--threads", "2", "--steps", str(o.steps), "--run", o.work + "/lossless",
        "--validation_batches", "1", "--log_interval", "50", "--overwrite")

    say("4. Held-out losses")
    judge = ["--data", o.text, "--validation_batches", "40", "--threads", "2"]
    compressed = gpt("evaluate", "--run", o.work + "/compressed", *judge)
    lossless = gpt("evaluate", "--run", o.work + "/lossless", *judge)

    say(f"5. Step times of the alternatives, {o.probe} steps each")
    t = {"equal number of operators, raw": timed(None, scheduler="equal_number", compressor="no_compression"),
         "OP-Fence, raw": timed(None, scheduler="op_fence", compressor="no_compression"),
         "this run's plan, raw": timed(raw, compressor="no_compression"),
         "best single device": timed(None, scheduler="best_single", compressor="no_compression")}
    step, predicted = run["median_step_seconds"], run["predicted_step_seconds"]
    t["this run: OP-Fence and AdaTopK"] = step

    say("Results")
    print(f"{'link':32}{'raw MB':>10}{'sent MB':>10}{'ratio':>8}{'seconds':>10}")
    for l in run["links"]:
        ratio = l["raw_bytes"] / max(l["sent_bytes"], 1)
        print(f"{l['from'] + ' -> ' + l['to']:32}{l['raw_bytes'] / 1e6:10.1f}{l['sent_bytes'] / 1e6:10.1f}{ratio:8.1f}{l['seconds']:10.1f}")
    print()
    for name, seconds in t.items():
        print(f"{name:36}{seconds:9.3f} s a step")
    print()
    bigram = compressed["bigram_loss"]
    checks = [
        ("held-out loss below the bigram table's", bigram - compressed["loss"], ">=", BARS["below bigram"],
         f"{compressed['loss']:.3f} against {bigram:.3f} nats a byte"),
        ("held-out loss above the lossless run's", compressed["loss"] - lossless["loss"], "<=", BARS["of lossless"],
         f"{compressed['loss']:.3f} against {lossless['loss']:.3f}"),
        ("predicted step beside measured", abs(predicted / step - 1), "<=", BARS["prediction"], f"{predicted:.3f} s and {step:.3f} s"),
        ("OP-Fence over equal number, both raw", t["equal number of operators, raw"] / t["OP-Fence, raw"], ">=", BARS["op-fence"], ""),
        ("compression alone, the same plan", t["this run's plan, raw"] / step, ">=", BARS["compression"], ""),
    ]
    missed = 0
    for name, value, sign, bar, detail in checks:
        good = value >= bar if sign == ">=" else value <= bar
        missed += not good
        print(f"{'ok  ' if good else 'MISS'} {name:42}{value:7.3f} {sign} {bar:<6} {detail}")
    single = t["best single device"]
    faster = "the four are faster" if step < single else "it alone is faster than the four: they pool memory, not speed"
    print(f"     the best single device takes {single:.3f} s a step, the four {step:.3f} s: {faster}")
    print(f"     trained for {trained:.0f} s")

    say("200 bytes that it writes")
    subprocess.run([o.gpt, "generate", "--run", o.work + "/compressed", "--prompt", "\n", "--length", "200", "--threads", "2"], check=True)
    print()
    return 1 if missed else 0


def say(text):
    print(f"\n== {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
