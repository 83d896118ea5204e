#!/usr/bin/env python3
"""The first experiment of Elmer, on booted workstations of tests/lab: what does the first job pay for a second one?

Runs, in each round: barrier alone, ep alone, one after the other, both at once with barrier first. Prints a table of the medians and
their spread (min..max), and the ratio of barrier's turnaround shared : alone. Every figure comes from `equery --json`, times of Elmer's
own records; nothing is kept between runs.

usage: shared_alone.py [--rounds N] [--nprocs N] [--json FILE]
The lab must be up, with the allocator v1 (v2 would keep the second job waiting until the first leaves its processors half idle).
"""
import argparse
import datetime
import json
import os
import shlex
import statistics
import subprocess
import sys

LAB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lab", "lab")
BARRIER = ["/usr/libexec/elmer/examples/barrier", "-v", "3"]
EP = ["/usr/libexec/elmer/examples/ep"]
DEADLINE_S = 300  # of one job; a hung one fails the experiment


def login(command, **options):
    """Run a shell command as alice on ws1; raise with its messages when it fails."""
    done = subprocess.run([LAB, "login", "1", "alice", "sh", "-c", command], capture_output=True, text=True, timeout=DEADLINE_S, **options)
    if done.returncode != 0:
        sys.exit(f"shared_alone: '{command}' ended with {done.returncode}: {done.stderr.strip()}")
    return done


def submit(options, command, nprocs, log):
    done = login("esubmit " + shlex.join(options + [str(nprocs)] + command))
    log(done.stderr.strip())
    return int(done.stdout)


def seconds(stamp):
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


def wait(ids, nprocs):
    """Wait for the jobs to end (esubmit's own wait, by a query with a deadline) and return their records in order of ids."""
    text = " ".join(map(str, ids))
    poll = f"i=0; while equery --json {text} | grep -q '\"ended\": *null'; do i=$((i+1)); [ $i -lt {DEADLINE_S * 10} ] || exit 9; sleep 0.1; done; equery --json {text}"
    jobs = {job["id"]: job for job in json.loads(login(poll).stdout)["jobs"]}
    for number in ids:
        job = jobs[number]
        if job["exit_status"] != 0:
            sys.exit(f"shared_alone: job {number} ({job['name']}) ended with {job['exit_status']}, {job['reason']}; output in its directory on ws1")
    return [jobs[number] for number in ids]


def turnaround(job):
    return seconds(job["ended"]) - seconds(job["submitted"])


class Round:
    """One pass over the four cases."""

    def __init__(self, arguments, log):
        self.nprocs, self.log = arguments.nprocs, log
        self.barrier = (["--pvm", "-J", "barrier"], BARRIER + ["-P", str(arguments.nprocs), "-f", str(arguments.factor)])
        self.ep = (["--pvm", "-J", "ep"], EP + ["-P", str(arguments.nprocs), "-m", str(arguments.size)])

    def one(self, job):
        return wait([submit(*job, self.nprocs, self.log)], self.nprocs)[0]

    def run(self):
        alone_barrier, alone_ep = self.one(self.barrier), self.one(self.ep)
        first, second = self.one(self.barrier), self.one(self.ep)
        ids = [submit(*self.barrier, self.nprocs, self.log), submit(*self.ep, self.nprocs, self.log)]
        if self.log is not None:
            self.log(login("equery").stdout.rstrip())
        shared = wait(ids, self.nprocs)
        return {
            "barrier alone": turnaround(alone_barrier),
            "ep alone": turnaround(alone_ep),
            "one after the other: barrier": turnaround(first),
            "one after the other: ep": turnaround(second),
            "one after the other: makespan": seconds(second["ended"]) - seconds(first["submitted"]),
            "both at once: barrier": turnaround(shared[0]),
            "both at once: ep": turnaround(shared[1]),
            "both at once: makespan": max(seconds(job["ended"]) for job in shared) - seconds(shared[0]["submitted"]),
            "barrier shared : alone": turnaround(shared[0]) / turnaround(alone_barrier),
            "makespan shared : one after the other": (max(seconds(job["ended"]) for job in shared) - seconds(shared[0]["submitted"]))
            / (seconds(second["ended"]) - seconds(first["submitted"])),
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nprocs", type=int, default=2)
    parser.add_argument("--factor", type=float, default=5, help="of the work of barrier v3")
    parser.add_argument("--size", type=int, default=28, help="ep: 2^SIZE pairs")
    parser.add_argument("--json", help="write every round's figures to this file")
    arguments = parser.parse_args()
    rounds = []
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds}", flush=True)
        talk = (lambda text: print("  " + text.replace("\n", "\n  "), flush=True)) if number == 0 else (lambda text: None)
        rounds.append(Round(arguments, talk).run())
    print()
    table(rounds)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rounds, file, indent=1)
    shared = statistics.median(figures["barrier shared : alone"] for figures in rounds)
    makespan = statistics.median(figures["makespan shared : one after the other"] for figures in rounds)
    print()
    print(f"The first job pays {100 * (shared - 1):+.1f} % for the second one; both together take {100 * makespan:.0f} % of the time of one after the other.")


if __name__ == "__main__":
    main()
