#!/usr/bin/python3
"""dask_pi.py - a cluster of Dask in a job: the scheduler here, a worker on each processor of the job, and pi by chance from all of them.

esubmit NPROCS ./dask_pi.py [TASKS]    default 100 tasks of 10,000 points each

The workers are processes of the job, started by erun: they end with it.
"""
import os
import random
import subprocess
import sys

from distributed import Client, LocalCluster

POINTS = 10000


def inside(seed):
    """How many of POINTS points of the unit square are in the circle."""
    chance = random.Random(seed)
    return sum(chance.random() ** 2 + chance.random() ** 2 < 1 for _ in range(POINTS))


def main():
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    nprocs = int(os.environ["ELMER_NPROCS"])
    # The address by which the hosts of the job reach this one; there is none where it is the only one.
    with LocalCluster(n_workers=0, host=os.environ.get("ELMER_ADDRESS", "127.0.0.1"), dashboard_address=None) as cluster:
        workers = subprocess.Popen(["erun", "--each", "dask-worker", cluster.scheduler_address, "--nthreads", "1", "--no-nanny",
                                    "--no-dashboard", "--death-timeout", "60"], stderr=subprocess.DEVNULL)
        try:
            with Client(cluster) as client:
                client.wait_for_workers(nprocs, timeout=60)
                hosts = {worker["host"] for worker in client.scheduler_info()["workers"].values()}
                pi = 4 * sum(client.gather(client.map(inside, range(tasks)))) / (tasks * POINTS)
                print(f"{nprocs} workers on {len(hosts)} hosts: pi is about {pi:.3f}")
        finally:
            workers.kill()  # the end of erun ends what it has started
            workers.wait()


if __name__ == "__main__":
    main()
