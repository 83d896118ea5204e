#!/usr/bin/env python3
"""The first experiment of Elmer, on booted workstations of tests/lab: what does the first job pay for a second one?

Runs, in each round: barrier alone, ep alone, one after the other, both at once with barrier first. Prints a table of the medians and
their spread (min..max), and the ratio of barrier's turnaround shared : alone. Every figure comes from `equery --json`, times of Elmer's
own records; nothing is kept between runs.

usage: shared_alone.py [--rounds N] [--nprocs N] [--factor F] [--ep-class C] [--json FILE] [--first-at-most R] [--both-at-most R]
The exit status is 0 only if every job has ended well, every figure was made of two jobs that really shared, and the medians of the two
ratios are within these bounds (1.1 and 1: without order the first job pays half of its time and more). The lab must be up, with the allocator v1 (v2 would keep the second job waiting until the first leaves its processors half idle).
"""
import argparse
import datetime
import json
import math
import os
import statistics
import subprocess
import sys

LAB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lab", "lab")
BARRIER = ["/usr/libexec/elmer/examples/barrier", "-v", "3"]
EP = ["/usr/libexec/elmer/examples/ep"]
DEADLINE_S = 300  # of one job; a hung one fails the experiment


def login(*command):
    """The words of a command to run as alice on ws1, from a login shell."""
    return [LAB, "login", "1", "alice", *command]


def output(*command):
    done = subprocess.run(login(*command), capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    if done.returncode != 0:
        sys.exit(f"shared_alone: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class Job:
    """A submitted job; esubmit -w waits for its end, so that nothing has to poll while the figures are made."""

    def __init__(self, options, command, nprocs, log):
        words = login("esubmit", "-w", *options, str(nprocs), *command)
        self.waiting = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.waiting.stdout.readline()
        said = self.waiting.stderr.readline()
        if not line.strip().isdigit():
            sys.exit(f"shared_alone: esubmit: {said.strip()}")
        self.id = int(line)
        log(said.strip())

    def wait(self):
        """Returns the job's record."""
        _, errors = self.waiting.communicate(timeout=DEADLINE_S)
        record = json.loads(output("equery", "--json", str(self.id)))["jobs"][0]
        if self.waiting.returncode != 0 or record["exit_status"] != 0:
            sys.exit(f"shared_alone: job {self.id} ({record['name']}) failed: {record['reason']} {errors.strip()}")
        return record


def seconds(stamp):
    if not stamp:
        sys.exit("shared_alone: a job's record lacks a time that a figure is made of")
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


def turnaround(job):
    return seconds(job["ended"]) - seconds(job["submitted"])


def makespan(jobs):
    return max(seconds(job["ended"]) for job in jobs) - min(seconds(job["submitted"]) for job in jobs)


class Round:
    """One pass over the four cases."""

    def __init__(self, arguments, log):
        processes = ["-P", str(arguments.nprocs)]
        self.nprocs, self.log = arguments.nprocs, log
        self.barrier = (["--pvm", "-J", "barrier"], BARRIER + processes + ["-f", str(arguments.factor)])
        self.ep = (["--pvm", "-J", "ep"], EP + processes + ["-c", arguments.ep_class])

    def submit(self, job):
        return Job(*job, self.nprocs, self.log)

    def alone(self, job):
        return self.submit(job).wait()

    def shared(self):
        first, second = self.submit(self.barrier), self.submit(self.ep)
        self.log(output("equery", "-r"))
        barrier = first.wait()
        self.log(f"job {first.id} has ended: job {second.id} moves up")
        self.log(output("equery", "-r"))
        ep = second.wait()
        if sum(ep["level_seconds"][1:]) <= 0:
            sys.exit(f"shared_alone: job {second.id} has never been below job {first.id}: nothing was shared")
        return barrier, ep

    def run(self):
        self.log("\nbarrier alone:")
        barrier = self.alone(self.barrier)
        self.log("\nep alone:")
        ep = self.alone(self.ep)
        self.log("\none after the other:")
        after = self.alone(self.barrier), self.alone(self.ep)
        self.log("\nboth at once, barrier first:")
        shared = self.shared()
        return {
            "barrier alone": turnaround(barrier),
            "ep alone": turnaround(ep),
            "one after the other: barrier": turnaround(after[0]),
            "one after the other: ep": turnaround(after[1]),
            "one after the other: makespan": makespan(after),
            "both at once: barrier": turnaround(shared[0]),
            "both at once: ep": turnaround(shared[1]),
            "both at once: makespan": makespan(shared),
            "barrier, shared : alone": turnaround(shared[0]) / turnaround(barrier),
            "makespan, shared : one after the other": makespan(shared) / makespan(after),
        }


def table(rounds):
    width = max(map(len, rounds[0]))
    print(f"{'':{width}}  {'median':>8}  {'min':>8}  {'max':>8}")
    for name in rounds[0]:
        values = [figures[name] for figures in rounds]
        unit = "" if " : " in name else " s"
        digits = 3 if " : " in name else 2
        cells = "  ".join(f"{value:>{8 - len(unit)}.{digits}f}{unit}" for value in (statistics.median(values), min(values), max(values)))
        print(f"{name:{width}}  {cells}")


def missed(rounds, bounds):
    """What is wrong with the figures, as lines."""
    for name in rounds[0]:
        if not all(math.isfinite(figures[name]) and figures[name] > 0 for figures in rounds):
            yield f"{name}: a figure is missing"
    for name, limit in bounds.items():
        median = statistics.median(figures[name] for figures in rounds)
        if not median <= limit:
            yield f"{name}: {median:.3f}, and at most {limit:g} is promised"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nprocs", type=int, default=2)
    parser.add_argument("--factor", type=float, default=6, help="of the work of barrier v3")
    parser.add_argument("--ep-class", default="B", help="size of ep, as in the NAS benchmarks")
    parser.add_argument("--json", help="write every round's figures to this file")
    parser.add_argument("--first-at-most", type=float, default=1.1, metavar="R", help="bound of barrier's turnaround, shared : alone")
    parser.add_argument("--both-at-most", type=float, default=1, metavar="R", help="bound of the makespan, shared : one after the other")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("at least one round is needed")
    rounds = []
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds}", flush=True)
        talk = (lambda text: print(text.rstrip(), flush=True)) if number == 0 else (lambda text: None)
        rounds.append(Round(arguments, talk).run())
    print()
    table(rounds)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rounds, file, indent=1)
    shared = statistics.median(figures["barrier, shared : alone"] for figures in rounds)
    makespan = statistics.median(figures["makespan, shared : one after the other"] for figures in rounds)
    print()
    wrong = list(missed(rounds, {"barrier, shared : alone": arguments.first_at_most,
                                 "makespan, shared : one after the other": arguments.both_at_most}))
    for line in wrong:
        print(f"shared_alone: {line}", file=sys.stderr)
    print(f"The first job pays {100 * (shared - 1):+.1f} % for the second one; both together take {100 * makespan:.0f} % of the time of one after the other.")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
