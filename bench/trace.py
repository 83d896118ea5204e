"""What a long trace costs esim: on one CPU, in virtual time; no node is booted."""
import os
import random
import subprocess
import sys
import tempfile

from harness import Failure, at_most, build_dir

NAME = "trace"
ABOUT = "esim with a trace of 1,000,000 jobs on 1,000 processors"
FIGURES = ["trace.time", "trace.memory"]
PROCESSORS, BUSY, SEED = 1000, 0.8, 1
ALLOCATORS = "v1", "spread"
SHAPES = {"mixed": (1, 1, 2, 4, 8, 16, 32, 64, 128), "wide": range(1, 257)}  # wide: each job is much work for the core
RUN_S = 3600  # at the median; a tenth of the jobs run for longer than 10 hours


def write(path, jobs, shape):
    """Jobs of all sizes of a shape that keep so much of the machine busy."""
    draw = random.Random(SEED)
    runs = [max(1, int(draw.lognormvariate(0, 1.8) * RUN_S)) for _ in range(jobs)]
    sizes = [draw.choice(SHAPES[shape]) for _ in range(jobs)]
    gap = sum(run * size for run, size in zip(runs, sizes)) / (BUSY * PROCESSORS * jobs)
    at = 0
    with open(path, "w", encoding="ascii") as file:
        file.write(f"; MaxProcs: {PROCESSORS}\n; MaxNodes: {PROCESSORS}\n")
        for number in range(jobs):
            at += draw.expovariate(1 / gap)
            file.write(f"{number + 1} {at:.0f} -1 {runs[number]} {sizes[number]} -1 -1 {sizes[number]} -1 -1 1 1 1 -1 1 -1 -1 -1\n")


# A process has at least the memory of the one that it comes from: so that is a small one.
MEASURED = """
import os, resource, subprocess, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
begun = time.monotonic()
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(code, time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def replay(path, allocator, model):
    """Seconds, and MB at most."""
    esim = os.path.join(build_dir(), "esim", "esim")
    done = subprocess.run([sys.executable, "-c", MEASURED, esim, "--json", "--trace", path, "--allocator", allocator, "--model", model],
                          stdout=subprocess.PIPE, text=True, check=True)
    code, seconds, kilobytes = done.stdout.split()
    if code != "0":
        raise Failure(f"esim --trace with {allocator} ended with {code}")
    return float(seconds), int(kilobytes) / 1024


def measure(bench, path, times, bars, what):
    runs = [replay(path, what["allocator"], what["model"]) for _ in range(times)]
    bench.figure("trace.time", [seconds for seconds, _ in runs], "s", bars[0], **what)
    bench.figure("trace.memory", [memory for _, memory in runs], "MB", bars[1], **what)


def run(bench):
    jobs, shared_jobs, times = bench.size(1000000, 5000), bench.size(100000, 1000), bench.size(3, 1)
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "trace.swf")
        for shape in SHAPES:
            write(path, jobs, shape)
            for allocator in ALLOCATORS:
                measure(bench, path, times, (at_most(60), at_most(500)),
                        {"jobs": jobs, "shape": shape, "allocator": allocator, "model": "space"})
        # three levels, and wide jobs hold up others: most of them wait. No bar is promised
        write(path, shared_jobs, "mixed")
        for allocator in ALLOCATORS:
            measure(bench, path, times, (None, None), {"jobs": shared_jobs, "shape": "mixed", "allocator": allocator, "model": "shared"})
