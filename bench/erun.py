"""What it costs to start a process of a job by erun."""
import statistics

from harness import Failure, at_most, ms

NAME = "erun"
ABOUT = "erun beside a fork on the same host, and very many processes at once"
FIGURES = ["erun.start", "erun.many"]
OUTPUT = "/home/alice/spawned"
# The job begins on ws1. Who names a host as for an ssh gets the shell of his user there.
FORMS = {("--rank", "0"): ("true",), ("--rank", "1"): ("true",), ("ws2",): ("bash", "-c", "true")}


def in_job(lab, nprocs, count, *command):
    """Milliseconds of each of so many runs, one after the other, in a job: from before the fork to the end."""
    lab.output("alice", "rm", "-f", OUTPUT)
    lab.output("alice", "esubmit", "-w", "-o", OUTPUT, str(nprocs), "/home/driver", "spawn", str(count), *command)
    lines = [line.split() for line in lab.output("alice", "cat", OUTPUT).splitlines()]
    runs = [ms(int(line[1]) - int(line[0])) for line in lines if len(line) >= 3 and line[0].isdigit() and line[1].isdigit()]
    if len(runs) != count:
        raise Failure(f"{' '.join(command)}: {len(runs)} of {count} runs")
    return runs


def run(bench):
    nodes, count = bench.size(8, 2), bench.size(100, 5)
    many, times = bench.size(1000, 20), bench.size(9, 2)
    with bench.lab(nodes) as lab:
        for words, local in FORMS.items():
            alone = statistics.median(in_job(lab, nodes, count, *local))
            runs = in_job(lab, nodes, count, "erun", *words, "true")
            bench.figure("erun.start", [each - alone for each in runs], "ms", at_most(5), form=" ".join(words))
        runs = in_job(lab, nodes, times, "erun", "-n", str(many), "/bin/true")
        bench.figure("erun.many", [each / 1000 for each in runs], "s", at_most(2), nodes=nodes, processes=many)
