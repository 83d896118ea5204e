"""Open MPI and MPICH, two ranks on two nodes with a CPU each (tcp) or on one with two (shm): what it costs that a rank which waits sleeps, and what a later
job gets of it.

`guarded` is a job as it comes, `spin` one with esubmit --spin and nothing preloaded. A job that is alone never sleeps: so what is guarded is compared above a
later job, an endless loop on each processor. The first job of a pair plays pingpong, or works long and short by turns, with a barrier after each, so that its
ranks wait a third of the time.
"""
import os
import statistics
import subprocess
import tempfile
import threading
import time

from harness import DEADLINE_S, TOP, Failure, at_least, at_most, cpu_seconds, until

NAME = "mpi"
ABOUT = "MPI programs: latency, kernels, pairs with a later job, guarded and not"
FIGURES = ["mpi.latency", "mpi.latency_cost", "mpi.kernel", "mpi.guard_cost", "mpi.first_ratio", "mpi.later_share"]
KINDS = ["openmpi", "mpich"]
HOW = {"guarded": [], "spin": ["--spin", "-v", "LD_PRELOAD="]}
SCOPE = "elmer.slice/elmer-jobs.scope"
HAS_RESULT = "grep -q '^[0-9]' bench-mpi.out"


def program(kind):
    return f"/home/bench-mpi.{kind}"


def build(lab, kind):
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "mpi")
        done = subprocess.run([f"mpicc.{kind}", "-O2", "-o", target, os.path.join(TOP, "bench", "mpi.c"), "-lm"], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise Failure(f"mpicc.{kind}: {done.stderr.strip()[-500:]}")
        lab.give(target, program(kind))


def words_of(kind, options, *arguments):
    launcher = f"mpirun.{kind} " if kind in KINDS else ""
    command = f'{launcher}{program(kind)} {" ".join(str(a) for a in arguments if a != "wait")}'
    if kind == "mpich" and options:  # without libelmer-yield.so it may hang in MPI_Finalize (elmer-mpi(7)), when the result is there
        command = f'{command} & mpirun=$!; (until {HAS_RESULT}; do sleep 1; done; sleep 10; kill $mpirun) & wait $mpirun || {HAS_RESULT}'
    return ["esubmit", "-w", "-t", "300s", "-o", "bench-mpi.out", *options, "2", "sh", "-c",
            f'rm -f go; : >ready; {"until [ -e go ]; do sleep 0.05; done;" if "wait" in arguments else ""} {command}']


def result(lab):
    lines = [line for line in lab.output("alice", "cat", "bench-mpi.out").splitlines() if line and line[0].isdigit()]
    if not lines:
        raise Failure("an MPI program has written no result")
    return lines[-1].split()


def alone(lab, kind, options, *arguments):
    lab.output("alice", "rm", "-f", "bench-mpi.out", "ready", "go")
    lab.output("alice", *words_of(kind, options, *arguments))
    return result(lab)


class Watch(threading.Thread):
    """What the later job has used, on both nodes, by the time."""

    def __init__(self, groups):
        super().__init__(daemon=True)
        self.groups, self.points, self.ended = groups, [], False
        self.look()

    def look(self):
        self.points.append((time.monotonic_ns(), sum(cpu_seconds(group) for group in self.groups)))

    def run(self):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(58))  # above all jobs
        while not self.ended:
            time.sleep(0.02)
            self.look()

    def at(self, when):
        before = max(point for point in self.points if point[0] <= when)
        after = min(point for point in self.points if point[0] >= when)
        part = (when - before[0]) / max(after[0] - before[0], 1)
        return before[1] + part * (after[1] - before[1])


def pair(lab, kind, options, *arguments):
    """The first job's own words, and the watch over a later one meanwhile."""
    lab.output("alice", "rm", "-f", "bench-mpi.out", "ready", "go")
    first = lab.begin("alice", *words_of(kind, options, *arguments, "wait"))
    until(60, "the first job runs", lambda: lab.output("alice", "sh", "-c", "ls ready 2>/dev/null || true").strip())
    later = int(lab.output("bob", "esubmit", "-o", "/dev/null", "--each", "2", "sh", "-c", "while :; do :; done"))
    until(60, "the later job runs", lambda: lab.jobs(later)[0]["state"] == "running")
    watch = Watch([os.path.join(lab.group(node), SCOPE, f"{later}.1", "job") for node in range(1, lab.nodes + 1)])
    watch.start()
    lab.output("alice", "touch", "go")
    _, errors = first.communicate(timeout=DEADLINE_S)
    watch.ended = True
    watch.join()
    watch.look()
    lab.root("ekill", str(later))
    until(60, "the later job has ended", lambda: lab.jobs(later)[0]["state"] == "done")
    if first.returncode != 0:
        raise Failure(f"a first job has failed: {errors.strip()[-500:]}")
    return result(lab), watch


def latencies(bench, lab, kind, over):
    for size, rounds in ((8, bench.size(5000, 500)), (1 << 20, bench.size(300, 50))):
        times = {}
        for how, options in HOW.items():
            times[how] = [float(pair(lab, kind, options, "pingpong", size, rounds)[0][0]) for _ in range(bench.size(5, 1))]
            bench.figure("mpi.latency", times[how], "us", mpi=kind, over=over, bytes=size, how=how)
        spun = sorted(times["spin"])[len(times["spin"]) // 2]
        if size == 8:
            bench.figure("mpi.latency_cost", [value - spun for value in times["guarded"]], "us", at_most(0.5), mpi=kind, over=over, bytes=size)
        else:
            bench.figure("mpi.latency_cost", [value / spun for value in times["guarded"]], "ratio", at_most(1.15), mpi=kind, over=over,
                         bytes=size)


def kernels(bench, lab, kind):
    for name, size in (("ep", 20000000), ("cg", 200000), ("is", 1000000), ("halo", 300)):
        for how, options in HOW.items():
            words = [alone(lab, kind, options, name, size) for _ in range(bench.size(3, 1))]
            if any(word[1] != "verified" for word in words):
                raise Failure(f"{kind}: the result of {name} is wrong")
            bench.figure("mpi.kernel", [float(word[0]) for word in words], "s", mpi=kind, kernel=name, how=how)


def seconds(words):
    return (int(words[1]) - int(words[0])) / 1e9


def turns(bench, lab, kind, over, wait_ms, steps):
    """wait_ms: what the rank with the shorter work waits; over all a third of the time."""
    longer, shorter = int(1.5 * wait_ms * steps), int(0.5 * wait_ms * steps)
    rounds = int(bench.size(3000, 600) / (1.5 * wait_ms))
    times, of = {}, {"mpi": kind, "over": over, "wait_ms": wait_ms}
    for how, options in HOW.items():
        middle = statistics.median_low(seconds(alone(lab, kind, options, "turns", longer, shorter, rounds)) for _ in range(bench.size(5, 1)))
        times[how], shares = [], []
        for _ in range(bench.size(5, 1)):
            words, watch = pair(lab, kind, options, "turns", longer, shorter, rounds)
            times[how].append(seconds(words))
            shares.append((watch.at(int(words[1])) - watch.at(int(words[0]))) / float(words[2]))
        guarded = how == "guarded"
        bench.figure("mpi.first_ratio", [value / middle for value in times[how]], "ratio", at_most(1.01) if guarded else None, how=how, **of)
        bench.figure("mpi.later_share", shares, "ratio", at_least(0.8 if wait_ms >= 10 else 0.5) if guarded and (wait_ms >= 10 or wait_ms == 1) else None,
                     how=how, **of)
    spun = statistics.median_low(times["spin"])
    bench.figure("mpi.guard_cost", [value / spun for value in times["guarded"]], "ratio", at_most(1.05 if wait_ms >= 5 else 1.1), **of)


def run(bench):
    for kind in KINDS:
        if subprocess.run(["sh", "-c", f"command -v mpicc.{kind}"], capture_output=True, check=False).returncode != 0:
            raise Failure(f"no mpicc.{kind} on this machine: the packages for mpi in tests/lab/packages")
    for over, nodes, cpus in (("tcp", 2, 1), ("shm", 1, 2)):
        with bench.lab(nodes, cpus=cpus) as lab:
            for kind in KINDS:
                build(lab, kind)
                steps = float(alone(lab, kind, [], "steps")[0])
                latencies(bench, lab, kind, over)
                if over == "tcp":
                    kernels(bench, lab, kind)
                for wait_ms in bench.size((1, 5, 10), (10,)):
                    turns(bench, lab, kind, over, wait_ms, steps)
