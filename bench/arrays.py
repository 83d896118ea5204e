"""Arrays: tasks per second and what one costs, and a queue of one array of 100,000."""
import time

from harness import at_least, at_most, ms
from query import elmer_memory_kb, times

NAME = "arrays"
ABOUT = "tasks of arrays per second, and an array of 100,000 that waits"
FIGURES = ["arrays.tasks", "arrays.cpu_per_task", "arrays.esubmit", "arrays.memory", "arrays.elmer_memory", "arrays.equery", "arrays.json", "arrays.ecancel"]


def tasks(bench, nodes, count, rounds):
    """/bin/true on one processor each: from the submission to the last end."""
    rates, costs = [], []
    with bench.lab(nodes) as lab:
        for _ in range(rounds):
            before = lab.cpu_seconds()
            begin = time.monotonic_ns()
            array = int(lab.output("alice", "esubmit", "-w", "-a", f"1-{count}", "-o", "/dev/null", "/bin/true"))
            rates.append(count / ((time.monotonic_ns() - begin) / 1e9))
            costs.append(1000 * (lab.cpu_seconds() - before) / count)
            job = lab.jobs(array)[0]
            if job["tasks_ok"] != count:
                raise ValueError(f"array {array}: {job['tasks_ok']} of {count} tasks have ended well")
    bench.figure("arrays.tasks", rates, "1/s", at_least(600), nodes=nodes, tasks=count)
    bench.figure("arrays.cpu_per_task", costs, "ms", at_most(4), nodes=nodes, tasks=count)


def waiting(bench, length, count):
    """It waits behind a job that has the only processor."""
    with bench.lab(1, elmer=("allocator = v1", "levels = 1")) as lab:
        lab.output("alice", "esubmit", "-o", "/dev/null", "1", "sleep", "36000")
        lab.spawn(3, "equery")
        submits, cancels = [], []
        for _ in range(bench.size(20, 2)):
            submits += lab.spawn(1, "esubmit", "-a", f"1-{length}", "-o", "/dev/null", "/bin/true")[0]
            cancels += lab.spawn(1, "ecancel", submits[-1][2])[0]
        bench.figure("arrays.esubmit", times(submits), "ms", at_most(20), tasks=length)
        bench.figure("arrays.ecancel", times(cancels), "ms", at_most(10), tasks=length)
        before_kb = elmer_memory_kb(lab)
        lab.spawn(1, "esubmit", "-a", f"1-{length}", "-o", "/dev/null", "/bin/true")
        memory = elmer_memory_kb(lab)
        bench.figure("arrays.memory", [(memory - before_kb) / 1024], "MB", at_most(1), tasks=length)
        bench.figure("arrays.elmer_memory", [memory / 1024], "MB", at_most(50), tasks=length)
        bench.figure("arrays.equery", times(lab.spawn(count, "equery")[0]), "ms", at_most(3), tasks=length)
        bench.figure("arrays.json", times(lab.spawn(count, "equery", "--json")[0]), "ms", at_most(400), tasks=length)


def run(bench):
    tasks(bench, 2, bench.size(2000, 40), bench.size(5, 1))
    waiting(bench, bench.size(100000, 1000), bench.size(50, 5))
