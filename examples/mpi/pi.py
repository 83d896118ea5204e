#!/usr/bin/python3
"""pi.py - the number pi by the midpoint rule, each rank a part of it: a program of mpi4py to try.

pi.py [INTERVALS]    default 10^6; rank 0 prints the number of ranks and of hosts, and pi
"""
import sys

from mpi4py import MPI

intervals = int(sys.argv[1]) if len(sys.argv) > 1 else 10**6
world = MPI.COMM_WORLD
hosts = world.gather(MPI.Get_processor_name())
width = 1 / intervals
part = width * sum(4 / (1 + ((i + 0.5) * width) ** 2) for i in range(world.rank, intervals, world.size))
pi = world.reduce(part)
if world.rank == 0:
    print(f"{world.size} ranks on {len(set(hosts))} hosts: pi is {pi:.9f}")
