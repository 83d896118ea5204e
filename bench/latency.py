"""From the start of esubmit to the job's first instruction and to esubmit's own end, one job at a time on an idle cluster."""
from harness import DRIVER, at_most, ms

NAME = "latency"
ABOUT = "from esubmit to the first instruction"
FIGURES = ["latency.exec", "latency.queued", "latency.elsewhere", "latency.esubmit", "latency.first", "latency.all", "latency.pvm"]


def first_instructions(lab, runs, name):
    """For each run, the delays in ms from the start of esubmit to each process' first instruction, in order."""
    stamps = lab.stamps(name)
    return [sorted(ms(begin - run[0]) for begin, _ in stamps[int(run[2])]) for run in runs]


def plain(bench, lab, nodes, count):
    """With --each, so that every host has a process whose beginning is seen."""
    name = f"each{nodes}"
    runs, _ = lab.spawn(count, "esubmit", "-o", "/dev/null", "--each", nodes, DRIVER, "stamp", f"/home/alice/{name}", options=("-w",))
    delays = first_instructions(lab, runs, name)
    bench.figure("latency.esubmit", [ms(end - begin) for begin, end, _ in runs], "ms", at_most(3), nodes=nodes)
    bench.figure("latency.first", [delay[0] for delay in delays], "ms", nodes=nodes)
    bench.figure("latency.all", [delay[-1] for delay in delays], "ms", at_most(10 if nodes == 1 else 15), nodes=nodes)


def pvm(bench, lab, nodes, count):
    """The command begins when the virtual machine is there."""
    name = f"pvm{nodes}"
    runs, _ = lab.spawn(count, "esubmit", "-o", "/dev/null", "--pvm", nodes, DRIVER, "stamp", f"/home/alice/{name}", options=("-w",))
    delays = first_instructions(lab, runs, name)
    bench.figure("latency.pvm", [delay[0] for delay in delays], "ms", at_most(60), nodes=nodes)


def queued(bench, count):
    """What a durable submission takes where nothing else is to be done: the job waits behind one that has the only processor."""
    with bench.lab(1, elmer=("allocator = v1", "levels = 1")) as lab:
        lab.output("alice", "esubmit", "-o", "/dev/null", "1", "sleep", "3600")
        runs, _ = lab.spawn(count, "esubmit", "-o", "/dev/null", "1", "/bin/true")
        bench.figure("latency.queued", [ms(end - begin) for begin, end, _ in runs], "ms", at_most(3), nodes=1)


def elsewhere(bench, lab, count):
    """What a submission takes where the job starts on another CPU than that of esubmit: of the start, only elmer's part is done above it."""
    runs, _ = lab.spawn(count, "esubmit", "-o", "/dev/null", "--hosts", "ws2", "1", "/bin/true", options=("-w",))
    bench.figure("latency.elsewhere", [ms(end - begin) for begin, end, _ in runs], "ms", at_most(3), nodes=1)


def run(bench):
    queued(bench, bench.size(200, 10))
    sizes = bench.size([1, 2, 6], [1, 2])
    with bench.lab(max(sizes)) as lab:
        runs, _ = lab.spawn(bench.size(200, 20), "/bin/true")
        bench.figure("latency.exec", [ms(end - begin) for begin, end, _ in runs], "ms", command="/bin/true")
        elsewhere(bench, lab, bench.size(200, 10))
        for nodes in sizes:
            plain(bench, lab, nodes, bench.size(200, 10))
        for nodes in sizes[1:]:
            pvm(bench, lab, nodes, bench.size(30, 3))
