"""The booted workstations of tests/lab, as the rounds need them: quick entry, exact kills, and what is left on a node."""
import json
import os
import re
import signal
import subprocess
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LAB = os.path.join(os.path.dirname(HERE), "lab", "lab")
MARKS = "/home/alice/marks"  # on the nodes; they share /home
OUTPUT = f"{MARKS}/output"  # .NAME of the job
HOST_TIMEOUT_S, LEASE_S = 6, 5
UNITS = {"rsd": "rsd.service", "elmer-rsd-net": "rsd-net.service", "elmer-spawn": "rsd-spawn.service", "elmer-escapes": "rsd-spawn.service",
         "elmer-tickets": "rsd-tickets.service"}
SCOPE = "elmer.slice/elmer-jobs.scope"
USER = 2001  # alice
# For allocator v2, which rightly puts nobody on a machine that has other work, as this one may: each node has this in the place of
# /proc/stat, and it says that nobody computes. What is left of v2 is what faults meet: reports that are late or lost, and the
# time to settle after each start and end.
TIMES = "/home/times-of-processors"
TIMES_S = 0.25
ELMER = ["allocator = v1", "levels = 3", "heartbeat = 1s", f"host_timeout = {HOST_TIMEOUT_S}s", "resend = 500ms", "kill_grace = 300ms",
         f"lease = {LEASE_S}s"]


class Failure(Exception):
    """The nodes do not do what they must: what, why."""


def lab(*words, check=True, timeout=180):
    done = subprocess.run([LAB, *words], capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL)
    if check and done.returncode != 0:
        raise Failure(f"lab {' '.join(words)} ended with {done.returncode}: {(done.stderr.strip() or done.stdout.strip())[-3000:]}")
    return done.stdout


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def pids_of(group):
    return [int(word) for word in read(os.path.join(group, "cgroup.procs")).split()]


def below(group):
    """The group and all groups below it."""
    return [path for path, _, _ in os.walk(group)]


def uid_of(pid):
    found = re.search(r"^Uid:\s+(\d+)", read(f"/proc/{pid}/status"), re.M)
    return int(found.group(1)) if found else None


def comm_of(pid):
    return read(f"/proc/{pid}/comm").strip()


def start_of(pid):
    """When the process was made, on the clock of time.monotonic(), to 10 ms."""
    text = read(f"/proc/{pid}/stat")
    if not text:
        return None
    since_boot = int(text[text.rindex(")") + 2:].split()[19]) / os.sysconf("SC_CLK_TCK")
    return since_boot - (time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic())


def kill_exactly(pid, still):
    """SIGKILL if it is still what it was taken for; returns whether it was."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not still(pid):
            return False
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


class Node:
    def __init__(self, number):
        self.number, self.name = number, f"ws{number}"
        self.group = lab("path", "group", str(number)).strip()
        self.cpus = read(os.path.join(lab("path", "state").strip(), f"n{number}", "cpus")).strip()
        self.busy = threading.Lock()  # somebody has its power or its cable in hand
        self.seen_lines = 0

    def leader(self):
        pids = pids_of(os.path.join(self.group, "init.scope"))
        return pids[0] if pids else None

    def unit(self, name):
        return pids_of(os.path.join(self.group, "system.slice", name))

    def program(self, name):
        """The main process of that program of an rsd: not what it has forked, or is about to execute. Of elmer-escapes there is that one only."""
        pids = self.unit(UNITS[name])
        return [pid for pid in pids if comm_of(pid) == name and (name == "elmer-escapes" or parent_of(pid) not in pids)]

    def jobs(self):
        """Names JOB.ATTEMPT of the groups that are here."""
        try:
            return sorted(name for name in os.listdir(os.path.join(self.group, SCOPE)) if re.fullmatch(r"\d+\.\d+", name))
        except OSError:
            return []

    def of_job(self, name, leaf, wanted=None):
        top = os.path.join(self.group, SCOPE, name, leaf)
        return [pid for path in below(top) for pid in pids_of(path) if wanted is None or comm_of(pid).startswith(wanted)]

    def command(self, user, *words):
        """What runs words in the node, as root or alice; None when it is down."""
        leader = self.leader()
        if not leader:
            return None
        enter = ["taskset", "-c", self.cpus, "nsenter", "-t", str(leader), "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w",
                 "env", "-i", "--default-signal", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=/home/alice"]
        if user != "root":
            enter += ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--inh-caps=-all"]
        return enter + list(words)

    def run(self, user, *words, timeout=90, env=None):
        """(exit status, stdout, stderr); 255 when the node is down or goes down."""
        command = self.command(user, *(["env", *env] if env else []), *words)
        if not command:
            return 255, "", "the node is down"
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return 254, "", f"no end within {timeout} s"
        return done.returncode, done.stdout, done.stderr

    def left(self):
        """What is here of any job: groups, processes, directories."""
        found = [f"{self.name}: group {name}" for name in self.jobs()]
        for path in below(self.group):
            for pid in pids_of(path):
                if uid_of(pid) == USER or (comm_of(pid).startswith("elmer-superviso") and not path.endswith("/keeper")):
                    found.append(f"{self.name}: process {pid} {comm_of(pid)} in {path[len(self.group):]}")
        root = f"/proc/{self.leader()}/root"
        for directory in ("run/elmer-rsd/jobs", "run/elmer-rsd/sup"):
            found += [f"{self.name}: {directory}/{name}" for name in listed(os.path.join(root, directory)) if name not in ("order", "begun")]
        found += [f"{self.name}: tmp/{name}" for name in listed(os.path.join(root, "tmp")) if "pvm" in name]
        return found

    def adoptions(self):
        """Seconds from the start of an rsd to its having the jobs of before, of those since the last call and the last boot."""
        code, out, _ = self.run("root", "journalctl", "-q", "--no-pager", "-o", "short-monotonic", "-u", "rsd.service")
        lines = out.splitlines() if code == 0 else []
        new = lines[self.seen_lines:] if len(lines) >= self.seen_lines else lines
        self.seen_lines = len(lines)
        found, begin = [], None
        for line in new:
            at = re.match(r"\[\s*([\d.]+)\]", line)
            if at and "Starting rsd.service" in line:
                begin = float(at.group(1))
            if at and begin and re.search("jobs? of an earlier rsd (is|are) adopted", line):
                found.append(float(at.group(1)) - begin)
                begin = None
        return found


def parent_of(pid):
    text = read(f"/proc/{pid}/stat")
    return int(text[text.rindex(")") + 2:].split()[1]) if text else None


def listed(path):
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


class Cluster:
    def __init__(self, count, build, requeue):
        self.count, self.build, self.requeue = count, build, requeue
        self.nodes = {}
        self.allocator, self.over = "v1", threading.Event()

    def up(self):
        words = [word for line in ELMER for word in ("--elmer", line)] + ["--rsd", f"proc_stat = {TIMES}"]
        lab("up", str(self.count), *words, timeout=600)
        for number in range(1, self.count + 1):  # the network half is to read it there
            subprocess.run([LAB, "exec", str(number), "sh", "-c", "mkdir -p /etc/systemd/system/rsd-net.service.d && cd /etc/systemd/system/rsd-net.service.d && "
                            "printf '[Service]\\nProtectHome=read-only\\n' >home.conf && systemctl daemon-reload && systemctl restart rsd-net"],
                           check=True, timeout=60)
        threading.Thread(target=self.tell_times, args=[lab("path", "state").strip() + TIMES], daemon=True).start()
        self.nodes = {k: Node(k) for k in range(1, self.count + 1)}
        with open(os.path.join(self.build, "tests", "faults", "marker"), "rb") as file:
            subprocess.run([LAB, "exec", "1", "sh", "-c", "cat >/home/marker && chmod 755 /home/marker && install -d -o alice -g alice " + MARKS],
                           stdin=file, check=True, timeout=60)
        _, usage, _ = self.node(1).run("alice", "esubmit", "--help")
        self.requeue = self.requeue and "--requeue" in usage

    def tell_times(self, path):
        """Until the nodes are down. A line for each processor that there can be: its ticks of 10 ms, all of them idle."""
        while not self.over.wait(TIMES_S):
            idle = int(time.monotonic() * 100)
            try:
                with open(f"{path}.new", "w", encoding="ascii") as file:
                    file.write("".join(f"cpu{name} 0 0 0 {idle} 0 0 0 0 0 0\n" for name in [" ", *range(os.sysconf("SC_NPROCESSORS_CONF"))]))
                os.chmod(f"{path}.new", 0o644)
                os.replace(f"{path}.new", path)
            except FileNotFoundError:
                return  # the nodes are down

    def use(self, allocator):
        """With all at rest. elmer is started again with another one, as an administrator would do it."""
        if allocator == self.allocator:
            return
        code, _, err = self.node(1).run("root", "sh", "-c", f"sed -i 's/^allocator = .*/allocator = {allocator}/' /etc/elmer/elmer.conf && systemctl restart elmer")
        if code:
            raise Failure(f"elmer cannot be started with allocator = {allocator}: {err.strip()[-500:]}")
        self.allocator = allocator

    def down(self):
        self.over.set()
        subprocess.run([LAB, "down"], check=False)

    def node(self, number):
        return self.nodes[number]

    @staticmethod
    def home(path):
        """The text of a file below /home."""
        return read(lab("path", "state").strip() + path)

    def marks(self):
        """The lines of all runs so far."""
        return self.home(f"{MARKS}/marks").splitlines()

    def output(self, name):
        """What the job's processes have printed."""
        return self.home(f"{OUTPUT}.{name}").splitlines()

    def jobs(self, first, last):
        """{id: record} of the jobs that elmer knows."""
        found = {}
        for low in range(first, last + 1, 200):
            ids = [str(i) for i in range(low, min(low + 200, last + 1))]
            code, out, err = self.node(1).run("root", "equery", "--json", *ids)
            if code not in (0, 3):
                raise Failure(f"equery ended with {code}: {err.strip()[-500:]}")
            found.update((record["id"], record) for record in json.loads(out)["jobs"])
        return found

    def left(self):
        return [line for node in self.nodes.values() for line in node.left()]
