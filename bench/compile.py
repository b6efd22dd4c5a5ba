# SPDX-License-Identifier: Apache-2.0
"""What compiling costs a user, in a project of its own around examples/gpt.cpp: the program, a file that only declares a
model, programs of the largest models, an edit of the model to its first loss, the program's size. Compiler caches are off.
Medians of RUNS, each beside its bar; the exit status is 1 if one is missed.

    python3 bench/compile.py [RUNS]          CXX chooses the compiler"""
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

root = pathlib.Path(__file__).resolve().parent.parent
runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
cxx = os.environ.get("CXX", "g++")
os.environ["CCACHE_DISABLE"] = "1"
project = """cmake_minimum_required(VERSION 3.25)
project(compile_bench CXX)
set(FUSIONLLM_TESTS OFF)
set(FUSIONLLM_EXAMPLES OFF)
set(FUSIONLLM_CUDA OFF)
add_subdirectory({root} fusionllm)
fusionllm_add_trainer(gpt SOURCES gpt.cpp LINKED)
"""


def call(*words):
    """Seconds, and the largest memory of a process under it in MB."""
    begin = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"compile.py: `{' '.join(map(str, words))}` failed:\n{said}")
    return time.monotonic() - begin, used.ru_maxrss / 1e3


def medians(f):
    measured = [f() for _ in range(runs)]
    return [statistics.median(m) for m in zip(*measured)]


def compiled(source, *flags):
    return medians(lambda: call(cxx, "-std=c++20", "-DASIO_STANDALONE", "-DXXH_INLINE_ALL", "-ffp-contract=off", *flags, f"-I{root}/include",
                                "-c", source, "-o", os.devnull))


missed = []


def report(what, value, unit, bar):
    print(f"{what:42} {value:8.2f} {unit:2}  bar {bar:g}{'' if value < bar else ', MISSED'}", flush=True)
    if value >= bar:
        missed.append(what)


def report_compiled(what, source, most_seconds, most_megabytes):
    seconds, memory = compiled(source, "-O2")
    report(f"{what}, {cxx} -O2", seconds, "s", most_seconds)
    report("  its memory", memory, "MB", most_megabytes)


program = """#include <fusionllm/linked.hpp>
#include <fusionllm/models/{header}.hpp>
int main(int argc, char** argv) {{ return fusionllm::run_linked<fusionllm::linked_trainer<{model}>>(argc, argv); }}
"""

with tempfile.TemporaryDirectory() as name:
    here = pathlib.Path(name)
    for file in ("gpt.hpp", "gpt.cpp"):
        shutil.copy(root / "examples" / file, here)
    (here / "CMakeLists.txt").write_text(project.format(root=root))
    (here / "declared.cpp").write_text('#include "gpt.hpp"\nstatic_assert(fl::graph_of<byte_gpt>().params.size() > 0);\n')
    (here / "text.txt").write_text("What is compiled is paid for once an edit.\n" * 2000)
    report_compiled("gpt.cpp", here / "gpt.cpp", 25, 1500)
    report_compiled("a file that declares its model", here / "declared.cpp", 1, 1500)
    for what, header, model in (("GPT-2 XL", "gpt2", "fusionllm::gpt2<fusionllm::gpt2_size::xl>"), ("ResNet-101", "resnet", "fusionllm::resnet<101>")):
        (here / "large.cpp").write_text(program.format(header=header, model=model))
        report_compiled(what, here / "large.cpp", 30, 2000)
    build = here / "build"
    call("cmake", "-S", here, "-B", build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={cxx}", "-DCMAKE_BUILD_TYPE=Debug",
         "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1")  # as the dev preset
    call("cmake", "--build", build)
    shutil.copy(build / "gpt", here / "stripped")
    call("strip", here / "stripped")
    layers = iter(range(1, 1000))

    def edit():
        model = (here / "gpt.hpp").read_text()
        at = model.index("layers = ")
        (here / "gpt.hpp").write_text(model[:at] + f"layers = {next(layers)}" + model[model.index(",", at):])
        one = call("cmake", "--build", build)[0]
        return (one + call(build / "gpt", "train", "--data", here / "text.txt", "--steps", "1", "--validation_batches", "0")[0],)

    report("an edit of the model to its first loss", medians(edit)[0], "s", 15)
    report("the program of the dev build, stripped", (here / "stripped").stat().st_size / 1e6, "MB", 10)
sys.exit(bool(missed))
