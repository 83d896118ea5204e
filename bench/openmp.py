"""An OpenMP program on a node with two CPUs, whose threads wait a third of their time: what it costs that they sleep meanwhile, and what a later job gets.

`guarded` is a job as it comes, with passive policies of its runtimes, `spin` one with esubmit --spin.
"""
import os
import statistics
import subprocess
import tempfile

from harness import TOP, Failure, at_least, at_most
from mpi import alone, pair, program, seconds

NAME = "openmp"
ABOUT = "an OpenMP program above a later job, guarded and not"
FIGURES = ["openmp.guard_cost", "openmp.later_share"]
HOW = {"guarded": [], "spin": ["--spin"]}


def build(lab):
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "openmp")
        done = subprocess.run(["cc", "-O2", "-fopenmp", "-o", target, os.path.join(TOP, "bench", "openmp.c")], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failure(f"cc -fopenmp: {done.stderr.strip()[-500:]}")
        lab.give(target, program("openmp"))


def turns(bench, lab, wait_ms):
    arguments = ("openmp", wait_ms, int(bench.size(3000, 600) / (1.5 * wait_ms)))
    times = {how: [seconds(alone(lab, arguments[0], options, *arguments[1:])) for _ in range(bench.size(5, 1))] for how, options in HOW.items()}
    spun = statistics.median_low(times["spin"])
    bench.figure("openmp.guard_cost", [value / spun for value in times["guarded"]], "ratio", at_most(1.03), wait_ms=wait_ms)
    for how, options in HOW.items():
        shares = []
        for _ in range(bench.size(5, 1)):
            words, watch = pair(lab, arguments[0], options, *arguments[1:])
            shares.append((watch.at(int(words[1])) - watch.at(int(words[0]))) / float(words[2]))
        bench.figure("openmp.later_share", shares, "ratio", at_least(0.95) if how == "guarded" else None, wait_ms=wait_ms, how=how)


def run(bench):
    with bench.lab(1, cpus=2) as lab:
        build(lab)
        for wait_ms in bench.size((1, 5, 10), (10,)):
            turns(bench, lab, wait_ms)
