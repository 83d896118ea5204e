"""Many short jobs: end to end, accepted submissions, and one after the other on a processor."""
from harness import DRIVER, at_least, at_most, ms

NAME = "throughput"
ABOUT = "jobs and submissions per second"
FIGURES = ["throughput.jobs", "throughput.cpu_per_job", "throughput.esubmit", "throughput.libelmer", "throughput.succession"]


def jobs(bench, nodes, count, rounds):
    """/bin/true on one processor each: from the first submission by 4 submitters to the last end."""
    rates, costs = [], []
    with bench.lab(nodes) as lab:
        for _ in range(rounds):
            before = lab.cpu_seconds()
            runs, cpu = lab.spawn(count, "esubmit", "-o", "/dev/null", "1", "/bin/true", options=("-p", "4"))
            ids = [int(word) for _, _, word in runs]
            end = lab.drain(min(ids), max(ids))
            rates.append(count / ((end - min(begin for begin, _, _ in runs)) / 1e9))
            costs.append(1000 * (lab.cpu_seconds() - before + cpu) / count)
    bench.figure("throughput.jobs", rates, "1/s", at_least(200), nodes=nodes, jobs=count, submitters=4)
    bench.figure("throughput.cpu_per_job", costs, "ms", at_most(7), nodes=nodes, jobs=count, submitters=4)


def accepted(bench, rounds):
    """Submissions that only queue, behind a job that has the only processor."""
    with bench.lab(1, elmer=("allocator = v1", "levels = 1")) as lab:
        lab.output("alice", "esubmit", "-o", "/dev/null", "1", "sleep", "3600")
        for submitters in (1, 4):
            count, rates = bench.size(1000, 50), []
            for _ in range(rounds):
                runs, _ = lab.spawn(count, "esubmit", "-o", "/dev/null", "1", "/bin/true", options=("-p", submitters))
                rates.append(count / ((max(end for _, end, _ in runs) - min(begin for begin, _, _ in runs)) / 1e9))
            bench.figure("throughput.esubmit", rates, "1/s", at_least(600) if submitters > 1 else None, submitters=submitters, jobs=count)
        count, outstanding = bench.size(10000, 500), bench.size(256, 64)
        rates = [count / lab.submit(count, outstanding, 1, "/bin/true")[0] for _ in range(rounds)]
        bench.figure("throughput.libelmer", rates, "1/s", at_least(5000), outstanding=outstanding, jobs=count)


def succession(bench, count):
    """One processor, one level: from the last act of a job to the first of the next."""
    with bench.lab(1, elmer=("allocator = v1", "levels = 1")) as lab:
        _, first, last, _, _ = lab.submit(count, 4, 1, DRIVER, "stamp", "/home/alice/succession")
        lab.drain(first, last)
        acts = sorted(act for acts in lab.stamps("succession").values() for act in acts)
        bench.figure("throughput.succession", [ms(after[0] - before[1]) for before, after in zip(acts, acts[1:])], "ms", at_most(8), jobs=count)


def run(bench):
    for nodes in bench.size([2, 6], [2]):
        jobs(bench, nodes, bench.size(2000, 40), bench.size(5, 1))
    accepted(bench, bench.size(5, 1))
    succession(bench, bench.size(300, 20))
