"""What the commands cost when the queue is long."""
from harness import at_most, ms

NAME = "query"
ABOUT = "equery and ecancel with a long queue"
FIGURES = ["query.equery", "query.json", "query.ecancel", "query.memory_per_job"]
BARS = {0: 3, 10000: 30}
MEMORY_KB = 2  # of a queued job, where there are so many that little else counts


def elmer_memory_kb(lab):
    pid = lab.root("systemctl", "show", "-P", "MainPID", "elmer").strip()
    rollup = lab.root("cat", f"/proc/{pid}/smaps_rollup").split()
    return int(rollup[rollup.index("Private_Dirty:") + 1]) + int(rollup[rollup.index("Private_Clean:") + 1])


def times(runs):
    return [ms(end - begin) for begin, end, _ in runs]


def at_length(bench, lab, length, count):
    bar = at_most(BARS[length]) if length in BARS else None
    bench.figure("query.equery", times(lab.spawn(count, "equery")[0]), "ms", bar, queued=length)
    bench.figure("query.json", times(lab.spawn(count, "equery", "--json")[0]), "ms", queued=length)
    # of jobs at the end of the queue, submitted for that
    _, first, _, _, _ = lab.submit(count, 1, 1, "/bin/true")
    runs, _ = lab.spawn(count, "ecancel", "@", options=("-n", first))
    bench.figure("query.ecancel", times(runs), "ms", at_most(2.5), queued=length)


def run(bench):
    queued, empty_kb = 0, None
    with bench.lab(1, elmer=("allocator = v1", "levels = 1")) as lab:
        lab.output("alice", "esubmit", "-o", "/dev/null", "1", "sleep", "36000")
        for length in bench.size([0, 1000, 10000, 100000], [0, 200]):
            if length > queued:
                lab.submit(length - queued, 64, 1, "/bin/true")
                queued = length
            at_length(bench, lab, length, bench.size(50 if length < 100000 else 10, 5))
            memory = elmer_memory_kb(lab)
            if length == 0:
                empty_kb = memory
            else:
                bar = at_most(MEMORY_KB) if length >= 10000 else None
                bench.figure("query.memory_per_job", [(memory - empty_kb) / length], "KB", bar, queued=length)
