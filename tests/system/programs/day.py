#!/usr/bin/python3
"""day - a day of three users on three booted workstations, for tests/system/37-day.t.

day.py try                          does the judge notice what is wrong?
day.py play DIRECTORY SEED [full]   submits and does what the plan says; then all that is to be known of it is in DIRECTORY
day.py judge DIRECTORY FIGURE       the faults of that figure, a line each: lost, once, why, order, limit
day.py replay DIRECTORY             esim replays the store; what it says of the day, into DIRECTORY
day.py compare DIRECTORY            the figures of that, and whether each is within its bar

The nodes are those of tests/lab/lab with this LAB_ID.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import day_judge
from day_plan import AWAY_S, DIRECTORY, Deed, Job, plan

HERE = os.path.dirname(os.path.abspath(__file__))
LAB = os.path.join(os.path.dirname(os.path.dirname(HERE)), "lab", "lab")
REST_S = 300  # until all has ended, behind the last submission
ANSWER_S = 120
UNREACHABLE = 4
SIT = ["env", "TERM=dumb", "python3", "/home/sit.py", "24x80", r"type:\r", "see:ready> $"]


class Failure(Exception):
    pass


def lab(*words, timeout=ANSWER_S):
    done = subprocess.run([LAB, *words], capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def root(*words):
    code, out, err = lab("exec", "1", *words)
    if code:
        raise Failure(f"{' '.join(words)} ended with {code}: {err.strip()[-1000:]}")
    return out


class Day:
    def __init__(self, seed, full):
        self.jobs, self.deeds = plan(seed, full)
        self.begin, self.ids, self.losses, self.restarts, self.done, self.lost_at = time.monotonic(), {}, [], [], [], {}

    def await_time(self, at_s):
        time.sleep(max(0, self.begin + at_s - time.monotonic()))

    def after(self, job):
        return [word for kind, name, which in job.after for word in ("--after", f"{kind}:{self.ids[name].result()}{which}")]

    def submit(self, job):
        """Its id. While elmer is away esubmit says that nobody can be reached, and one tries again."""
        deadline = time.monotonic() + ANSWER_S
        while True:
            code, out, err = lab("login", "1", job.user, "esubmit", "-J", job.name, "-o", "/dev/null", "-D", "/tmp", *job.words, *self.after(job), *job.command)
            if code == 0:
                return int(out)
            if code != UNREACHABLE or time.monotonic() > deadline:
                raise Failure(f"esubmit of {job.name} ended with {code}: {err.strip()[-1000:]}")

    def client(self, *words):
        deadline = time.monotonic() + ANSWER_S
        while True:
            code, _, err = lab("login", "1", *words)
            if code != UNREACHABLE:
                return code, err
            if time.monotonic() > deadline:
                raise Failure(f"{' '.join(words)}: {err.strip()[-1000:]}")

    def await_running(self, name):
        deadline = time.monotonic() + ANSWER_S
        while True:
            code, out, err = lab("exec", "1", "equery", "--json", str(self.ids[name].result()))
            state = json.loads(out)["jobs"][0]["state"] if code == 0 else None
            if state == "running":
                return
            if (code not in (0, UNREACHABLE)) or time.monotonic() > deadline:
                raise Failure(f"{name} does not run: {state or err.strip()[-1000:]}")
            time.sleep(0.2)

    def do(self, deed, before):
        if before:
            before.result()
        if deed.what in ("look", "kill"):  # where the machine has other work the jobs before them may take longer
            self.await_running("terminal" if deed.what == "look" else deed.of)
        if deed.what in ("hold", "release", "kill"):
            verb = {"hold": "ehold", "release": "erelease", "kill": "ekill"}[deed.what]
            code, err = self.client("bob", verb, str(self.ids[deed.of].result()))
        elif deed.what in ("look", "leave"):
            steps = [r"type:echo $((6*7))\r", "see:42\r\n.*ready> $", r"type:\r~."] if deed.what == "look" else [r"type:exit\r"]
            code, err = self.sit(deed.of, steps)
        elif deed.what == "lose":
            code, _, err = lab("crash", str(deed.of))
            self.lost_at[deed.of] = time.time()
        elif deed.what == "return":
            time.sleep(max(0, self.lost_at[deed.of] + AWAY_S - time.time()))
            code, _, err = lab("start", str(deed.of), timeout=200)
            self.await_up(deed.of)
            self.losses.append((f"ws{deed.of}", self.lost_at[deed.of], time.time()))
        else:
            self.restarts.append(time.time())
            code, _, err = lab("exec", "1", "systemctl", *(["restart"] if deed.what == "restart" else ["kill", "-s", "KILL"]), "elmer")
        self.done.append([round(time.monotonic() - self.begin, 2), deed.what, deed.of, code])
        if code:
            raise Failure(f"{deed.what} {deed.of}: {err.strip()[-1000:]}")

    def sit(self, node, steps):
        deadline = time.monotonic() + ANSWER_S
        while True:
            _, out, err = lab("login", str(node), "alice", *SIT, *steps, "end", "--", "eattach", str(self.ids["terminal"].result()), timeout=2 * ANSWER_S)
            if re.search(r"status 0 modes same$", out.strip()):
                return 0, ""
            if f"status {UNREACHABLE} " not in out or time.monotonic() > deadline:
                return 1, (out + err)[-1000:]

    def await_up(self, node):
        deadline = time.monotonic() + ANSWER_S
        while not re.search(rf"^ws{node} +up ", lab("exec", "1", "eadmin", "hosts")[1], re.M):
            if time.monotonic() > deadline:
                raise Failure(f"ws{node} is not up again")

    def pauses(self):
        """[(host, from, until)]: after a restart of elmer until the host has its link again, as the journal says."""
        ups = [(float(second), host) for second, host in
               re.findall(r"^([\d.]+) .*host=(ws\d+) is up", root("journalctl", "-u", "elmer", "-o", "short-unix", "--no-pager"), re.M)]
        return [(host, begin, min(up for up, of in ups if of == host and up > begin)) for begin in self.restarts for host in
                {of for up, of in ups if up > begin}]

    def play(self):
        controlled = "without the controller memory" not in lab("login", "1", "bob", "esubmit", "--dry-run", "-m", "50M", "true")[1]
        if not controlled:
            print("# the limit of memory is left out: there is no controller for it here")
            self.jobs = [job for job in self.jobs if job.name != "memory-limit"]
        self.begin = time.monotonic()
        todo = sorted(self.jobs + self.deeds, key=lambda what: what.at_s)
        with concurrent.futures.ThreadPoolExecutor(max_workers=32) as pool:
            futures, latest = [], {}  # by what it is done to: one after another, as nobody looks from a host that is lost meanwhile
            for what in todo:
                self.await_time(what.at_s)
                if isinstance(what, Deed):
                    latest[what.of] = pool.submit(self.do, what, latest.get(what.of))
                    futures.append(latest[what.of])
                else:
                    self.ids[what.name] = pool.submit(self.submit, what)
            for future in [*self.ids.values(), *futures]:
                future.result()

    def records(self):
        """All that elmer knows behind the jobs of before, when none of them waits or runs any more."""
        last = max(future.result() + job.tasks for job in self.jobs for future in [self.ids[job.name]])
        first = min(future.result() for future in self.ids.values())
        deadline = time.monotonic() + REST_S
        while True:
            records = {}
            for low in range(first, last + 1, 200):
                code, out, err = lab("exec", "1", "equery", "--json", *map(str, range(low, min(low + 200, last + 1))))
                if code not in (0, 3):
                    raise Failure(f"equery ended with {code}: {err.strip()[-500:]}")
                records.update((record["id"], record) for record in json.loads(out)["jobs"])
            living = [record["id"] for record in records.values() if record["state"] not in ("done", "cancelled")]
            if not living or time.monotonic() > deadline:
                return records
            time.sleep(1)  # a look is twelve requests


def keep(directory, name, what):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        json.dump(what, file)


def kept(directory, name):
    with open(os.path.join(directory, name), encoding="utf-8") as file:
        return json.load(file)


def play(directory, seed, full=""):
    day = Day(seed, bool(full))
    day.play()
    records = day.records()
    keep(directory, "asked", [[job, day.ids[job.name].result()] for job in day.jobs])
    keep(directory, "records", list(records.values()))
    keep(directory, "losses", day.losses)
    keep(directory, "pauses", day.pauses())
    keep(directory, "done", day.done)
    with open(os.path.join(directory, "marks"), "w", encoding="utf-8") as file:
        file.write(root("cat", f"{DIRECTORY}/marks"))
    print(f"# seed {seed}: {len(day.jobs)} submissions, {len(records)} ids, {len(day.losses)} hosts lost, "
          f"elmer restarted {sum(deed[1] in ('restart', 'kill -9') for deed in day.done)} times, {time.monotonic() - day.begin:.0f} s")


def judge_of(directory):
    asked = [(Job(*fields), number) for fields, number in kept(directory, "asked")]
    records = {record["id"]: record for record in kept(directory, "records")}
    with open(os.path.join(directory, "marks"), encoding="utf-8") as file:
        marks = day_judge.of_lines(file.read().splitlines())
    return day_judge.Judge(asked, records, marks, [day_judge.Loss(*loss) for loss in kept(directory, "losses")])


def judge(directory, figure):
    for what, text in judge_of(directory).all():
        if what == figure:
            print(text)


SLEPT = """import sqlite3
with sqlite3.connect("/root/day/elmer-backup/elmer.db") as store:
    store.execute("INSERT INTO usage(job, attempt, host, cpu_seconds) SELECT job, attempt, '-', 0.01 FROM state s WHERE NOT EXISTS "
                  "(SELECT 1 FROM usage u WHERE u.job = s.job AND u.attempt = s.attempt)")
"""


def away_times(losses, pauses):
    """[(host, from, until)], apart: while a host was lost, and while elmer was away, it took no new jobs."""
    times = sorted([*map(tuple, losses), *map(tuple, pauses)])
    apart = []
    for host, since, until in times:
        if apart and apart[-1][0] == host and since <= apart[-1][2]:
            since, until = apart[-1][1], max(until, apart[-1][2])
            apart.pop()
        apart.append((host, since, until))
    return apart


def replay(directory):
    """With the settings of 37-day.t: elmer.conf is not in the store. Nor is what jobs used that were lost with a host, for which esim
    takes it that they computed all the time; these slept, so that is written into the copy."""
    first = min(day_judge.seconds(record["submitted"]) for record in kept(directory, "records"))
    away = [f"--away={host}=@{since:.3f}..@{until:.3f}" for host, since, until in away_times(kept(directory, "losses"), kept(directory, "pauses"))]
    root("sh", "-c", "rm -rf /root/day && mkdir /root/day && eadmin backup /root/day/backup && tar xf /root/day/backup -C /root/day")
    root("python3", "-c", SLEPT)
    print(root("esim", "--history", "/root/day/elmer-backup/elmer.db", "--since", f"@{first:.3f}", "--allocator", "v1", "--levels", "3",
               "--records", "/root/day/records", *away))
    with open(os.path.join(directory, "replayed"), "w", encoding="utf-8") as file:
        file.write(root("cat", "/root/day/records"))


def compare(directory):
    judge_there = judge_of(directory)
    with open(os.path.join(directory, "replayed"), encoding="utf-8") as file:
        replayed = {record["job"]: record for record in map(json.loads, file)}
    names = {number: job.name for number, job in judge_there.jobs.items()}
    figures = day_judge.compare(judge_there.records, replayed, names)
    print(f"# {figures['jobs']} jobs compared, left out: {figures['left'] or 'none'}; turnaround replayed / as it was: median {figures['median']:.4f} "
          f"(without tasks {figures['single']:.4f}), 90 % within {figures['p5']:.3f} and {figures['p95']:.3f}; "
          f"time at another level: {100 * figures['all_levels']:.1f} % of all, "
          + ", ".join(f"{100 * value:.1f} % of {name}" for name, value in figures["levels"].items()))
    fine = {"most jobs are compared": figures["jobs"] >= 0.9 * len(names),
            "median": abs(figures["median"] - 1) <= day_judge.MEDIAN_BAR, "single": abs(figures["single"] - 1) <= day_judge.SINGLE_BAR,
            "levels": figures["all_levels"] <= day_judge.levels_bar(figures["jobs"])}
    for name in (name for name, good in fine.items() if not good):
        print(f"beyond its bar: {name}")


def tries():
    """A small day as it should be, and what is changed in it: by each the judge must find that."""
    def stamp(second):
        return f"2026-01-01T00:00:{second:06.3f}Z"

    def day():
        records = {number: {"id": number, "state": "done", "reason_code": "exited", "exit_status": 0, "nprocs": 1, "hosts": ["ws2"], "usage": [],
                            "submitted": stamp(1), "started": stamp(2 + number), "ended": stamp(2.5 + number)} for number in range(10, 15)}
        records[14].update(reason_code="time-limit", ended=stamp(16 + LIMIT), started=stamp(16))
        asked = [(Job(0, "alice", "array", [], [], 2, (), ("exited",)), 10), (Job(0, "bob", "next", [], [], 0, (("ok", "array", "[*]"),), ("exited",)), 13),
                 (Job(0, "bob", "limited", [], [], 0, (), ("time-limit",)), 14)]
        return asked, records, [f"{number} - 0 {what}" for number in (11, 12, 13) for what in ("begin", "end")] + ["14 - 0 begin"], []

    def changed(number, **fields):
        return lambda asked, records, marks, losses: records[number].update(fields)
    LIMIT = day_judge.LIMIT_S
    zero = day_judge.seconds(stamp(0))
    lost = {"reason_code": "host-lost", "exit_status": None}
    stories = [
        (None, lambda *day: None), ("lost", lambda asked, records, marks, losses: records.pop(12)),
        ("lost", lambda asked, records, marks, losses: records.update({15: records[14]})),
        ("once", lambda asked, records, marks, losses: marks.append("12 - 0 begin")), ("once", lambda asked, records, marks, losses: marks.remove("11 - 0 end")),
        ("once", lambda asked, records, marks, losses: marks.append("99 - 0 begin")), ("once", changed(12, state="running")), ("once", lambda asked, records, marks, losses: marks.append("12 - 0")),
        ("why", changed(13, reason_code="killed")), ("why", changed(12, exit_status=3)), ("why", changed(13, **lost)),
        (None, lambda asked, records, marks, losses: (records[13].update(lost), marks.remove("13 - 0 end"), losses.append(day_judge.Loss("ws2", zero, zero + 60)))),
        ("why", lambda asked, records, marks, losses: (records[13].update(lost), losses.append(day_judge.Loss("ws3", zero, zero + 60)))),
        ("order", changed(13, started=stamp(14.4))), ("order", changed(12, ended=stamp(16))), ("limit", changed(14, ended=stamp(20))), ("limit", changed(14, ended=stamp(40)))]
    for index, (figure, change) in enumerate(stories):
        asked, records, marks, losses = day()
        change(asked, records, marks, losses)
        found = {name for name, _ in day_judge.Judge(asked, records, day_judge.of_lines(marks), losses).all()}
        if figure not in found if figure else found:
            print(f"story {index}: {figure} is to be found, and {found or 'nothing'} is")


    apart = away_times([("ws2", 5, 9)], [("ws1", 1, 2), ("ws2", 1, 2), ("ws2", 8, 11)])
    if apart != [("ws1", 1, 2), ("ws2", 1, 2), ("ws2", 5, 11)]:
        print(f"the times of hosts that were away: {apart}")
    was = {number: {"started": stamp(2), "submitted": stamp(1), "ended": stamp(3), "array": None, "level_seconds": [0.5, 0, 0.5]} for number in (1, 2)}
    then = {1: {"turnaround": 2.0, "level_seconds": [0, 0, 1]}, 2: {"turnaround": 3.0, "level_seconds": [0.5, 0.5]}}
    found = day_judge.compare(was, then, {1: "one", 2: "two", 3: "gone"})
    if [found[name] for name in ("jobs", "median", "single", "all_levels", "left")] != [2, 1.25, 1.25, 0.25, {"not replayed": 1}]:
        print(f"it compares like this: {found}")


def main():
    words = sys.argv[1:]
    verb = {"try": tries, "play": play, "judge": judge, "replay": replay, "compare": compare}.get(words[0] if words else "")
    if not verb:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        verb(*words[1:])
    except Failure as why:
        print(f"day: {why}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
