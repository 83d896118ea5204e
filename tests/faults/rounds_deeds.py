"""What is done to the cluster: submissions and faults. Notes down what really happened."""
import collections
import threading
import time

from rounds_judge import Deed
from rounds_lab import MARKS, OUTPUT, comm_of, kill_exactly, lab, start_of

BARRIER = "/usr/libexec/elmer/examples/barrier"
ANSWER_S = 60
WRONG_STATE, UNREACHABLE, NODE_DOWN = 3, 4, 255
VICTIM_S = 3  # who is to be killed may not be born yet


class Deeds:
    def __init__(self, cluster, log):
        self.cluster, self.log = cluster, log
        self.lock = threading.Lock()
        self.counts, self.answers = collections.Counter(), []
        self.asked, self.done, self.odd = {}, [], []
        self.holds = 0

    def take(self):
        """({name: (Job, id or None)}, [Deed], [what was odd]) since the last call; deeds of the one before are kept, they may matter still."""
        with self.lock:
            asked, done, odd = self.asked, self.done, self.odd
            self.asked, self.done, self.odd = {}, done[-50:], []
            return asked, done, odd

    # ---- jobs ----

    def submit(self, job):
        """It may be refused because elmer cannot be reached, or end with its node; anything else is odd."""
        job = job._replace(requeue=job.requeue and self.cluster.requeue)
        words = ["esubmit", "-J", job.name, "-o", f"{OUTPUT}.{job.name}", "-D", "/home/alice"]
        words += {"each": ["--each"], "pvm": ["--pvm"]}.get(job.kind, []) + (["--requeue"] if job.requeue else [])
        words += ["-t", f"{job.limit_s}s"] if job.limit_s else []
        words += [str(job.nprocs), "/home/marker", MARKS, job.name, str(job.ms), str(job.status)]
        if job.kind == "pvm":
            words += [BARRIER, "-P", str(job.nprocs), "-v", "3", "-p", str(1 + job.ms // 4)]
        code, out, err = self.cluster.node(job.node).run("alice", *words)
        job_id = int(out) if out.strip().isdigit() else None
        self.log(f"submit {job.name} {job.kind} {job.nprocs} at ws{job.node}: {code} {job_id} {err.strip()[-200:]}")
        if job_id and job.hold_ms:
            job = job._replace(held=self.hold(job, job_id))
        with self.lock:
            self.asked[job.name] = (job, job_id)
            if code not in (0, UNREACHABLE, NODE_DOWN, -9, 137) and "nsenter: " not in err:
                self.odd.append(f"esubmit of {job.name} at ws{job.node} ended with {code}: {err.strip()[-500:]}")

    def hold(self, job, job_id):
        """Unless it has started already. It is released in any case: what had no answer may have been done. From when until when it was held."""
        code, _, _ = self.cluster.node(job.node).run("alice", "ehold", str(job_id))
        begin = time.monotonic()
        time.sleep(job.hold_ms / 1000)
        end, deadline = time.monotonic(), time.monotonic() + ANSWER_S
        while True:
            released, _, err = self.cluster.node(job.node).run("alice", "erelease", str(job_id))
            if released in (0, WRONG_STATE):
                break
            if time.monotonic() > deadline:
                with self.lock:
                    self.odd.append(f"erelease of {job.name} at ws{job.node} ended with {released}: {err.strip()[-500:]}")
                break
            time.sleep(0.2)
        self.log(f"hold {job.name} at ws{job.node}: {code}, released {released}")
        if code:
            return None
        with self.lock:
            self.holds += 1
        return begin, end

    # ---- faults ----

    def do(self, fault):
        begin = time.time()
        deed = {"elmer killed": self.kill_elmer, "rsd root half killed": self.kill_program, "rsd network half killed": self.kill_program,
                "elmer-spawn killed": self.kill_program, "elmer-tickets killed": self.kill_program, "elmer-escapes killed": self.kill_program,
                "supervisor killed": self.kill_supervisor, "pvmd killed": self.kill_pvmd, "PVM agent killed": self.kill_agent,
                "power cut of the queue host": self.cut_power, "power cut": self.cut_power, "cable pulled shortly": self.pull_cable,
                "cable pulled for long": self.pull_cable, "elmer restarted": self.restart, "rsd restarted": self.restart,
                "job ended by its user": self.end_job}[fault.kind]
        node, met = self.cluster.node(fault.node), None
        try:
            met = deed(node, fault)
        finally:
            what = {None: "nobody there"}.get(met, "done" if met is True else f"job {met}")
            self.log(f"{fault.kind} at {node.name}: {what}")
            if met:
                with self.lock:
                    self.counts[fault.kind] += 1
                    self.done.append(Deed(fault.kind, fault.node, None if met is True else met, begin, time.time()))

    def kill_elmer(self, node, _fault):
        pids = node.unit("elmer.service")
        if not pids or not kill_exactly(pids[0], lambda pid: pid in node.unit("elmer.service")):
            return None
        self.measure_answer(node, pids[0])
        return True

    def measure_answer(self, node, old):
        """From the start of the next elmer to its first answer."""
        deadline = time.monotonic() + ANSWER_S
        while time.monotonic() < deadline:
            fresh = [pid for pid in node.unit("elmer.service") if pid != old and comm_of(pid) == "elmer"]
            if fresh:
                break
            time.sleep(0.005)
        else:
            return
        begin = start_of(fresh[0])
        code, _, _ = node.run("root", "equery", "-r", env=["ELMER_SOCKET=/run/elmer/elmer.sock"])
        if code == 0 and begin and fresh[0] in node.unit("elmer.service"):
            with self.lock:
                self.answers.append(time.monotonic() - begin)

    @staticmethod
    def kill_program(node, fault):
        name = {"rsd root half killed": "rsd", "rsd network half killed": "elmer-rsd-net"}.get(fault.kind, fault.kind.split()[0])
        pids = node.program(name)
        return True if pids and kill_exactly(pids[0], lambda pid: pid in node.program(name)) else None

    def kill_of_job(self, fault, leaf, wanted):
        """One of such processes of all nodes, in a defined order, as soon as there is one; the job that it was of."""
        deadline, found = time.monotonic() + VICTIM_S, None
        while not found:
            found = [(node, job, pid) for node in self.cluster.nodes.values() for job in node.jobs() for pid in node.of_job(job, leaf, wanted)]
            if not found and time.monotonic() > deadline:
                return None
            if not found:
                time.sleep(0.01)
        node, job, victim = found[fault.pick % len(found)]
        if not kill_exactly(victim, lambda pid: pid in node.of_job(job, leaf, wanted)):
            return None
        self.log(f"{wanted or leaf} of {job} at {node.name} is killed")
        return int(job.split(".")[0])

    def kill_supervisor(self, _node, fault):
        return self.kill_of_job(fault, "sup", None)

    def kill_pvmd(self, _node, fault):
        return self.kill_of_job(fault, "job", "pvmd")

    def kill_agent(self, _node, fault):
        return self.kill_of_job(fault, "job", "elmer-pvm-agent")

    def cut_power(self, node, fault):
        if not node.busy.acquire(blocking=False):
            return None
        try:
            old = node.unit("elmer.service")
            lab("crash", str(node.number))
            self.log(f"{node.name} has no power")
            time.sleep(fault.for_ms / 1000)
            node.seen_lines = 0
            lab("start", str(node.number))
            if old:
                self.measure_answer(node, old[0])
            return True
        finally:
            node.busy.release()

    def pull_cable(self, node, fault):
        if not node.busy.acquire(blocking=False):
            return None
        try:
            lab("link", str(node.number), "down")
            self.log(f"the cable of {node.name} is pulled")
            time.sleep(fault.for_ms / 1000)
            lab("link", str(node.number), "up")
            return True
        finally:
            node.busy.release()

    @staticmethod
    def restart(node, fault):
        unit = fault.kind.split()[0]
        code, _, _ = node.run("root", "systemctl", "restart", unit)
        return True if code == 0 else None

    def end_job(self, node, fault):
        with self.lock:
            ids = sorted(job_id for _, job_id in self.asked.values() if job_id)
        if not ids:
            return None
        victim = ids[-1 - fault.pick % min(len(ids), 6)]
        code, _, _ = node.run("alice", "ekill", str(victim))
        if code:
            code, _, _ = node.run("alice", "ecancel", str(victim))
        return None if code == 1 else victim  # 1: it had ended; any other: perhaps it was told
