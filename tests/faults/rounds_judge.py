"""What came out of the rounds, from the marks that the runs have left and what elmer says of the jobs.

A job that was accepted has run once, with each rank, and elmer has its exit status; or it has ended with a reason that
something which was done in the meantime explains. One that elmer does not know has never run. None runs twice; with
--requeue never two at a time, and an attempt that counts has run as a whole. One that was held has not begun meanwhile. One with
a limit may have ended by it, when it had run for so long.
"""
import calendar
import collections
import re
import time

from rounds_lab import HOST_TIMEOUT_S

ATTEMPTS = 10  # of a job with --requeue
SLACK_S = 6  # from a fault's end until all have noticed it

# A reason, and what may be behind it: (kind of fault, whom it must have met: the job itself or one of its hosts, or PVM only)
EXCUSES = {
    "lost": [("supervisor killed", "job"), ("power cut", "host")],
    "host-lost": [("power cut", "host"), ("cable pulled for long", "host")],
    "start-failed": [("supervisor killed", "job"), ("power cut", "host"), ("pvmd killed", "job"), ("PVM agent killed", "job")],
    "pvm-failed": [("pvmd killed", "job"), ("PVM agent killed", "job"), ("power cut", "host"), ("cable pulled", "host"), ("supervisor killed", "job")],
    "killed": [("job ended by its user", "job")],
    "cancelled": [("job ended by its user", "job")],
}

Deed = collections.namedtuple("Deed", "kind node job begin end")  # what was really done, in time.time(); job: id or None


def wall(text):
    """RFC 3339 as elmer writes it, as time.time()."""
    whole, fraction = re.fullmatch(r"(.*)\.(\d+)Z", text).groups()
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float("0." + fraction)


def meets(deed, kind, whom, record):
    if not deed.kind.startswith(kind):
        return False
    if whom == "job":
        return deed.job == record["id"]
    # a cable pulled at the queue host cuts off all the others
    return f"ws{deed.node}" in record["hosts"] or (kind.startswith("cable") and deed.node == 1)


def excused(record, deeds):
    end = wall(record["ended"]) if record["ended"] else time.time()
    begin = wall(record["submitted"])
    near = [deed for deed in deeds if deed.begin <= end + 1 and deed.end + HOST_TIMEOUT_S + SLACK_S >= begin]
    return any(meets(deed, kind, whom, record) for deed in near for kind, whom in EXCUSES.get(record["reason_code"], []))


class Judge:
    """Feed it the jobs of a block of rounds; it keeps the figures and what is wrong."""

    def __init__(self):
        self.figures = collections.Counter()
        self.reasons = collections.Counter()
        self.faults = []  # (which figure, what)
        self.seen_marks = 0

    def wrong(self, figure, text):
        self.figures[figure] += 1
        self.faults.append((figure, text))

    def block(self, asked, records, marks, deeds):
        """asked: {name: (Job, id or None)}; records: what elmer knows, by id; marks: all lines so far."""
        runs = collections.defaultdict(list)
        for line in marks[self.seen_marks:]:
            words = line.split()
            if len(words) == 7:
                runs[words[1]].append(words)
            else:
                self.wrong("wrong", f"a broken mark: {line}")
        self.seen_marks = len(marks)
        by_name = collections.defaultdict(list)
        for record in records.values():
            by_name[record["name"]].append(record)
        for name, (job, job_id) in asked.items():
            self.one(job, job_id, by_name.pop(name, []), runs.pop(name, []), deeds)
        for name in by_name.keys() | runs.keys():
            if name != "probe":
                self.wrong("wrong", f"{name}: a job that nobody has submitted in these rounds")

    def one(self, job, job_id, records, marks, deeds):
        what = f"{job.name} ({job.kind} on {job.nprocs}, id {job_id})"
        self.figures["submitted"] += 1
        self.figures["accepted"] += job_id is not None
        if len(records) > 1:
            self.wrong("doubled", f"{what}: {len(records)} jobs of one submission")
        elif not records and job_id is not None:
            self.wrong("lost", f"{what}: accepted, and elmer does not know it")
        elif not records and marks:
            self.wrong("doubled", f"{what}: not accepted, and it ran: {marks}")
        elif not records:
            self.figures["not accepted"] += 1
        else:
            self.known(job, what, records[0], marks, deeds)

    def known(self, job, what, record, marks, deeds):
        runs = collections.Counter((mark[4], mark[3] if job.requeue else "") for mark in marks if mark[0] == "begin")
        what += f" {record['state']} {record['reason_code']} {record['exit_status']} attempt {record['attempt']} on {record['hosts']}"
        if any(mark[0] == "overlap" for mark in marks):
            self.wrong("doubled", f"{what}: two runs at a time: {marks}")
        if any(count > 1 for count in runs.values()):
            self.wrong("doubled", f"{what}: ran more than once{' in an attempt' if job.requeue else ''}: {marks}")
        begun = [int(mark[6]) / 1e9 for mark in marks if mark[0] == "begin"]
        if job.held and any(job.held[0] < at < job.held[1] for at in begun):
            self.wrong("wrong", f"{what}: began while it was held, from {job.held[0]} to {job.held[1]}: {marks}")
        self.reasons[record["reason_code"] or record["state"]] += 1
        self.figures["put back"] += max(0, record["attempt"] - 1)
        if record["state"] not in ("done", "cancelled"):
            self.wrong("lost", f"{what}: does not end ({record['reason']})")
        elif record["reason_code"] == "exited":
            self.figures["exited"] += 1
            ranks = range(job.nprocs if job.kind == "each" else 1)
            last = str(record["attempt"])
            whole = all(sum(mark[4] == str(rank) and mark[0] == act and mark[3] == last for mark in marks) == 1
                        for rank in ranks for act in ("begin", "end"))
            if not whole:
                self.wrong("lost", f"{what}: did not run as a whole: {marks}")
            if record["exit_status"] != job.status and not self.killed_late(record, deeds):
                self.wrong("wrong", f"{what}: its status was {job.status} ({record['reason']})")
        elif job.requeue and record["reason_code"] in ("lost", "host-lost") and record["attempt"] < ATTEMPTS:
            self.wrong("lost", f"{what}: it was not run again ({record['reason']}): {marks}")
        elif record["reason_code"] == "time-limit" and self.ran_s(record) >= job.limit_s > 0:
            self.figures["at their limit"] += 1
        elif not excused(record, deeds):
            self.wrong("unexplained", f"{what}: {record['reason']}; submitted {record['submitted']}, ended {record['ended']}; marks: {marks}")
        else:
            self.figures["ended with a reason"] += 1

    @staticmethod
    def ran_s(record):
        """The two times are those of one clock that somebody may set, and are in whole milliseconds."""
        return wall(record["ended"]) - wall(record["started"]) + 0.01 if record["started"] else 0

    @staticmethod
    def killed_late(record, deeds):
        return any(deed.job == record["id"] for deed in deeds)


# ---- does it notice? ----

def must_notice():
    """A judge that lets wrong stories pass is not believed; the first that passes, or None. In the place of deeds may stand what is
    other about the job."""
    job = collections.namedtuple("Job", "name kind nprocs status requeue limit_s held")("r0.0", "each", 2, 3, False, 0, None)
    record = {"id": 7, "name": "r0.0", "state": "done", "reason_code": "exited", "reason": "", "exit_status": 3, "attempt": 1, "hosts": ["ws1", "ws2"],
              "submitted": "2026-01-01T00:00:00.000Z", "started": "2026-01-01T00:00:03.000Z", "ended": "2026-01-01T00:00:05.000Z"}
    ended = {"reason_code": "lost"}
    ran = [f"{act} r0.0 7 1 {rank} ws1 1" for rank in (0, 1) for act in ("begin", "end")]
    there = wall(record["ended"]) - 1
    stories = [  # (which figure, changes of the record or None, marks, deeds); None: it is fine
        (None, {}, ran, []), ("lost", None, ran, []), ("lost", {"state": "running"}, ran, []), ("lost", {}, ran[:3], []), ("lost", {}, [], []),
        ("doubled", {}, ran + ["begin r0.0 7 1 1 ws2 2"], []), ("doubled", {}, ran + ["overlap r0.0 7 1 1 ws2 2"], []), ("wrong", {"exit_status": 4}, ran, []),
        ("wrong", {}, ran + ["begin stranger 9 1 0 ws1 1"], []), ("wrong", {}, ran + ["begin r0"], []), ("unexplained", ended, ran[:1], []),
        (None, ended, ran[:1], [Deed("power cut", 2, None, there, there)]), ("unexplained", ended, ran[:1], [Deed("power cut", 3, None, there, there)]),
        (None, ended, [], [Deed("supervisor killed", 3, 7, there, there)]), ("unexplained", ended, [], [Deed("supervisor killed", 1, 8, there, there)]),
        ("unexplained", ended, [], [Deed("supervisor killed", 1, 7, there - 60, there - 60)]), ("unexplained", ended, [], [Deed("elmer killed", 1, None, there, there)])]
    again = [mark.replace(" 7 1 ", " 7 2 ") for mark in ran]
    again_job = {"requeue": True}
    stories += [("doubled", {"attempt": 2}, ran[:2] + again, []), (None, {"attempt": 2}, ran[:2] + again, again_job), ("doubled", {}, ran + ran[:1], again_job),
                ("doubled", {"attempt": 2}, ran[:1] + again + ["overlap r0.0 7 2 0 ws2 2"], again_job), ("lost", {"attempt": 2}, ran + again[:3], again_job), ("lost", ended, ran[:1], again_job)]
    limit = {"reason_code": "time-limit", "exit_status": None}
    stories += [(None, limit, ran[:1], {"limit_s": 2}), ("unexplained", limit, ran[:1], {"limit_s": 3}), ("unexplained", limit, ran[:1], []),
                ("wrong", {}, ran, {"held": (0, 1)}), (None, {}, ran, {"held": (1, 2)})]
    for figure, changes, marks, deeds in stories:
        judge, other = Judge(), deeds if isinstance(deeds, dict) else {}
        deeds = [] if other else deeds
        judge.block({"r0.0": (job._replace(**other), 7)}, {} if changes is None else {7: {**record, **changes}}, marks, deeds)
        noticed = {name for name, _ in judge.faults}
        if figure not in noticed if figure else noticed:
            return f"{changes} {marks} {deeds}: {judge.faults} instead of {figure}"
    return None
