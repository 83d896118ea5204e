#!/usr/bin/python3
"""In place of elmer-rsd-net: speaks to rsd's jobs half as one that was taken over. `hostile-net ticket` gets a user's ticket,
`hostile-net submit` submits with the one that it reads.
`hostile-net elmer` is in place of elmer: it has its key, and asks the first host that links for the same."""
import os, socket, ssl, struct, sys

COMMAND = '["/bin/sh","-c","echo ran >>ran"]'
GIVEN = ['PATH=/usr/bin:/bin', 'LANG=C']
DIR = '/home/alice'
number = 0
processor = '0'  # of the host that is asked


def send(s, text):
    data = text.encode()
    s.sendall(struct.pack('>I', len(data)) + data)


def receive(s):
    def exactly(n):
        data = b''
        while len(data) < n:
            more = s.recv(n - len(data))
            if not more:
                sys.exit(0)
            data += more
        return data
    return exactly(struct.unpack('>I', exactly(4))[0]).decode()


def field(message, key, quote='"'):
    at = message.find('"%s":%s' % (key, quote))
    if at < 0:
        return ''
    at += len(key) + 3 + len(quote)
    end = at
    while message[end] not in ('"' if quote else ',}'):
        end += 1
    return message[at:end]


def texts(items):
    return '[' + ','.join('"%s"' % item for item in items) + ']'


def say(case, what):
    os.write(2, ('hostile: %s: %s\n' % (case, what)).encode())


def ask(s, text, *ends):
    """Until an answer of one of these types."""
    send(s, text)
    while True:
        got = receive(s)
        if field(got, 'type') in ends:
            return got


def open_job(s, job, ticket, attempt=1, uid=None, user='alice', pvm='false', cpus=None, memory=0):
    global number
    number += 1
    got = ask(s, '{"type":"open","id":%d,"job":%d,"attempt":%d,"generation":0,"uid":%d,"user":"%s","cpus":[%s],"pvm":%s,'
              '"lease_ms":0,"submit_host":"ws2","ticket":"%s","memory_bytes":%d}' %
              (number, job, attempt, alice if uid is None else uid, user, cpus or processor, pvm, ticket, memory),
              'opened', 'open_failed')
    return field(got, 'text') if field(got, 'type') == 'open_failed' else 'opened'


def start(s, job, command=COMMAND, environment=(), drop=0, process=0, directory=DIR, output='out', umask=18, role='command',
          capture='false', cpus=None):
    global number
    number += 1
    given = GIVEN[drop:] + ['ELMER_RANK=%d' % process, 'ELMER_JOB_NAME=x'] if not environment else list(environment)
    got = ask(s, '{"type":"start","id":%d,"job":%d,"attempt":1,"process":%d,"role":"%s","argv":%s,"environment":%s,"dir":"%s",'
              '"output":"%s","errors":"%s","truncate":false,"capture":%s,"umask":%d,"cpus":[%s]}'
              % (number, job, process, role, command, texts(given), directory, output, output, capture, umask, cpus or processor),
              'exited', 'start_failed')
    return field(got, 'text') if field(got, 'type') == 'start_failed' else 'exited ' + field(got, 'exit_status', '')


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    return s


def submission(ticket):
    return ('{"type":"submit","id":1,"token":"t","name":"x","nprocs":1,"each":false,"pvm":false,"command":%s,"dir":"%s",'
            '"comment":"","output":"out","errors":"","environment":%s,"hosts":[],"umask":18,"submit_host":"","requeue":false,'
            '"mesh_rows":0,"ticket":"%s"}' % (COMMAND, DIR, texts(GIVEN), ticket))


def ticket_of_user():
    got = ask(connect('/run/elmer-rsd/ticket.sock'), submission(''), 'ticket', 'error')
    print(field(got, 'ticket') or field(got, 'text'))


def submit(ticket):
    s = connect('/run/elmer-rsd/rsd.sock')
    ask(s, '{"type":"hello","id":0,"program":"hostile","major":1,"minor":5,"capabilities":[]}', 'hello')
    got = ask(s, submission(ticket), 'submitted', 'error')
    print(field(got, 'text') or 'submitted')


def as_elmer():
    """The link of a host, welcomed."""
    global processor
    pki = '/var/lib/elmer/pki/'
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_3
    tls.load_cert_chain(pki + 'host.crt', pki + 'host.key')
    tls.load_verify_locations(pki + 'ca.crt')
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.num_tickets = 0
    s = socket.create_server(('', 7110), family=socket.AF_INET6, dualstack_ipv6=True)
    say('elmer', 'listens')
    link = tls.wrap_socket(s.accept()[0], server_side=True)
    send(link, '{"type":"hello","id":0,"program":"elmer","major":1,"minor":10,"capabilities":[]}')
    while field(got := receive(link), 'type') != 'host_hello':
        pass
    processor = field(got, 'cpus', '').strip('[]')
    send(link, '{"type":"host_welcome","id":%s,"report_ms":3600000,"heartbeat_ms":3600000}' % field(got, 'id', ''))
    say('elmer', 'linked')
    return link


def removed(s, ticket):
    say('of a removed host', open_job(s, 9, ticket))
    say('removed', 'finished')


def everything(s, ticket):
    with open('/home/other') as file:
        say("another cluster's", open_job(s, 1, file.read().strip()))
    changed = ticket[:-1] + ('1' if ticket[-1] == '0' else '0')
    say('without a ticket', open_job(s, 1, ''))
    say('for a user who did not submit', open_job(s, 1, ticket, user='bob'))
    say("with another's uid", open_job(s, 1, ticket, uid=alice + 1))
    say('cut short', open_job(s, 1, ticket[:-2]))
    say('one digit changed', open_job(s, 1, changed))
    say('as another kind of job', open_job(s, 1, ticket, pvm='true'))
    say('on more processors', open_job(s, 1, ticket, cpus=processor + ',' + processor))
    say('with memory that was not asked for', open_job(s, 1, ticket, memory=1 << 30))
    say('opened', open_job(s, 1, ticket))
    say('opened once more, on more processors', open_job(s, 1, ticket, cpus=processor + ',' + processor))
    say('a process on more processors', start(s, 1, cpus=processor + ',' + processor))
    say('changed argument', start(s, 1, command='["/bin/sh","-c","echo evil >>ran"]'))
    say('LD_PRELOAD', start(s, 1, environment=GIVEN + ['LD_PRELOAD=/tmp/evil.so']))
    say('a variable less', start(s, 1, drop=1))
    say('other value of a variable of ours', start(s, 1, environment=GIVEN + ['ELMER_JOB_NAME=evil']))
    say('other directory', start(s, 1, directory='/tmp'))
    say('other umask', start(s, 1, umask=0))
    say('other output', start(s, 1, output='.profile'))
    say('a rank more', start(s, 1, process=1))
    say("a virtual machine's daemon", start(s, 1, role='pvmd', process=1, command='["pvmd","-nws1"]', output='', capture='true'))
    say('as submitted', start(s, 1))
    say('its rank once more', start(s, 1))
    say('and with another argument', start(s, 1, command='["/bin/sh","-c","echo evil >>ran"]'))
    send(s, '{"type":"end","id":0,"job":1,"attempt":1,"grace_ms":0}')
    while field(receive(s), 'type') != 'empty':
        pass
    send(s, '{"type":"forget","id":0,"job":1,"attempt":1}')
    say('again', open_job(s, 1, ticket))
    say('as another job', open_job(s, 2, ticket))
    say('as the next attempt', open_job(s, 1, ticket, attempt=2))
    say('as an attempt of long ago', open_job(s, 1, ticket, attempt=300))
    say('all', 'finished')


def joined():
    """The connection of the jobs half: a child's third descriptor, or it joins us, as a unit, and hears which process we are."""
    if 'LISTEN_FDNAMES' not in os.environ:
        s = socket.socket(fileno=3)
        s.setblocking(True)
        return s
    door = socket.socket(fileno=3 + os.environ['LISTEN_FDNAMES'].split(':').index('rsd'))
    door.setblocking(True)
    s = door.accept()[0]
    s.sendall(struct.pack('=i', os.getpid()))
    return s


if sys.argv[1:] == ['ticket']:
    ticket_of_user()
    sys.exit(0)
if sys.argv[1:] == ['submit']:
    submit(sys.stdin.read().strip())
    sys.exit(0)
for line in open('/etc/passwd'):
    if line.startswith('alice:'):
        alice = int(line.split(':')[2])
if sys.argv[1:] == ['elmer']:
    root_half = as_elmer()
else:
    root_half = joined()
with open('/home/ticket') as file:
    the_ticket = file.read().strip()
(removed if os.path.exists('/home/cases') else everything)(root_half, the_ticket)
while True:
    receive(root_half)
