#!/usr/bin/python3
"""sit - somebody at a terminal, as a script says.

  sit.py ROWSxCOLUMNS STEP.. -- COMMAND..

The command runs at a terminal of that size. Steps, in this order:
  see:REGEX      wait until what has been shown since the last `type` matches (60 s at most)
  type:TEXT      type it, with \\r and the like as in Python; what was shown before counts no more
  size:RxC       the terminal has another size from now on
  signal:NAME    to the command
  mark:FILE      make it, for who watches
  await:FILE     wait until it is there (120 s at most)
  end            wait until the command has ended (120 s at most)
It prints what was shown, and a last line: its exit status, or -N, and whether the terminal's modes are as they were.
A step that fails is named there too.
"""
import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time


class Failed(Exception):
    pass


class Seat:
    def __init__(self, size, command):
        self.shown = b''
        self.all = b''
        self.status = None
        begins, begin = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.read(begins, 1)  # the terminal has its size, and is known as it is
            os.execvp(command[0], command)
        self.size(size)
        self.before = self.modes()
        os.write(begin, b'.')

    def size(self, size):
        rows, columns = (int(number) for number in size.split('x'))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def modes(self):
        try:
            return termios.tcgetattr(self.fd)[:4]
        except termios.error:
            return None

    def read(self):
        if not select.select([self.fd], [], [], 0.05)[0]:
            return
        try:
            got = os.read(self.fd, 65536)
        except OSError:
            got = b''
        if not got:
            time.sleep(0.01)
        self.shown += got
        self.all += got

    def until(self, seconds, condition, what):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise Failed(what)
            self.read()

    def ended(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def step(self, step):
        verb, _, rest = step.partition(':')
        if verb == 'see':
            self.until(60, lambda: re.search(rest.encode(), self.shown, re.S), step)
        elif verb == 'type':
            text = codecs.decode(rest, 'unicode_escape').encode('latin-1')
            self.shown = b''
            while text:
                text = text[os.write(self.fd, text):]
        elif verb == 'size':
            self.size(rest)
        elif verb == 'signal':
            os.kill(self.pid, getattr(signal, 'SIG' + rest))
        elif verb == 'mark':
            with open(rest, 'w'):
                pass
        elif verb == 'await':
            self.until(120, lambda: os.path.exists(rest), step)
        elif verb == 'end':
            self.until(120, self.ended, step)
        else:
            raise Failed(step)


def main():
    cut = sys.argv.index('--')
    seat = Seat(sys.argv[1], sys.argv[cut + 1:])
    failed = ''
    try:
        for step in sys.argv[2:cut]:
            seat.step(step)
    except Failed as why:
        failed = f' failed at {why}'
    for _ in range(20):
        seat.read()
    modes = seat.modes()
    same = modes == seat.before
    if not seat.ended():
        os.kill(seat.pid, signal.SIGKILL)
    sys.stdout.buffer.write(seat.all)
    print(f'\nstatus {seat.status} modes {"same" if same else f"changed from {seat.before} to {modes}"}{failed}')


main()
