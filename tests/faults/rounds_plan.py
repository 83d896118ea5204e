"""What happens in each round, from the seed alone."""
import collections
import random

ROUND_MS = 1200
HOLD_MS = 3000
LONG_MS, SHORT_MS = 8000, 1500  # pulled cables: beyond host_timeout (see rounds_lab.py), and within it

# How often each kind of fault is in the deck from which they are dealt; the deck is shuffled anew when it is empty, so
# a run of any length has all kinds in these shares.
DECK = collections.OrderedDict([
    ("elmer killed", 4), ("rsd root half killed", 4), ("rsd network half killed", 4), ("elmer-spawn killed", 3),
    ("elmer-tickets killed", 3), ("elmer-escapes killed", 1), ("supervisor killed", 4), ("pvmd killed", 2),
    ("PVM agent killed", 2), ("power cut of the queue host", 1), ("power cut", 3), ("cable pulled shortly", 3),
    ("cable pulled for long", 1), ("elmer restarted", 1), ("rsd restarted", 2), ("job ended by its user", 2)])
KINDS = list(DECK)

# limit_s: of its time (esubmit -t), 0: none. hold_ms: it is held so long, from its submission on, 0: it is not; held: then from
# and until when, by time.monotonic(), if it was.
Job = collections.namedtuple("Job", "at_ms name kind node nprocs ms status requeue limit_s hold_ms held", defaults=[0, 0, None])
Fault = collections.namedtuple("Fault", "at_ms kind node pick for_ms")


def job(rng, name, nodes, long):
    kind = rng.choice(["plain", "each", "pvm"])
    nprocs = rng.randint(2, min(3, nodes)) if kind == "pvm" else rng.choice([1, 1, 2, 3, nodes])
    ms = rng.choice([0, 50, 300, 1000, 2000, 4000]) + rng.randint(0, 100)
    if long and rng.random() < 0.2:
        ms = LONG_MS + 1000  # outlives a pulled cable, and the lease behind it
    return Job(rng.randrange(ROUND_MS), name, kind, rng.randint(1, nodes), nprocs, ms, rng.randint(0, 90),
               rng.random() < 0.5, rng.choice([0, 0, 0, 0, 1, 2]), rng.choice([0, 0, rng.randint(100, HOLD_MS)]))


def fault(rng, kind, nodes):
    node = rng.randint(1, nodes)
    if kind == "power cut":
        node = rng.randint(2, nodes)
    elif kind in ("power cut of the queue host", "elmer killed", "elmer restarted"):
        node = 1
    for_ms = LONG_MS if kind == "cable pulled for long" else rng.randint(100, SHORT_MS)
    return Fault(rng.randrange(ROUND_MS), kind, node, rng.randrange(1 << 16), for_ms)


def rounds(seed, count, nodes):
    """[(jobs, faults)] of rounds 0..count-1; a longer plan begins with the shorter one."""
    rng = random.Random(f"elmer {seed} {nodes}")
    deck, plan = [], []
    for number in range(count):
        jobs = [job(rng, f"r{number}.{i}", nodes, number % 10 < 4) for i in range(rng.choice([1, 2, 3, 4]))]
        faults = []
        for _ in range(rng.choice([1, 2, 2, 3])):
            if not deck:
                deck = [kind for kind in KINDS for _ in range(DECK[kind])]
                rng.shuffle(deck)
            faults.append(fault(rng, deck.pop(), nodes))
        plan.append((jobs, faults))
    return plan
