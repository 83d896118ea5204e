"""What the benchmarks share: booted workstations, their programs, figures.

A benchmark is a module of this folder with NAME, one line of ABOUT, FIGURES (the names of all figures that it makes, in any form of
the run) and run(bench). It boots what it needs with `bench.lab(...)`, a context manager, and hands each result to `bench.figure(...)`.
"""
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time

BENCHMARKS = ["latency", "throughput", "arrays", "query", "weight", "overhead", "scale", "thesis", "mpi", "openmp", "erun", "trace"]
TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LAB = os.path.join(TOP, "tests", "lab", "lab")
DRIVER = "/home/driver"  # on the nodes; they share /home
DEADLINE_S = 900  # of one command on a node; a hung one fails the run


class Failure(Exception):
    """A benchmark cannot go on: what, why."""


def build_dir():
    return os.environ.get("LAB_BUILD", os.path.join(TOP, "build"))


def ms(ns):
    return ns / 1e6


class Figure:
    """One result: the values of its repetitions; its value is their median."""

    def __init__(self, name, values, unit, bar, parameters):
        self.name, self.values, self.unit, self.bar, self.parameters = name, list(values), unit, bar, parameters
        if not self.values:
            raise Failure(f"{name}: nothing was measured")

    @property
    def value(self):
        return statistics.median(self.values)

    def record(self):
        record = {"name": self.name, "value": round(self.value, 6), "unit": self.unit, "n": len(self.values)}
        record.update(min=round(min(self.values), 6), median=round(self.value, 6), max=round(max(self.values), 6))
        record["parameters"] = self.parameters
        if self.bar:
            record["bar"] = self.bar
        return record


def at_most(limit):
    return {"at_most": limit}


def at_least(limit):
    return {"at_least": limit}


def judge(record):
    """met, missed, or nothing where there is no bar."""
    bar = record.get("bar")
    if not bar:
        return ""
    good = record["value"] <= bar["at_most"] if "at_most" in bar else record["value"] >= bar["at_least"]
    return "met" if good else "missed"


def bar_text(record):
    bar = record.get("bar")
    if not bar:
        return ""
    return f"<= {bar['at_most']:g}" if "at_most" in bar else f">= {bar['at_least']:g}"


def heading(record):
    """Where and when, of the first record."""
    p = record["parameters"]
    return f"{p['date']}, {p['form']} run of {p['commit']}: {record['value']:g} CPUs ({p['model']}), Linux {p['kernel']}, load {p['load']} at the start"


def short(value):
    """A number for people: four digits that count."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def cells(record):
    parameters = " ".join(f"{key}={value}" for key, value in record["parameters"].items())
    numbers = [short(record[key]) for key in ("median", "min", "max")]
    return [record["name"], parameters, *numbers, record["unit"], str(record["n"]), bar_text(record), judge(record)]


HEADINGS = ["figure", "parameters", "median", "min", "max", "unit", "n", "bar", ""]
NUMERIC = {2, 3, 4, 6}


def table(records):
    """An aligned table as a list of lines."""
    rows = [HEADINGS] + [cells(record) for record in records if not record["name"].startswith("run.")]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    return ["  ".join(cell.rjust(w) if i in NUMERIC else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths))).rstrip() for row in rows]


class Lab:
    """Booted workstations ws1..wsN, elmer on ws1."""

    def __init__(self, nodes, elmer=(), rsd=(), cpus=1):
        self.nodes, self.cpus = nodes, cpus
        self.groups = {}
        self.options = [word for line in elmer for word in ("--elmer", line)] + [word for line in rsd for word in ("--rsd", line)]

    def up(self):
        self.call("up", str(self.nodes), "--cpus", str(self.cpus), *self.options)
        # Asked once, and now: below a job that spins a script takes seconds where a process is dear.
        self.groups = {node: self.call("path", "group", str(node)).strip() for node in range(1, self.nodes + 1)}
        self.give(os.path.join(build_dir(), "bench", "driver"), DRIVER)
        # queued until all hosts are up
        self.output("alice", "esubmit", "-w", "-o", "/dev/null", str(self.nodes * self.cpus), "true")

    @staticmethod
    def down():
        subprocess.run([LAB, "down"], check=False)

    @staticmethod
    def call(*words, **options):
        done = subprocess.run([LAB, *words], capture_output=True, text=True, timeout=DEADLINE_S, check=False, **options)
        if done.returncode != 0:
            raise Failure(f"lab {' '.join(words)} ended with {done.returncode}: {(done.stderr.strip() or done.stdout.strip())[-2000:]}")
        return done.stdout

    def output(self, user, *words, node=1):
        """What a command writes, run by the user in a login shell."""
        return self.call("login", str(node), user, *words)

    def root(self, *words, node=1):
        return self.call("exec", str(node), *words)

    def begin(self, user, *words, node=1, **options):
        """The same without waiting: a subprocess.Popen."""
        return subprocess.Popen([LAB, "login", str(node), user, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def give(self, source, target):
        with open(source, "rb") as file:
            subprocess.run([LAB, "exec", "1", "sh", "-c", 'cat >"$1" && chmod 755 "$1"', "-", target], stdin=file, check=True)

    def debug(self, unit, node):
        """Have a daemon log what only it knows; it is started again."""
        self.root("sh", "-c", 'mkdir -p "$0" && printf "[Service]\\nEnvironment=ELMER_LOG=debug\\n" >"$0/debug.conf" && systemctl daemon-reload && '
                  'systemctl restart "$1"', f"/run/systemd/system/{unit}.service.d", unit, node=node)

    def said(self, unit, node):
        """The daemon's log, messages only."""
        return self.root("journalctl", "-q", "--no-pager", "-o", "cat", "-u", unit, node=node).splitlines()

    def group(self, node):
        """The node's control group, as seen from this machine."""
        return self.groups[node]

    def cpu_seconds(self):
        """CPU time of everything that runs in the nodes; commands that enter them from here are not in it."""
        return sum(cpu_seconds(self.group(node)) for node in range(1, self.nodes + 1))

    def jobs(self, *ids):
        """Records of jobs as equery has them."""
        return json.loads(self.root("equery", "--json", *map(str, ids)))["jobs"]

    def pids(self, node, pattern):
        """Processes of a node whose command line matches, with the node's numbers."""
        return [int(pid) for pid in self.root("sh", "-c", 'pgrep -f "$1" || true', "-", pattern, node=node).split()]

    def driver(self, *words, user="alice", node=1):
        """Lines of the driver's output, as lists of words."""
        return [line.split() for line in self.output(user, DRIVER, *map(str, words), node=node).splitlines()]

    def spawn(self, count, *command, options=(), **where):
        """[(begin_ns, exit_ns, first word)] of a command run count times, and the CPU seconds of all."""
        lines = self.driver("spawn", *options, count, *command, **where)
        return [(int(begin), int(end), word) for begin, end, _, word in lines[:-1]], float(lines[-1][1])

    def submit(self, count, threads, nprocs, *command):
        """(seconds, first id, last id, begin_ns, CPU seconds) of submissions through libelmer."""
        times, cpu = self.driver("submit", "-p", threads, count, nprocs, *command)
        begin, end, first, last = map(int, times)
        return (end - begin) / 1e9, first, last, begin, float(cpu[1])

    def drain(self, first, last):
        """Wait for jobs; the time of the last one's end."""
        return int(self.driver("drain", first, last)[0][0])

    def stamps(self, name, user="alice"):
        """{job: [(begin_ns, end_ns)]} that jobs have written to this file with `driver stamp`."""
        found = {}
        for line in self.output(user, "cat", name).splitlines():
            job, _, begin, end = line.split()
            found.setdefault(int(job), []).append((int(begin), int(end)))
        return found


def cpu_seconds(group):
    with open(os.path.join(group, "cpu.stat"), encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("usage_usec")) / 1e6


class Bench:
    """A run: its size, its results."""

    def __init__(self, quick, modes=None, out=sys.stdout):
        self.quick, self.modes, self.out = quick, modes, out
        self.records = []

    def size(self, full, quick):
        return quick if self.quick else full

    def say(self, text):
        print(f"bench: {text}", file=sys.stderr, flush=True)

    def figure(self, name, values, unit, bar=None, **parameters):
        """A result with its parameters; one line of standard output. bar: at_most() or at_least()."""
        record = Figure(name, values, unit, bar, parameters).record()
        self.records.append(record)
        print(json.dumps(record), file=self.out, flush=True)
        return record["value"]

    @contextlib.contextmanager
    def lab(self, nodes, elmer=("allocator = v1",), rsd=(), cpus=1):
        lab = Lab(nodes, elmer, rsd, cpus)
        try:
            lab.up()
            yield lab
        finally:
            with undisturbed():
                lab.down()


@contextlib.contextmanager
def undisturbed():
    """Half a removal is worse than a late answer; children inherit it."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def until(seconds, what, condition, pause=0.02):
    """Poll the condition; its first true value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"not within {seconds} s: {what}")
        time.sleep(pause)
