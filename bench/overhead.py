"""From the acceptance of a job to all hosts notified, and from its end to all hosts notified (figures 6.10 and 6.11 of 1995)."""
import re

from harness import Failure, at_most, until

NAME = "overhead"
ABOUT = "acceptance and end of a job until all hosts know"
FIGURES = ["overhead.start", "overhead.opened", "overhead.end", "overhead.start_slope", "overhead.end_slope"]


class Trace:
    """What elmer has said of events: [(us, event, job, host)]."""

    def __init__(self, lab):
        self.lab = lab

    def read(self):
        pattern = re.compile(r"at (\d+) us: (\w+) job=(\d+) host=(-?\d+)")
        matches = (pattern.match(line) for line in self.lab.said("elmer", 1))
        return [(int(m[1]), m[2], int(m[3]), int(m[4])) for m in matches if m]


def after(lines, begin_us, event, job=None):
    """When the first of these came from each host after that time."""
    first = {}
    for us, what, of, host in lines:
        if what == event and us > begin_us and job in (None, of):
            first.setdefault(host, us)
    return first.values()


def start_ms(lines, job, nodes):
    """From the last submission to the last answer to its order, and to the last host that has it open; None while some are missing."""
    begin = max(us for us, event, _, _ in lines if event == "submit")
    ordered, opened = after(lines, begin, "ordered"), after(lines, begin, "opened", job)
    if len(ordered) < nodes or len(opened) < nodes:
        return None
    return (max(ordered) - begin) / 1000, (max(opened) - begin) / 1000


def end_ms(lines, job, nodes):
    """From its last host empty to the last answer to the orders that follow."""
    empty = after(lines, 0, "empty", job)
    if len(empty) < nodes:
        return None
    ordered = after(lines, max(empty), "ordered")
    return (max(ordered) - max(empty)) / 1000 if len(ordered) == nodes else None


def chain(lab, nodes, rounds):
    """Each job starts below another one and moves up when that is ended. Returns ([(ordered, opened)], [end]) in ms."""
    trace, starts, ends = Trace(lab), [], []
    hosts = ",".join(f"ws{k}" for k in range(1, nodes + 1))

    def submit():
        job = int(lab.output("alice", "esubmit", "--hosts", hosts, "-o", "/dev/null", "--each", str(nodes), "sleep", "600"))
        starts.append(until(20, f"job {job} is open on {nodes} hosts", lambda: start_ms(trace.read(), job, nodes)))
        until(20, f"job {job} runs", lambda: lab.jobs(job)[0]["state"] == "running")
        return job

    above = submit()
    for _ in range(rounds):
        below = submit()
        lab.output("alice", "ekill", str(above))
        ends.append(until(20, f"orders after job {above}", lambda job=above: end_ms(trace.read(), job, nodes)))
        above = below
    lab.output("alice", "ekill", str(above))
    until(20, "the last has ended", lambda: lab.jobs(above)[0]["state"] == "done")
    return starts[1:], ends


def slope(points):
    """Of the straight line through (x, y), least squares."""
    mean_x, mean_y = (sum(p[i] for p in points) / len(points) for i in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if spread == 0:
        raise Failure("a slope needs two sizes")
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


def run(bench):
    sizes = bench.size(list(range(1, 9)), [1, 2])
    starts, ends = [], []
    with bench.lab(max(sizes)) as lab:
        lab.debug("elmer", 1)
        lab.output("alice", "esubmit", "-w", "-o", "/dev/null", str(max(sizes)), "true")  # all hosts are back
        for nodes in sizes:
            start, end = chain(lab, nodes, bench.size(30, 2))
            starts.append((nodes, bench.figure("overhead.start", [ordered for ordered, _ in start], "ms", at_most(5) if nodes == 6 else None, nodes=nodes)))
            bench.figure("overhead.opened", [opened for _, opened in start], "ms", nodes=nodes)
            ends.append((nodes, bench.figure("overhead.end", end, "ms", at_most(2) if nodes == 6 else None, nodes=nodes)))
    bench.figure("overhead.start_slope", [slope(starts)], "ms/node", at_most(0.3))
    bench.figure("overhead.end_slope", [slope(ends)], "ms/node", at_most(0.3))
