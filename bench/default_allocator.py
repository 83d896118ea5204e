#!/usr/bin/env python3
"""What the default allocator, v2, does with the two jobs of shared_alone.py: it puts a job below another only where the processors
were seen to be at most 75 % busy. A job that computes all the time keeps them for itself, one that waits much shares them.

Runs each order once and prints a table of Elmer's own records: how long the second job waited, its level when it started, and when both
were done. A load of the machine's own counts as busy, too.

usage: default_allocator.py [--nprocs N] [--factor F] [--ep-class C]
The lab must be up, with the allocator v2.
"""
import argparse
import sys

from shared_alone import Job, Round, makespan, seconds

HEADINGS = ["first, second", "second waits", "at level", "both done after"]


def level_at_start(job):
    """Levels only fall: the greatest where it has been."""
    return max(level for level, spent in enumerate(job["level_seconds"]) if spent > 0)


def pair(first, second, nprocs):
    """A line of the table."""
    jobs = [Job(*job, nprocs, lambda text: print(text, flush=True)) for job in (first, second)]
    one, two = (job.wait() for job in jobs)
    waited = seconds(two["started"]) - seconds(two["submitted"])
    level = level_at_start(two)
    if level == 0 and seconds(two["started"]) < seconds(one["ended"]):
        sys.exit(f"default_allocator: job {two['id']} ran beside job {one['id']} at its level")
    return [f"{one['name']}, {two['name']}", f"{waited:.2f} s", str(level), f"{makespan([one, two]):.2f} s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nprocs", type=int, default=2)
    parser.add_argument("--factor", type=float, default=6, help="of the work of barrier v3")
    parser.add_argument("--ep-class", default="B", help="size of ep, as in the NAS benchmarks")
    arguments = parser.parse_args()
    jobs = Round(arguments, print)
    rows = [HEADINGS, pair(jobs.ep, jobs.barrier, arguments.nprocs), pair(jobs.barrier, jobs.ep, arguments.nprocs)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    print()
    for row in rows:
        print("  ".join([row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]))


if __name__ == "__main__":
    main()
