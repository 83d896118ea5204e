"""A day of three users, compressed: what is submitted and done when, from the seed alone."""
import collections
import random

TASK = "/home/day-task"  # day-task SECONDS [STATUS]: says in /home/day/marks that it begins and ends; tasks of arrays take up to 0.2 s longer, by their index
DIRECTORY = "/home/day"
AWAY_S = 12  # a host that is lost
LIMIT_S, CPU_LIMIT_S, MEMORY_MIB = 5, 2, 50
SPIN = f"echo $ELMER_JOB_ID - 0 begin >>{DIRECTORY}/marks; exec timeout 60 sh -c 'while :; do :; done'"
EAT = f"echo $ELMER_JOB_ID - 0 begin >>{DIRECTORY}/marks; exec timeout 60 python3 -c 'keep = bytearray(200 << 20); import time; time.sleep(50)'"

# after: ((kind, name, which), ..): which is "" for all of it, or "[*]", "[5]". ends: reasons by which it may end beside those of lost hosts.
Job = collections.namedtuple("Job", "at_s user name words command tasks after ends")
Deed = collections.namedtuple("Deed", "at_s what of")


def job(at_s, user, name, words, command, tasks=0, after=(), ends=("exited",)):
    return Job(at_s, user, name, words, command, tasks, after, ends)


def plan(seed, full):
    """([Job], [Deed]); each job stands behind those that it waits for. Jobs sleep, but for the two that a limit is to end."""
    rng = random.Random(f"a day {seed}")
    many, some, length = (1000, 200, 180) if full else (150, 40, 60)
    array = [TASK, "0.3"]
    jobs = [
        job(0, "alice", "sweep", ["-a", f"1-{many}%4"], array, many),
        job(1, "bob", "scan", ["-a", f"1-{many}%3"], array, many),
        job(2, "carol", "lines", ["--array-file", f"{DIRECTORY}/lines-{some}%2"], [TASK, "{2}"], some),
        job(3, "alice", "terminal", ["--pty", "--keep", "--detach", "--hosts", "ws1"], ["env", "PS1=ready> ", "bash", "--norc", "--noprofile", "-i"]),
        job(4, "bob", "killed", [], [TASK, "600"], ends=("killed",)),
        job(5, "alice", "after-task", [], [TASK, "1"], after=(("ok", "sweep", "[5]"),)),
        job(5.5, "alice", "after-some", [], [TASK, "1"], after=(("any", "scan", "[2-40]"), ("start", "killed", ""))),
        job(6, "carol", "after-all", ["-a", f"1-{some}%3"], [TASK, "0.2"], some, after=(("any", "sweep", ""),)),
        job(7, "carol", "time-limit", ["-t", f"{LIMIT_S}s"], [TASK, "60"], ends=("time-limit",)),
        job(8, "carol", "cpu-limit", ["--cpu-time", f"{CPU_LIMIT_S}s"], ["sh", "-c", SPIN], ends=("cpu-limit",)),
        job(9, "bob", "memory-limit", ["-m", f"{MEMORY_MIB}M"], ["sh", "-c", EAT], ends=("memory-limit",)),
        job(10, "bob", "never", [], [TASK, "1"], after=(("ok", "time-limit", ""),), ends=("never",)),
        job(11, "bob", "behind-it", [], [TASK, "1"], after=(("fail", "time-limit", ""), ("any", "never", ""))),
        job(12, "bob", "held", [], [TASK, "1"]),
        job(13, "carol", "status", [], [TASK, "1", "7"]),
    ]
    for number in range(length // 4):
        nprocs = rng.choice([1, 1, 2])
        words = ["--each"] if nprocs > 1 and rng.random() < 0.7 else []
        jobs.append(job(14 + rng.random() * (length - 20), rng.choice(["alice", "bob", "carol"]), f"plain-{number}", words + [str(nprocs)],
                        [TASK, f"{rng.uniform(0.5, 3):.1f}"]))
    restarts = 10 if full else 4
    deeds = [Deed(12.2, "hold", "held"), Deed(length * 0.4, "release", "held"), Deed(length * 0.3, "kill", "killed"),
             Deed(length * 0.25, "look", 3), Deed(length * 0.7, "look", 2), Deed(length * 0.9, "leave", 1),
             Deed(length * 0.35, "lose", 3), Deed(length * 0.35 + AWAY_S, "return", 3), Deed(length * 0.75, "lose", 2), Deed(length * 0.75 + AWAY_S, "return", 2)]
    deeds += [Deed(10 + (length - 15) * (number + rng.uniform(0.2, 0.8)) / restarts, ("restart", "kill -9")[number % 2], "elmer") for number in range(restarts)]
    return sorted(jobs, key=lambda what: what.at_s), sorted(deeds, key=lambda what: what.at_s)
