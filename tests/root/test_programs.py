#!/usr/bin/python3
"""test_programs.py - elmer, rsd, elmer-spawn, the network half and elmer-tickets as they are, each a unit of its own; this test is systemd.

In a mount namespace with a /run of its own and made-up users it binds the sockets of the units, puts each program into a control
group, and starts it again when it has ended. Each is killed while a job runs: the others stay the same, the job's process too, and
new jobs, whose tickets are required, run. And it tries to join as somebody else. tests/system/45-programs.t has the real systemd.
Skipped where it is not root or has no cgroup2."""
import fcntl
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

SKIP, PATIENCE_S = 77, 60
USERS = {'elmer': 901, 'elmer-rsd': 902, 'elmer-jobs': 903, 'elmer-sup': 904, 'elmer-ticket': 905, 'alice': 2001}
STREAM, PACKETS = socket.SOCK_STREAM, socket.SOCK_SEQPACKET
build = os.getcwd()
PROGRAMS = {'elmer': ['elmer/elmer', '-c', '/run/elmer.conf'], 'rsd-net': ['elmer-rsd-net'], 'rsd-tickets': ['elmer-tickets', 'serve'],
            'rsd-spawn': ['elmer-rsd-begin', '-c', '/run/rsd.conf'], 'rsd': ['rsd/rsd']}
USER_OF = {'elmer': 'elmer', 'rsd-net': 'elmer-rsd', 'rsd-tickets': 'elmer-ticket'}
# As in systemd/*.socket: unit, name, path, type, mode, owner.
SOCKETS = [('rsd-net', 'users', 'rsd.sock', STREAM, 0o666, 0), ('rsd-net', 'rsd', 'net.sock', STREAM, 0o600, USERS['elmer-jobs']),
           ('rsd-spawn', 'rsd', 'spawn.sock', PACKETS, 0o600, USERS['elmer-jobs']),
           ('rsd-tickets', 'users', 'ticket.sock', STREAM, 0o666, 0),
           ('rsd-tickets', 'rsd', 'judge.sock', STREAM, 0o600, USERS['elmer-jobs']),
           ('rsd-tickets', 'grants', 'grants.sock', PACKETS, 0o600, 0)]
RSD_CONF = f"""[rsd]
name = ws1
elmer = /run/elmer/host.sock
mode = none
tmpdir_size = none
account = none
deny_groups = none
network = {build}/elmer-rsd-net
spawn = {build}/elmer-spawn
supervisor = {build}/elmer-supervisor
escapes = {build}/elmer-escapes
"""
ELMER_CONF = """[elmer]
name = ws1
hosts = ws1
store = /run/store/elmer.db
socket = /run/elmer/elmer.sock
host_socket = /run/elmer/host.sock
host_user = elmer-rsd
allocator = v1
levels = 4
resend = 200ms
"""
pids, again, faults = {}, True, 0


def shell(text):
    subprocess.run(['sh', '-ec', text], check=True)


def cgroup2():
    for line in open('/proc/self/mountinfo', encoding='utf-8'):
        if ' - cgroup2 ' in line:
            return line.split()[4]
    return None


def prepare():
    users = ''.join(f'{name}:x:{uid}:{uid}::/run/home:/bin/sh\\n' for name, uid in USERS.items())
    groups = ''.join(f'{name}:x:{uid}:\\n' for name, uid in USERS.items())
    shell(f"""mount -t tmpfs tmpfs /run
        for f in passwd group; do grep -v '^elmer\\|^alice:' /etc/$f >/run/$f; done
        printf '{users}' >>/run/passwd; printf '{groups}' >>/run/group
        mount --bind /run/passwd /etc/passwd; mount --bind /run/group /etc/group
        mkdir -p /var/lib; mount -t tmpfs tmpfs /var/lib
        mkdir /run/elmer-rsd /run/elmer /run/store /run/home /var/lib/elmer-ticket
        chmod 755 /run /run/elmer-rsd; chmod 777 /run/home; chmod 700 /var/lib/elmer-ticket
        chown elmer /run/elmer /run/store; chown elmer-ticket /var/lib/elmer-ticket""")
    for path, text in (('/run/rsd.conf', RSD_CONF), ('/run/elmer.conf', ELMER_CONF)):
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
    for unit in [*PROGRAMS, 'user']:
        os.makedirs(f'{base}/{unit}.service', exist_ok=True)


def listeners():
    made = []
    for unit, name, path, kind, mode, owner in SOCKETS:
        s = socket.socket(socket.AF_UNIX, kind)
        s.bind('/run/elmer-rsd/' + path)
        os.chmod('/run/elmer-rsd/' + path, mode)
        os.chown('/run/elmer-rsd/' + path, owner, 0)
        s.listen(128)
        made.append((unit, name, fcntl.fcntl(s, fcntl.F_DUPFD_CLOEXEC, 100)))
    return made


def enter(unit, user):
    with open(f'{base}/{unit}.service/cgroup.procs', 'w', encoding='ascii') as file:
        file.write('0')
    if user in USERS:
        os.setgroups([])
        os.setresgid(USERS[user], USERS[user], USERS[user])
        os.setresuid(USERS[user], USERS[user], USERS[user])


def start(unit):
    pid = os.fork()
    if pid == 0:
        given = [(name, fd) for of, name, fd in sockets if of == unit]
        environment = {'PATH': os.environ['PATH'], 'ELMER_RSD_UNITS': 'yes'}
        if given:
            environment.update(LISTEN_FDS=str(len(given)), LISTEN_FDNAMES=':'.join(name for name, _ in given), LISTEN_PID=str(os.getpid()))
        os.dup2(2, 1)
        for i, (_, fd) in enumerate(given):
            os.dup2(fd, 3 + i, inheritable=True)
        os.closerange(3 + len(given), 100)
        resource.setrlimit(resource.RLIMIT_RTTIME, (5000000, 5000000))  # rsd gives its class to two of them
        enter(unit, USER_OF.get(unit))
        os.execve(f'{build}/{PROGRAMS[unit][0]}', PROGRAMS[unit], environment)
    pids[unit] = pid


def processes(unit):
    with open(f'{base}/{unit}.service/cgroup.procs', encoding='ascii') as file:
        return [int(pid) for pid in file.read().split()]


def keep():
    """As Restart= does it: what is left of a unit is ended first, but where it has KillMode=process."""
    while again:
        for unit, pid in list(pids.items()):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
            deadline = time.monotonic() + 5
            while unit not in ('rsd', 'rsd-spawn') and processes(unit) and time.monotonic() < deadline:
                for left in processes(unit):
                    os.kill(left, signal.SIGTERM)
                time.sleep(0.02)
            time.sleep(0.1)
            start(unit)
        time.sleep(0.02)


def run(user, command):
    """Returns what it prints. Not by subprocess: keep() waits for children by their numbers only."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(write, 1)
        enter('user', user)
        os.chdir('/run/home')
        os.execve('/usr/bin/timeout', ['timeout', str(PATIENCE_S), 'sh', '-c', command],
                  {'PATH': f'{build}/client:' + os.environ['PATH'], 'HOME': '/run/home'})
    os.close(write)
    with os.fdopen(read, encoding='utf-8') as file:
        text = file.read().strip()
    os.waitpid(pid, 0)
    return text


def is_true(name, truth, *more):
    global faults
    print('ok' if truth else 'NOT OK', '-', name, *more, flush=True)
    faults += not truth


def wait_for(name, condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    is_true(name, condition())


def is_up():
    return re.search('^ws1 +up ', run('root', 'eadmin hosts 2>/dev/null'), re.M)


def new_job(name):
    status = run('alice', 'esubmit -w -o /dev/null 1 sh -c "exit 3" >/dev/null 2>&1; echo $?')
    is_true(f'{name}: a new job runs, with its ticket', status == '3', status)


def member(name):
    for unit in PROGRAMS:
        for pid in processes(unit):
            with open(f'/proc/{pid}/comm', encoding='utf-8') as file:
                if file.read().strip() == name:
                    return pid
    return 0


def others(before, unit):
    """Those that have ended beside it; with each rsd there is a new elmer-spawn."""
    return [u for u in pids if pids[u] != before[u] and u != unit and (unit, u) != ('rsd', 'rsd-spawn')]


def story():
    wait_for('the host is up', is_up)
    for unit, user in (('rsd-net', 'elmer-rsd'), ('rsd-tickets', 'elmer-ticket')):
        is_true(f'{unit} is {user} alone', {os.stat(f'/proc/{pid}').st_uid for pid in processes(unit)} == {USERS[user]})
    is_true('rsd is elmer-jobs', os.stat(f'/proc/{pids["rsd"]}').st_uid == USERS['elmer-jobs'])
    job = run('alice', 'esubmit -o /dev/null 1 sh -c "echo \\$\\$ >pid; exec sleep 3600"').split()[0]
    wait_for('a job runs', lambda: os.path.exists('/run/home/pid') and run('root', f'equery --json {job}').find('"running"') >= 0)
    process = run('root', 'cat /run/home/pid')
    for victim, unit in (('rsd-net', 'rsd-net'), ('rsd-tickets', 'rsd-tickets'), ('rsd', 'rsd'), ('elmer-spawn', 'rsd'),
                         ('elmer-desk', 'rsd-tickets'), ('elmer-recorder', 'rsd-tickets')):
        before = dict(pids)
        os.kill(pids.get(victim) or member(victim), signal.SIGKILL)
        wait_for(f'{victim} is killed, and is back', lambda: pids[unit] != before[unit] and is_up())
        is_true('no other has ended', not others(before, unit), others(before, unit))
        is_true('what is root begins anew with rsd, and not else', (pids['rsd-spawn'] != before['rsd-spawn']) == (unit == 'rsd'))
        new_job(f'{victim} was killed')
        is_true('the job before is the same', os.path.exists(f'/proc/{process}'))
    before = dict(pids)
    os.kill(pids['rsd'], signal.SIGHUP)
    wait_for('rsd is reloaded', lambda: pids['rsd'] != before['rsd'] and is_up())
    is_true('with the same configuration no other begins anew', not others(before, 'rsd'), others(before, 'rsd'))
    before = dict(pids)
    os.kill(pids['rsd'], signal.SIGTERM)
    wait_for('rsd is stopped and started', lambda: all(pids[u] != before[u] for u in ('rsd', 'rsd-net', 'rsd-tickets')) and is_up())
    new_job('they have begun anew with it')
    is_true('the job before is the same', os.path.exists(f'/proc/{process}'))
    before = dict(pids)
    for user, path, kind, expected in [*[(user, path, kind, 'Permission denied') for user in ('alice', 'elmer-rsd', 'elmer-ticket')
                                         for _, name, path, kind, *_ in SOCKETS if name != 'users'],
                                       ('elmer-jobs', 'grants.sock', PACKETS, 'Permission denied'),
                                       ('elmer-jobs', 'net.sock', STREAM, 'closed'), ('root', 'net.sock', STREAM, 'closed')]:
        got = run(user, f"""python3 -c '
import socket
s = socket.socket(socket.AF_UNIX, {int(kind)})
try:
    s.connect("/run/elmer-rsd/{path}")
    s.send(b"x" * 100)
    print("answered" if s.recv(100) else "closed")
except ConnectionError:
    print("closed")
except OSError as error:
    print(error.strerror)'""")
        is_true(f'{user} at {path}: {expected}', got == expected, got)
    new_job('strangers have knocked')
    is_true('and nobody has ended of it', pids == before)
    run('alice', f'ekill {job}')
    wait_for('the job ends', lambda: not os.path.exists(f'/proc/{process}'))


if os.geteuid() != 0 or not cgroup2():
    print('not root, or no cgroup2')
    sys.exit(SKIP)
if len(sys.argv) < 2:
    if subprocess.run(['unshare', '-m', 'true'], check=False).returncode != 0:
        print('no mount namespaces')
        sys.exit(SKIP)
    os.execvp('unshare', ['unshare', '-m', '--propagation', 'private', sys.executable, os.path.abspath(__file__), 'inside'])
base = f'{cgroup2()}/elmer-programs-{os.getpid()}'
prepare()
sockets = listeners()
for each in PROGRAMS:
    start(each)
keeper = threading.Thread(target=keep, daemon=True)
keeper.start()
try:
    story()
finally:
    again = False
    keeper.join()
    shell(f"""for i in $(seq 100); do
            for f in $(find {base} -name cgroup.procs); do for p in $(cat $f 2>/dev/null); do kill -9 $p 2>/dev/null || :; done; done
            find {base} -depth -type d -exec rmdir {{}} + 2>/dev/null && [ ! -e {base} ] && break
            sleep 0.05
        done""")
sys.exit(1 if faults else 0)
