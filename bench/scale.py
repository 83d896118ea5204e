"""How elmer grows with the number of hosts: tests/scale/fakehosts speaks for all of them, over real TLS links, to the real elmer.

Both run on this machine, in a network namespace of their own, outside of the lab. How long a decision takes elmer says itself
(ELMER_LOG=debug): "decided" is the core alone, "done" with the orders to all hosts of the job written to their links.
"""
import contextlib
import math
import os
import re
import resource
import shutil
import signal
import sqlite3
import statistics
import subprocess
import tempfile
import time

import harness
from harness import Failure, at_most, until

NAME = "scale"
ABOUT = "one elmer and very many hosts"
FIGURES = ["scale.link", "scale.rest_cpu", "scale.memory_per_host", "scale.allocate", "scale.allocate_done", "scale.recompute",
           "scale.recompute_done", "scale.memory_per_job", "scale.memory", "scale.growth"]
ADDRESS = "127.0.0.1:7110"
USER = 65534  # nobody: submits the jobs
LEVELS = 4
REPORT_S = 5


class Cluster:
    """An elmer and its hosts."""

    def __init__(self, hosts):
        self.hosts, self.children = hosts, []
        self.dir = tempfile.mkdtemp(prefix="elmer-scale-")
        self.log = os.path.join(self.dir, "log")
        self.environment = dict(os.environ, ELMER_SOCKET=os.path.join(self.dir, "elmer.sock"), ELMER_LOG="debug")

    def program(self, name):
        return os.path.join(harness.build_dir(), name)

    def path(self, name):
        return os.path.join(self.dir, name)

    def configure(self):
        os.chmod(self.dir, 0o755)
        names = " ".join(f"h{i}" for i in range(self.hosts))
        with open(self.path("elmer.conf"), "w", encoding="ascii") as file:
            file.write(f"[elmer]\nname = queue\nlisten = {ADDRESS}\npki = {self.path('pki')}\nhosts = {names}\nallocator = v1\nlevels = {LEVELS}\n"
                       f"report_interval = {REPORT_S}s\nstore = {self.path('elmer.db')}\nsocket = {self.path('elmer.sock')}\n"
                       f"host_socket = {self.path('host.sock')}\nstart_timeout = 10m\nhost_timeout = 5m\nseed = 1\n")

    def furnish(self):
        """Certificates, and elmer's memory of having passed them on."""
        made = subprocess.run([self.program("tests/scale/fakehosts"), "make", self.dir, str(self.hosts)], capture_output=True, text=True, check=True)
        rows = [(serial, name, int(begin), int(end)) for serial, name, begin, end in map(str.split, made.stdout.splitlines())]
        self.start_elmer()  # makes the store
        self.stop(self.children.pop())
        with contextlib.closing(sqlite3.connect(self.path("elmer.db"))) as store, store:
            store.executemany("INSERT INTO certificate VALUES(?, ?, ?, ?, NULL)", rows)

    def begin(self, *words, **options):
        words = ["nsenter", "--net", "-t", str(self.children[0].pid), *words] if self.children else list(words)
        child = subprocess.Popen(words, env=self.environment, start_new_session=True, **options)
        self.children.append(child)
        return child

    def namespace(self):
        child = self.begin("unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep infinity", stdout=subprocess.PIPE, text=True)
        if child.stdout.readline().strip() != "up":
            raise Failure("no network namespace")

    def start_elmer(self):
        with open(self.log, "a", encoding="utf-8") as log:
            self.elmer = self.begin(self.program("elmer/elmer"), "-c", self.path("elmer.conf"), stderr=log)

        def ready():
            if self.elmer.poll() is not None:
                raise Failure(f"elmer has ended: {self.said()[-1:]}")
            return os.path.exists(self.environment["ELMER_SOCKET"])
        until(60, "elmer listens", ready)

    def link(self):
        """All hosts; returns how long it took."""
        begin = time.monotonic()
        fakes = self.begin(self.program("tests/scale/fakehosts"), "run", self.dir, str(self.hosts), ADDRESS, stdout=subprocess.PIPE, text=True)
        line = fakes.stdout.readline().strip()
        if line != "linked":
            raise Failure(f"fakehosts: {line or 'has ended'}: {self.said()[-1:]}")
        return time.monotonic() - begin

    @staticmethod
    def stop(child):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    def close(self):
        for child in reversed(self.children):
            self.stop(child)
        shutil.rmtree(self.dir, ignore_errors=True)

    # ---- looking ----

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()

    def memory_mb(self):
        with open(f"/proc/{self.elmer.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"^VmRSS:\s*(\d+)", file.read(), re.M).group(1)) / 1024

    def cpu_seconds(self):
        total = 0
        for task in os.listdir(f"/proc/{self.elmer.pid}/task"):
            with open(f"/proc/{self.elmer.pid}/task/{task}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
        return total / 1e9

    def steps(self, event, after):
        """[(decided, done)] in ms of elmer's steps for such events, from that line of its log on."""
        pattern = re.compile(rf"elmer: at \d+ us: {event} .*, decided in (\d+) us, done in (\d+) us")
        return [(int(m[1]) / 1000, int(m[2]) / 1000) for m in map(pattern.match, self.said()[after:]) if m]

    # ---- jobs ----

    def command(self, *words):
        done = subprocess.run([self.program(words[0]), *map(str, words[1:])], env=self.environment, user=USER, group=USER, extra_groups=[], cwd="/",
                              capture_output=True, text=True, timeout=900, check=False)
        if done.returncode != 0:
            raise Failure(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
        return done.stdout

    def submit(self, count, nprocs, threads=1):
        """The first id."""
        return int(self.command("bench/driver", "submit", "-p", threads, count, nprocs, "/bin/true").split()[2])

    def state(self, job):
        """None when elmer has not answered in time: whoever waits asks again, until his own deadline."""
        try:
            return re.search(r'"state": ?"(\w+)"', self.command("client/equery", "--json", job)).group(1)
        except Failure:
            return None

    def kill(self, job):
        self.command("client/ekill", job)
        until(120, f"job {job} has ended", lambda: self.state(job) == "done")


def allocate(bench, cluster, rounds):
    """A job of 1, of a tenth and of all processors, on an empty cluster."""
    n = cluster.hosts
    for nprocs in (1, n // 10, n):
        before = len(cluster.said())
        for _ in range(rounds):
            job = cluster.submit(1, nprocs)
            until(120, f"job {job} runs", lambda job=job: cluster.state(job) == "running")
            cluster.kill(job)
        steps = cluster.steps("submit", before)
        bar = at_most(20) if n == 10000 else None
        bench.figure("scale.allocate", [decided for decided, _ in steps], "ms", bar, hosts=n, nprocs=nprocs)
        bench.figure("scale.allocate_done", [done for _, done in steps], "ms", hosts=n, nprocs=nprocs)


def recompute(bench, cluster, rounds):
    """Every processor holds as many jobs as there are levels, each on a tenth of them; one ends and the next comes in from the queue."""
    n = cluster.hosts
    first = cluster.submit(10 * LEVELS + rounds, n // 10)
    until(300, "the cluster is full", lambda: cluster.state(first + 10 * LEVELS - 1) == "running")
    before = len(cluster.said())
    for job in range(first, first + rounds):
        cluster.kill(job)
    # the last host of each that is empty makes the core compute; the others only count
    steps = sorted(cluster.steps("empty", before), reverse=True)[:rounds]
    bench.figure("scale.recompute", [decided for decided, _ in steps], "ms", at_most(20) if n == 10000 else None, hosts=n, levels=LEVELS)
    bench.figure("scale.recompute_done", [done for _, done in steps], "ms", hosts=n, levels=LEVELS)


def queue(bench, cluster, count):
    before = cluster.memory_mb()
    cluster.submit(count, cluster.hosts, threads=32)
    bench.figure("scale.memory_per_job", [1024 * (cluster.memory_mb() - before) / count], "KB", hosts=cluster.hosts, queued=count)
    bench.figure("scale.memory", [cluster.memory_mb()], "MB", at_most(1024) if cluster.hosts == 10000 else None, hosts=cluster.hosts, queued=count)


def one_size(bench, hosts):
    cluster = Cluster(hosts)
    try:
        cluster.configure()
        cluster.namespace()
        cluster.furnish()
        cluster.start_elmer()
        empty = cluster.memory_mb()
        bench.figure("scale.link", [cluster.link()], "s", hosts=hosts)
        bench.figure("scale.memory_per_host", [1024 * (cluster.memory_mb() - empty) / hosts], "KB", hosts=hosts)
        cpu, begin = cluster.cpu_seconds(), time.monotonic()
        time.sleep(bench.size(30, 3))
        share = 100 * (cluster.cpu_seconds() - cpu) / (time.monotonic() - begin)
        bench.figure("scale.rest_cpu", [share], "%", at_most(25) if hosts == 10000 else None, hosts=hosts, report_s=REPORT_S)
        allocate(bench, cluster, bench.size(5, 1))
        recompute(bench, cluster, bench.size(5, 1))
        queue(bench, cluster, bench.size(100000 if hosts == 10000 else 10000, 200))
    finally:
        with harness.undisturbed():
            cluster.close()


def exponent(points):
    """b of a x n^b, by least squares of the logarithms."""
    x, y = ([math.log(value) for value in values] for values in zip(*points))
    return statistics.linear_regression(x, y).slope


def growth(bench, name, sizes):
    """How a figure grows with the hosts; of jobs on all processors, where there are some. Over all sizes, and over the last two: small ones are partly what does
    not grow, and from 10,000 on the hosts no longer fit into the processor's cache. The bar is what n log n would give."""
    values = {record["parameters"]["hosts"]: max(record["value"], 1e-3) for record in bench.records
              if record["name"] == name and record["parameters"].get("nprocs") in (None, record["parameters"]["hosts"])}
    bar = at_most(round(exponent([(n, n * math.log(n)) for n in sizes]), 3)) if len(sizes) > 2 else None
    bench.figure("scale.growth", [exponent([(n, values[n]) for n in sizes])], "exponent", bar, of=name, hosts=f"{sizes[0]}..{sizes[-1]}")


def run(bench):
    sizes = bench.size([100, 1000, 10000], [20, 100])
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    for hosts in sizes:
        one_size(bench, hosts)
    for name in ("scale.allocate", "scale.recompute", "scale.rest_cpu", "scale.link"):
        growth(bench, name, sizes)
        if len(sizes) > 2:
            growth(bench, name, sizes[-2:])
