"""What the kernel of this machine keeps from real time, for as long as something is measured: what rsd does for rt_reserve, for nodes that
may not. A machine with RT_GROUP_SCHED has a budget for the root group as well, where the v1 hierarchy is mounted."""
import contextlib
import glob
import os
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
from harness import Failure, undisturbed  # noqa: E402

SYSCTL = "/proc/sys/kernel/sched_rt_{}_us"
SERVERS = "/sys/kernel/debug/sched/fair_server/cpu*"


def number(path):
    with open(path, encoding="ascii") as file:
        return int(file.read())


def group_budget():
    """The pattern of the root group's two files, or None."""
    with open("/proc/self/mounts", encoding="utf-8") as file:
        for line in file:
            _, where, kind, options, *_ = line.split()
            if kind == "cgroup" and "cpu" in options.split(",") and glob.glob(f"{where}/cpu.rt_runtime_us"):
                return where + "/cpu.rt_{}_us"
    return None


def servers():
    """Directories of those that can be read: a kernel that is locked down lets nobody."""
    for server in glob.glob(SERVERS):
        try:
            number(f"{server}/runtime")
        except OSError:
            continue
        yield server


def wanted(percent, period_ms):
    """[(path, value)] in an order in which no runtime is above its period and no group above the whole, if the period does not grow."""
    period = period_ms * 1000
    parts = [part for part in (group_budget(), SYSCTL) if part]
    if period == number(SYSCTL.format("period")) and period // 100 * (100 - percent) > number(SYSCTL.format("runtime")):
        parts.reverse()  # more for real time: the whole first. (With a shorter period the share is small until that is set.)
    settings = [(part.format("runtime"), period // 100 * (100 - percent)) for part in parts]
    settings += [(part.format("period"), period) for part in reversed(parts)]
    for server in servers():
        settings += [(f"{server}/runtime", period * 1000 // 100 * percent), (f"{server}/period", period * 1000)]
    return settings


def put(path, value):
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(str(value))
    except OSError as error:
        raise Failure(f"{path} cannot be set to {value}: {error.strerror}") from None


@contextlib.contextmanager
def kernel_keeps(percent, period_ms):
    """A context manager; its value says what was set. A fair server that is locked keeps its 5 % of a second."""
    done = []
    try:
        for path, value in wanted(percent, period_ms):
            before = number(path)
            if before != value:
                put(path, value)
                done.append((path, before))
        yield ", ".join(f"{path} {number(path)}" for path, _ in done) or "nothing: it is so"
    finally:
        with undisturbed():
            for path, before in reversed(done):
                put(path, before)


def settle(period_ms):
    """Wait until real time goes on, as a process of that class. What it has used of the period before, which was longer, is more than
    the shorter one has, and the kernel takes it back first: everything in FIFO stands still for up to a second."""
    here, deadline = os.sched_getaffinity(0), time.monotonic() + 20
    for cpu in here:
        os.sched_setaffinity(0, {cpu})
        good = 0
        while good < 3:
            begin = time.monotonic()
            time.sleep(period_ms / 1000)
            good = good + 1 if time.monotonic() - begin < 2 * period_ms / 1000 else 0
            if time.monotonic() > deadline:
                raise Failure(f"real time stands still on processor {cpu}")
    os.sched_setaffinity(0, here)


def works():
    """Whether what can be set here decides: from 6.12 on a kernel has a throttle for groups only, and else the fair server."""
    major, minor = (int(word) for word in re.match(r"(\d+)\.(\d+)", os.uname().release).groups())
    return (major, minor) < (6, 12) or group_budget() is not None or any(servers())


def main():
    """kernel_keeps.py PERCENT MS: set it, say so, and put it back at the end of the standard input."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if not works():
            raise Failure("this kernel's fair server cannot be set here")
        with kernel_keeps(int(sys.argv[1]), int(sys.argv[2])) as said:
            settle(int(sys.argv[2]))
            print(said, flush=True)
            sys.stdin.read()
    except Failure as failure:
        print(f"refused: {failure}", flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
