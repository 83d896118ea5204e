"""What Elmer costs a workstation that does nothing, and how long a pass over many threads takes."""
import os
import re
import time

import harness
from harness import Failure, at_most, until

NAME = "weight"
ABOUT = "rsd at rest, its memory, a supervisor's, a pass over 1,000 threads"
FIGURES = ["weight.rsd_cpu", "weight.rsd_memory", "weight.rsd_wakeups", "weight.supervisor_memory", "weight.elmer_cpu",
           "weight.elmer_wakeups", "weight.pass"]
SUPERVISORS = "elmer.slice/elmer-jobs.scope"


class Processes:
    """Those of control groups, looked at from this machine."""

    def __init__(self, *groups):
        self.pids = []
        for group in groups:
            with open(os.path.join(group, "cgroup.procs"), encoding="ascii") as file:
                self.pids += file.read().split()
        if not self.pids:
            raise Failure(f"nothing runs in {' '.join(groups)}")

    @staticmethod
    def tasks(pid):
        return os.listdir(f"/proc/{pid}/task")

    def wakeups(self):
        """How often a thread of theirs has slept and got up again."""
        total = 0
        for pid in self.pids:
            for task in self.tasks(pid):
                with open(f"/proc/{pid}/task/{task}/status", encoding="utf-8") as file:
                    total += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", file.read(), re.M).group(1))
        return total

    def cpu_seconds(self):
        """Exact to the nanosecond, not to the tick."""
        total = 0
        for pid in self.pids:
            for task in self.tasks(pid):
                with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                    total += int(file.read().split()[0])
        return total / 1e9

    def private_mb(self):
        total = 0
        for pid in self.pids:
            with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
                total += sum(int(kb) for kb in re.findall(r"^Private_\w+:\s*(\d+)", file.read(), re.M))
        return total / 1024


def rest(processes, seconds):
    """(CPU in percent of one, wake-ups per second) of each over so long a time."""
    begin = [(each.cpu_seconds(), each.wakeups(), time.monotonic()) for each in processes]
    time.sleep(seconds)
    end = [(each.cpu_seconds(), each.wakeups(), time.monotonic()) for each in processes]
    return [(100 * (cpu - cpu0) / (now - now0), (wakeups - wakeups0) / (now - now0)) for (cpu0, wakeups0, now0), (cpu, wakeups, now) in zip(begin, end)]


def at_rest(bench, lab):
    """rsd on the second node, which has nothing but its rsd; elmer on the first."""
    seconds, rounds = bench.size(20, 4.2), bench.size(5, 1)
    rsd = Processes(*(os.path.join(lab.group(2), f"system.slice/{unit}.service") for unit in ("rsd", "rsd-spawn", "rsd-net", "rsd-tickets")))
    elmer = Processes(os.path.join(lab.group(1), "system.slice/elmer.service"))
    pauses = [rest([rsd, elmer], seconds) for _ in range(rounds)]
    for name, values, bar in zip(("rsd", "elmer"), zip(*pauses), (at_most(0.1), None)):
        bench.figure(f"weight.{name}_cpu", [cpu for cpu, _ in values], "%", bar, report_s=2, seconds=seconds)
        bench.figure(f"weight.{name}_wakeups", [wakeups for _, wakeups in values], "1/s", report_s=2, seconds=seconds)
    bench.figure("weight.rsd_memory", [rsd.private_mb()], "MB", at_most(5), processes=len(rsd.pids))


def supervisor_memory(bench, lab):
    job = lab.output("alice", "esubmit", "--hosts", "ws2", "-o", "/dev/null", "1", "sleep", "600").strip()
    group = os.path.join(lab.group(2), SUPERVISORS, f"{job}.1", "sup")
    until(10, "the job runs", lambda: lab.jobs(job)[0]["state"] == "running")
    bench.figure("weight.supervisor_memory", [Processes(group).private_mb()], "MB", at_most(1))
    lab.output("alice", "ekill", job)
    until(10, "the job has ended", lambda: lab.jobs(job)[0]["state"] == "done")


def passes(lab):
    """What rsd on the second node says of the orders that it has applied: {generation: ms}."""
    matches = (re.match(r"order (\d+) of \d+ jobs is applied in (\d+) us", line) for line in lab.said("rsd", 2))
    return {int(match[1]): int(match[2]) / 1000 for match in matches if match}


def pass_over(bench, lab, threads, rounds):
    """A job of so many threads sleeps in SCHED_OTHER; each time another one comes all have to be in SCHED_FIFO before it starts."""
    lab.give(os.path.join(harness.build_dir(), "tests/system/testjob"), "/home/testjob")
    lab.debug("rsd", 2)
    here = ("--hosts", "ws2", "-o", "/dev/null", "1")
    until(20, "ws2 is back", lambda: lab.output("alice", "esubmit", "-w", *here, "true"))
    job = lab.output("alice", "esubmit", *here, "/home/testjob", "--threads", threads, "--work-us", "1", "--wait-us", "500000", "600").strip()
    tasks = os.path.join(lab.group(2), SUPERVISORS, f"{job}.1", "job", "cgroup.threads")

    def all_there():
        try:
            with open(tasks, encoding="ascii") as file:
                return len(file.read().split()) >= int(threads)
        except OSError:
            return False
    until(30, f"{threads} threads", all_there)
    known = set(passes(lab))
    for _ in range(rounds):
        lab.output("alice", "esubmit", "-w", *here, "true")
    # of the two orders for each, the one that ranks the threads is the long one, so is the one that takes them back
    took = until(10, "rsd tells of its orders", lambda: sorted(value for g, value in passes(lab).items() if g not in known)[-rounds:])
    bench.figure("weight.pass", took, "ms", at_most(20), threads=int(threads))
    lab.output("alice", "ekill", job)


def run(bench):
    with bench.lab(2) as lab:
        at_rest(bench, lab)
        supervisor_memory(bench, lab)
        pass_over(bench, lab, str(bench.size(1000, 100)), bench.size(20, 2))
