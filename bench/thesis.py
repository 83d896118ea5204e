"""Chapters 5 and 6 of the dissertation on two workstations with a processor each.

Programs alone; then pairs, one after the other (SS) and both submitted at once (TS), under strict order with real-time classes (mode rt),
with the idle class for later jobs (idle), and with plain sharing (none). Turnaround from the records of Elmer, use of the CPU from the
kernel.
"""
import contextlib
import datetime
import os
import re
import time

from harness import Failure, at_least, at_most, cpu_seconds
from kernel_keeps import kernel_keeps

NAME = "thesis"
ABOUT = "what the first job pays, and what a pair gains"
FIGURES = ["thesis.alone", "thesis.speedup", "thesis.idle", "thesis.first", "thesis.later", "thesis.makespan", "thesis.first_ratio",
           "thesis.first_cpu_ratio", "thesis.makespan_ratio", "thesis.later_cycles", "thesis.elmer_cycles"]
EXAMPLES = "/usr/libexec/elmer/examples"
SCOPE = "elmer.slice/elmer-jobs.scope"
MODES = ["rt", "idle", "none"]
BARRIERS = ["v1", "v2", "v3", "v4"]  # v4 is ours: it leaves about half of both processors
# first, later, how: where the later job's barrier process is; subset: it has but one processor, not that of the first's barrier process
PAIRS = [("v1", "ep", ""), ("v2", "ep", ""), ("v3", "ep", ""), ("v4", "ep", ""), ("v2", "v2", "same"), ("v2", "v3", "same"),
         ("v3", "v3", "same"), ("v1", "v3", "same"), ("v2", "v3", "different"), ("v1", "v3", "different"), ("v1", "v3", "subset")]
QUICK_PAIRS = [("v4", "ep", ""), ("v1", "v3", "subset")]
# Asked for by name only: mode rt, above a job that holds both processors and sleeps. The lowest job is in SCHED_OTHER, for which the kernel
# keeps 50 ms of each second; here the later job is not the lowest. For pairs where the first job leaves less than that.
SLEEPER = "sleeper"
SLEEPER_PAIRS = [("v1", "ep", ""), ("v1", "v3", "different"), ("v1", "v3", "subset")]
# Also by name only: mode rt with what rt_reserve of rsd.conf does. A node may not write the kernel's settings, so they are made for the
# machine, and put back. {name in the figures: (percent, period in ms)}
RESERVE = "reserve"
RESERVES = {"reserve-5%": (5, 1000), "reserve-1%": (1, 1000), "reserve-5%-of-100ms": (5, 100)}


def stamp(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Job:
    """A job that was submitted; esubmit -w waits, so that nobody polls meanwhile."""

    def __init__(self, lab, command, nprocs, hosts=None):
        self.lab = lab
        where = ("--hosts", hosts) if hosts else ()
        self.waiting = lab.begin("alice", "esubmit", "-w", "--pvm", "-o", "/home/alice/thesis.%j", *where, str(nprocs), *command)
        line = self.waiting.stdout.readline()
        if not line.strip():
            raise Failure(f"esubmit: {self.waiting.communicate()[1].strip()}")
        self.id = int(line)

    def finish(self):
        """Its record, with the seconds worked out, and where its barrier process was."""
        _, errors = self.waiting.communicate(timeout=600)
        record = self.lab.jobs(self.id)[0]
        said = self.lab.root("cat", f"/home/alice/thesis.{self.id}")
        if self.waiting.returncode != 0 or not re.search("verified|plausible", said):  # sizes without a reference are judged by their statistics
            raise Failure(f"job {self.id}: {record['reason']} {errors.strip()} {said.strip()}")
        self.submitted, self.ended = stamp(record["submitted"]), stamp(record["ended"])
        self.turnaround = self.ended - self.submitted
        self.started = stamp(record["started"])
        running = self.ended - self.started
        used = [usage["cpu_seconds"] for usage in record["usage"]]
        self.cpu_seconds, self.idle = sum(used), 1 - max(used) / running
        where = re.search(r"barrier_host=(\S+)", said)
        self.barrier_host = where.group(1) if where else None
        return self


class Programs:
    """Commands whose lengths are about equal on this machine."""

    def __init__(self, bench, lab):
        start = self.start(lab)
        # the later job must have begun well before the first ends
        self.m, seconds = self.size_ep(lab, max(bench.size(5, 0.7), 4 * start))
        self.factors = {}
        for name in BARRIERS:
            guess = bench.size(0.5, 0.2)
            one = Job(lab, self.barrier(name, 2, guess), 2).finish().turnaround
            self.factors[name] = max(guess * (seconds - start) / max(one - start, start / 4), 0.001)
        bench.say(f"thesis: ep of 2^{self.m} pairs takes {seconds:.2f} s, barriers are made about as long: " +
                  " ".join(f"{name} x {factor:.2f}" for name, factor in self.factors.items()))

    @staticmethod
    def start(lab):
        """What a job takes that computes next to nothing: the second of two, because the first reads its files."""
        return [Job(lab, Programs.ep(2, 16), 2).finish().turnaround for _ in range(2)][1]

    @staticmethod
    def size_ep(lab, wanted_s):
        """The smallest size that takes so long on two processors; its time. It grows by two."""
        for m in range(24, 34):
            seconds = Job(lab, Programs.ep(2, m), 2).finish().turnaround
            if seconds >= wanted_s:
                return m, seconds
        raise Failure("ep is too short in all sizes")

    @staticmethod
    def ep(nprocs, m):
        return [f"{EXAMPLES}/ep", "-P", str(nprocs), "-m", str(m)]

    @staticmethod
    def barrier(name, nprocs, factor, task=0):
        return [f"{EXAMPLES}/barrier", "-P", str(nprocs), "-v", name[1:], "-f", f"{factor:.4f}", "-b", str(task)]

    def command(self, name, nprocs=2, task=0):
        return self.ep(nprocs, self.m) if name == "ep" else self.barrier(name, nprocs, self.factors[name], task)


class Watch:
    """Looks at the CPU time of two jobs and of Elmer while both run. In real time above them, or it would not be heard; it sleeps nearly always."""

    def __init__(self, lab, first, later, nodes, interval_s):
        self.groups = {node: (self.job(lab, node, first), self.job(lab, node, later), self.daemons(lab, node, first, later)) for node in nodes}
        self.interval_s, self.samples = interval_s, []
        self.begun, self.first = False, first

    @staticmethod
    def job(lab, node, job, leaf="job"):
        return os.path.join(lab.group(node), SCOPE, f"{job.id}.1", leaf)

    @classmethod
    def daemons(cls, lab, node, first, later):
        services = ("rsd", "rsd-spawn", "rsd-net", "rsd-tickets") + (("elmer",) if node == 1 else ())
        return [os.path.join(lab.group(node), f"system.slice/{name}.service") for name in services] + [cls.job(lab, node, job, "sup") for job in (first, later)]

    def look(self):
        """False when the first job is gone; one that is not there yet is no sample."""
        sample = []
        try:
            firsts = [(time.monotonic(), cpu_seconds(first)) for first, _, _ in self.groups.values()]
        except OSError: # on one of the nodes
            return not self.begun and self.first.waiting.poll() is None
        self.begun = True
        for (now, used), (_, later, daemons) in zip(firsts, self.groups.values()):
            try:
                sample.append((now, used, cpu_seconds(later), sum(map(cpu_seconds, daemons))))
            except OSError:
                return True
        self.samples.append([sum(column) for column in zip(*sample)])
        return True

    def run(self):
        """Returns the shares of the cycles that the first job left which the later job and Elmer's own processes got, or None if the later one never ran beside it."""
        before = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(58))
        try:
            while self.look():
                time.sleep(self.interval_s)
        finally:
            os.sched_setscheduler(0, *before)
        if len(self.samples) < 2:
            return None
        wall, first, later, daemons = (end - begin for begin, end in zip(self.samples[0], self.samples[-1]))
        return (later / (wall - first), daemons / (wall - first)) if wall > first else None


class Pair:
    """One pair in one mode."""

    def __init__(self, bench, lab, programs, names, how, mode):
        self.bench, self.lab, self.programs, self.how, self.mode = bench, lab, programs, how, mode
        self.first_name, self.later_name = names
        self.free_host = None  # without the first job's barrier process

    def first(self):
        return Job(self.lab, self.programs.command(self.first_name), 2)

    def later(self):
        if self.how == "subset":
            return Job(self.lab, self.programs.command(self.later_name, 1), 1, self.free_host)
        return Job(self.lab, self.programs.command(self.later_name, 2, 1 if self.how == "different" else 0), 2)

    def check_places(self, first, later):
        if self.how in ("same", "different") and (first.barrier_host == later.barrier_host) != (self.how == "same"):
            raise Failure(f"barrier processes on {first.barrier_host} and {later.barrier_host}, not {self.how}")

    @contextlib.contextmanager
    def above_a_sleeper(self):
        """In mode sleeper, holds both processors below the jobs that were submitted before; else nothing."""
        if self.mode != SLEEPER:
            yield
            return
        waiting = self.lab.begin("alice", "esubmit", "-w", "-o", "/dev/null", "2", "sleep", "600")
        job = waiting.stdout.readline().strip()
        if not job:
            raise Failure(f"esubmit: {waiting.communicate(timeout=60)[1].strip()}")
        try:
            yield
        finally:
            self.lab.root("ekill", job)
            waiting.communicate(timeout=60)

    def one_after_the_other(self):
        first = self.first()
        with self.above_a_sleeper():
            first.finish()
        self.free_host = "ws1" if first.barrier_host == "ws2" else "ws2"
        later = self.later()
        with self.above_a_sleeper():
            return first, later.finish()

    def both(self):
        """Returns the jobs and what the later one and the daemons got."""
        first, later = self.first(), self.later()
        nodes = [int(self.free_host[2:])] if self.how == "subset" else [1, 2]
        with self.above_a_sleeper():
            shares = Watch(self.lab, first, later, nodes, self.bench.size(0.5, 0.005)).run()
            first.finish()
            later.finish()
        self.check_places(first, later)
        return first, later, shares

    def run(self, rounds, idle):
        """All of it again with a longer first job, where it had ended before the later one began, as on a busy machine; not for ever."""
        for _ in range(4):
            alone, shared = [], []
            for _ in range(rounds):
                alone.append(self.one_after_the_other())
                shared.append(self.both())
            if self.later_name != "ep" or any(shares is not None for _, _, shares in shared):
                break
            first, later, _ = shared[-1]
            self.bench.say(f"thesis: {self.first_name} had ended before {self.later_name} began beside it ("
                           f"{first.turnaround:.2f} s, submitted {later.submitted - first.submitted:.2f} s later): once more, twice as long")
            self.programs.factors[self.first_name] *= 2
        self.report(alone, shared, idle)

    def report(self, alone, shared, idle):
        what = {"mode": self.mode, "first": self.first_name, "later": self.later_name}
        if self.how:
            what["places"] = self.how
        makespans = {"SS": [a.turnaround + b.turnaround for a, b in alone],
                     "TS": [max(a.ended, b.ended) - a.submitted for a, b, _ in shared]}
        for how, pairs in (("SS", alone), ("TS", shared)):
            self.bench.figure("thesis.first", [pair[0].turnaround for pair in pairs], "s", how=how, **what)
            self.bench.figure("thesis.later", [pair[1].turnaround for pair in pairs], "s", how=how, **what)
            self.bench.figure("thesis.makespan", makespans[how], "s", how=how, **what)
        rt = self.mode == "rt"
        ratios = [ts[0].turnaround / ss[0].turnaround for ss, ts in zip(alone, shared)]
        self.bench.figure("thesis.first_ratio", ratios, "", at_most(1.01) if rt else None, **what)
        limit = round(1 - 0.45 * idle[self.first_name] + 0.02, 3) if self.later_name == "ep" else 1.01
        ratios = [ts / ss for ss, ts in zip(makespans["SS"], makespans["TS"])]
        self.bench.figure("thesis.makespan_ratio", ratios, "", at_most(limit) if rt else None, **what)
        self.bench.figure("thesis.first_cpu_ratio", [ts[0].cpu_seconds / ss[0].cpu_seconds for ss, ts in zip(alone, shared)], "", **what)
        shares = [both for _, _, both in shared if both is not None]
        if self.later_name == "ep" and shares:
            self.bench.figure("thesis.later_cycles", [later for later, _ in shares], "", at_least(0.9) if rt else None, **what)
            self.bench.figure("thesis.elmer_cycles", [daemons for _, daemons in shares], "", **what)


def programs_alone(bench, lab, programs, rounds):
    """Returns how much of its busier processor each leaves on two."""
    idle = {}
    for name in [*BARRIERS, "ep"]:
        runs = {nprocs: [Job(lab, programs.command(name, nprocs), nprocs).finish() for _ in range(rounds)] for nprocs in (1, 2)}
        seconds = {nprocs: bench.figure("thesis.alone", [job.turnaround for job in jobs], "s", program=name, nprocs=nprocs) for nprocs, jobs in runs.items()}
        bench.figure("thesis.speedup", [seconds[1] / seconds[2]], "", program=name, nprocs=2)
        idle[name] = bench.figure("thesis.idle", [job.idle for job in runs[2]], "", program=name, nprocs=2)
    return idle


def modes_of(bench):
    """(name in the figures, mode of rsd, what the kernel keeps or None)"""
    known = [*MODES, SLEEPER, RESERVE]
    for mode in bench.modes or bench.size(MODES, ["rt"]):
        if mode not in known:
            raise Failure(f"there is no mode {mode}: {' '.join(known)}")
        if mode == RESERVE:
            yield from ((name, "rt", kept) for name, kept in RESERVES.items())
        else:
            yield mode, "rt" if mode == SLEEPER else mode, None


def pairs_of(bench, mode):
    if mode == SLEEPER or mode in RESERVES:
        return SLEEPER_PAIRS if mode == SLEEPER else bench.size(SLEEPER_PAIRS, SLEEPER_PAIRS[:1])
    return bench.size(PAIRS, QUICK_PAIRS)


def run(bench):
    programs, idle = None, {}
    for mode, order, kept in list(modes_of(bench)):
        rounds = bench.size(5 if order == "rt" else 3, 1)
        with contextlib.ExitStack() as stack:
            lab = stack.enter_context(bench.lab(2, rsd=(f"mode = {order}",)))
            if programs is None:
                programs = Programs(bench, lab)
                idle = programs_alone(bench, lab, programs, rounds)
            if kept:
                bench.say(f"thesis: {mode}: set {stack.enter_context(kernel_keeps(*kept))}")
            for first, later, how in pairs_of(bench, mode):
                Pair(bench, lab, programs, (first, later), how, mode).run(rounds, idle)
