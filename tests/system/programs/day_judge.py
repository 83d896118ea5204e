"""What a day must have been: every task exactly once, or its record says why not; and what the replay says of the same day."""
import collections
import datetime
import itertools
import statistics

from day_plan import CPU_LIMIT_S, LIMIT_S

SLACK_S = 6  # of a limit that strikes: the grace, and elmer may be away for a moment
MEDIAN_BAR = 0.05
# Of the jobs without tasks, of which there are 30 or 60: a task that was lost with its host may stand on another one in the replay and
# keep a place there, which then they do not have. Of 21 days five had 0.81 to 1.19, the others 0.98 to 1.00.
SINGLE_BAR = 0.25
Loss = collections.namedtuple("Loss", "host from_s until_s")  # until_s: it is up again


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else None


def of_lines(lines):
    """{(job, rank): [begin or end, ..]} of marks."""
    marks = collections.defaultdict(list)
    for line in lines:
        job, _, rank, what = (line.split() + [""] * 4)[:4]
        if what not in ("begin", "end"):
            marks["odd"].append(line)
        else:
            marks[(int(job), int(rank))].append(what)
    return marks


def ended_well(record):
    return record["state"] == "done" and record["reason_code"] == "exited" and record["exit_status"] == 0


class Judge:
    """asked: [(Job, id)]; records: {id: record}; marks: of_lines(); losses: [Loss]."""

    def __init__(self, asked, records, marks, losses):
        self.asked, self.records, self.marks, self.losses = asked, records, marks, losses
        self.ids = {job.name: number for job, number in asked}
        self.ranges = {job.name: range(number + 1, number + 1 + job.tasks) if job.tasks else [number] for job, number in asked}
        self.jobs = {number: job for job, _ in asked for number in self.ranges[job.name]}
        self.faults, self.reasons = [], collections.Counter()

    def wrong(self, figure, text):
        self.faults.append((figure, text))

    def all(self):
        arrays = {number for job, number in self.asked if job.tasks}
        for number in sorted(set(self.jobs) | arrays):
            if number not in self.records:
                self.wrong("lost", f"job {number} was accepted, and is not known")
        for number in sorted(set(self.records) - set(self.jobs) - arrays):
            self.wrong("lost", f"job {number} is known, and nobody was told that it was accepted")
        for line in self.marks.pop("odd", []):
            self.wrong("once", f"a mark that is none: {line}")
        for number, rank in self.marks:
            if number not in self.jobs:
                self.wrong("once", f"job {number} has run, and was not accepted")
        for number, job in self.jobs.items():
            if number in self.records:
                self.one(job, self.records[number])
        return self.faults

    def one(self, job, record):
        reason, ranks = record["reason_code"], record["nprocs"] if "--each" in job.words else 1
        name = f"{job.name} ({record['id']})"
        self.reasons[reason] += 1
        if record["state"] not in ("done", "cancelled"):
            self.wrong("once", f"{name} is {record['state']}")
            return
        for rank in range(ranks):
            self.run(job, record, name, self.marks.get((record["id"], rank), []))
        if reason in ("host-lost", "lost"):
            self.lost(record, name)
        elif reason not in job.ends:
            self.wrong("why", f"{name} has ended by {reason}, and should by {' or '.join(job.ends)}")
        elif reason == "exited" and record["exit_status"] != (7 if job.name == "status" else 0):
            self.wrong("why", f"{name} has the status {record['exit_status']}")
        self.limit(record, name)
        for kind, on, which in job.after:
            self.waited(record, name, kind, on, which)

    def run(self, job, record, name, marks):
        if marks not in ([], ["begin"], ["begin", "end"]):
            self.wrong("once", f"{name} has run like this: {' '.join(marks)}")
        if record["reason_code"] == "exited" and marks != ["begin", "end"] and job.name != "terminal":
            self.wrong("once", f"{name} has ended by itself, and has run like this: {' '.join(marks) or 'not at all'}")
        if record["reason_code"] in ("never", "cancelled") and marks:
            self.wrong("once", f"{name} was cancelled, and has run")

    def lost(self, record, name):
        hosts, ended = set(record["hosts"]), seconds(record["ended"])
        if not any(loss.host in hosts and loss.from_s <= ended <= loss.until_s for loss in self.losses):
            self.wrong("why", f"{name} is lost with a host of {sorted(hosts)}, of which none was lost when it ended")

    def limit(self, record, name):
        if record["reason_code"] == "time-limit":
            began, ended = seconds(record["started"]), seconds(record["ended"])
            away = any(loss.host in record["hosts"] and loss.from_s < began + LIMIT_S + SLACK_S and ended <= loss.until_s + SLACK_S for loss in self.losses)
            if ended - began < LIMIT_S - 0.05 or (ended - began > LIMIT_S + SLACK_S and not away): # what is away ends when it is heard of again
                self.wrong("limit", f"{name} has run for {ended - began:.2f} s")
        if record["reason_code"] == "cpu-limit":
            used = sum(usage["cpu_seconds"] or 0 for usage in record["usage"])
            if not CPU_LIMIT_S - 0.05 <= used <= CPU_LIMIT_S + SLACK_S:
                self.wrong("limit", f"{name} has used {used:.2f} s of CPU time")

    def waited(self, record, name, kind, on, which):
        """It has started after what it waited for; one that never started says why, and what that was is so."""
        low, _, high = which.strip("[]").partition("-")
        first = self.ids[on]
        numbers = self.ranges[on] if which in ("", "[*]") else range(first + int(low), first + int(high or low) + 1)
        others = [self.records[number] for number in numbers if number in self.records]
        if not record["started"]:
            if record["reason_code"] == "never" and kind == "ok" and all(ended_well(other) for other in others):
                self.wrong("order", f"{name} was to run never, and all of {on}{which} has ended well")
            return
        for other in others:
            happened = seconds(other["started"] if kind == "start" else other["ended"])
            if happened is None or happened > seconds(record["started"]):
                self.wrong("order", f"{name} has started before {on} ({other['id']}) {'started' if kind == 'start' else 'ended'}")
            if kind in ("ok", "fail") and ended_well(other) != (kind == "ok"):
                self.wrong("order", f"{name} waited for {kind}:{on} ({other['id']}), which has ended by {other['reason_code']}")


# ---- the replay ----

def levels_bar(njobs):
    """What chance does to the time at each level: of nine days of 400 jobs up to 5.4 %, of three of 2,450 up to 1.2 %."""
    return 0.1 if njobs < 1000 else 0.05


def share_of_levels(jobs):
    """The part of their time that they were at each level."""
    seconds_at = [sum(level) for level in itertools.zip_longest(*(job["level_seconds"] for job in jobs), fillvalue=0)]
    whole = sum(seconds_at) or 1
    return [at / whole for at in seconds_at]


def level_distance(pairs):
    """How much of the time was at another level: 0..1. Of many jobs together: which of two tasks that end in the same
    millisecond makes room for which other one is chance, and from then on one stands where the other would."""
    was, then = share_of_levels([pair[0] for pair in pairs]), share_of_levels([pair[1] for pair in pairs])
    return sum(abs(one - other) for one, other in itertools.zip_longest(was, then, fillvalue=0)) / 2


def compare(records, replayed, names):
    """{figure: value} of the jobs that both have; names: {id: name}. Not compared: the job that was held, as the replay cannot know that."""
    ratios, single, pairs, left = [], [], collections.defaultdict(list), collections.Counter()
    for number, name in names.items():
        was, then = records.get(number), replayed.get(number)
        if name == "held" or not was or not was["started"] or not then:
            left["held" if name == "held" else "never started" if was and not was["started"] else "not replayed"] += 1
            continue
        ratio = then["turnaround"] / max(0.001, seconds(was["ended"]) - seconds(was["submitted"]))
        ratios.append(ratio)
        if not was["array"]:
            single.append(ratio)
        pairs[name if was["array"] else "others"].append((was, then))
    return {"jobs": len(ratios), "median": statistics.median(ratios) if ratios else 0, "single": statistics.median(single) if single else 0,
            "p5": sorted(ratios)[len(ratios) // 20] if ratios else 0, "p95": sorted(ratios)[len(ratios) * 19 // 20] if ratios else 0,
            "levels": {name: level_distance(some) for name, some in pairs.items()},
            "all_levels": level_distance([pair for some in pairs.values() for pair in some]), "left": dict(left)}
