#!/usr/bin/python3
"""pace - a command whose input or output is read by somebody who takes his time.

  pace.py still|slow BYTES in|out COMMAND..

in: what the command reads comes to it so; out: what it prints goes on so. `still` stands when BYTES have come, makes
the file half.WAY in the home, and goes on as soon as there is go.WAY; `slow` takes four seconds for BYTES.
"""
import os
import sys
import time

how, size, way = sys.argv[1], int(sys.argv[2]), sys.argv[3]
home = os.environ['HOME']
reads, writes = os.pipe()
if os.fork() > 0:
    os.dup2(*((reads, 0) if way == 'in' else (writes, 1)))
    os.closerange(3, 100)
    os.execvp(sys.argv[4], sys.argv[4:])
os.dup2(*((writes, 1) if way == 'in' else (reads, 0)))
os.closerange(2, 100)
os.set_blocking(0, True)  # rsync makes them sockets that do not
os.set_blocking(1, True)
done = 0
while True:
    piece = os.read(0, 65536)
    if not piece:
        break
    done += len(piece)
    if how == 'slow':
        time.sleep(4 * len(piece) / size)
    elif done >= size > done - len(piece):
        open(f'{home}/half.{way}', 'w').close()
        while not os.path.exists(f'{home}/go.{way}'):
            time.sleep(0.05)
    while piece:
        piece = piece[os.write(1, piece):]
