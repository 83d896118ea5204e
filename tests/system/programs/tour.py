#!/usr/bin/python3
"""tour - follow doc/09-user-tour.md.

  tour.py run|record DOCUMENT LAB      LAB USER COMMAND.. runs a command as USER on the first host
  tour.py self-test                    whether it tells right from wrong outputs

A heading `## N. ..` begins a task; a line `Found in: ..` below it says where its commands stand in --help and in manual pages, and these
are looked up there. In its indented blocks `$ ` begins a command of alice, `> ` goes on with it, `bob$ ` and `alice$ ` are no part of the
solution: their status is not looked at. What follows a command is its output.
`run` prints a point for each command: status 0, and the output shown. Only what no two runs have in common may differ (VARIES), or come on
a slow machine alone (PASSING); `...` stands for any lines, or for the rest of one. `record` writes what was printed into DOCUMENT, and
leaves out what `...` stands for, but where that is the last line.
The number that a command prints in its first line is an id: where others name the document's, they get the one of this run.
"""
import os
import re
import subprocess
import sys

INDENT = '    '
COMMAND = re.compile(r'(|alice|bob)\$ (.*)')
VARIES = [r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d', r'\d+:\d\d:\d\d', r'\d+\.\d+s\b', r'\d+\.\d+ MiB', r'(?<=ws\d \()\d(?=\))']
TOKEN = re.compile(r'(?P<lines>^\.\.\.\n)|(?P<rest>\.\.\.$)|(?P<varies>' + '|'.join(VARIES) +
                   r')|(?P<host>\bws\d+\b)|(?P<number>\d+)', re.M)

PASSING = re.compile(r'etail: job \d+ is starting; waiting for it')


def read(path):
    """Lines of the document, or commands as [task, user, scene, text, shown]."""
    items, task, command, blanks = [], None, None, 0
    for line in open(path, encoding='utf-8').read().splitlines():
        begin = re.match(r'## (\d+)\. ', line)
        if line.startswith('## '):
            task = int(begin[1]) if begin else None
        if task is None or not line.startswith(INDENT):
            if line:
                command = None
            blanks = blanks + 1 if command and not line else 0
            items.append(line)
            continue
        text = line[len(INDENT):]
        found = COMMAND.match(text)
        if blanks and command and not found:  # a part of the output
            del items[-blanks:]
            command[4] += [''] * blanks
        blanks = 0
        if found:
            command = [task, found[1] or 'alice', bool(found[1]), found[2], []]
            items.append(command)
        elif command is None:
            raise SystemExit(f'task {task}: output before a command: {text}')
        elif text.startswith('> ') and not command[4]:
            command[3] += '\n' + text[2:]
        else:
            command[4].append(text)
    return items


# ---- ids ----

def of_this_run(number, ids):
    """Also of the job after it: the notice of one that was submitted with --mail-at."""
    before = str(int(number) - 1)
    return ids.get(number) or (str(int(ids[before]) + 1) if before in ids else number)


def known_ids(text, ids):
    """Words of digits, of esubmit only those behind --after."""
    def new(found):
        return of_this_run(found[0], ids)
    if text.startswith('esubmit'):
        return re.sub(r'--after \S+', lambda found: re.sub(r'\d+', new, found[0]), text)
    return re.sub(r'(?<![\w.])(?<!-n )\d+(?=\[|\s|$|\.out)', new, text)


def first_number(lines):
    return lines[0] if lines and lines[0].isdigit() else None


# ---- comparing ----

def pattern_of(shown, ids):
    """What may be printed where this is shown. In a line it may be another host, but two are two, and one is one."""
    hosts, gaps, out, at = {}, 0, '', 0
    for token in TOKEN.finditer(shown):
        before = shown[at:token.start()]
        begin, at = token.span()
        kind, text = token.lastgroup, token[0]
        out += re.escape(before)
        if '\n' in before:
            hosts = {}
        if kind in ('lines', 'rest'):
            out += f'(?P<{kind}{gaps}>' + (r'(?:.*\n)*)' if kind == 'lines' else '.*)')
            gaps += 1
        elif kind == 'varies':
            out += next(pattern for pattern in VARIES if re.compile(pattern).match(shown, begin))
        elif kind == 'number':
            out += f'(?:{text}|{of_this_run(text, ids)})(?![0-9])'
        elif text in hosts:
            out += f'(?P={hosts[text]})(?![0-9])'
        else:
            others = ''.join(f'(?!(?P={name})(?![0-9]))' for name in hosts.values())
            hosts[text] = f'host{begin}'
            out += f'{others}(?P<{hosts[text]}>ws[0-9]+)'
    return out + re.escape(shown[at:])


def as_text(lines):
    return ''.join(line + '\n' for line in lines)


def compare(shown, got, ids):
    return re.fullmatch(pattern_of(as_text(shown), ids), as_text(got))


def recorded(shown, got, match):
    """What was printed, with the gaps of what was shown. A last line `...` is none, it waited for this."""
    text = as_text(got)
    if not match or shown[-1:] == ['...']:
        return got
    gaps = [(match.span(name), name) for name in match.groupdict() if name.startswith(('lines', 'rest'))]
    for (begin, end), name in sorted(gaps, reverse=True):
        text = text[:begin] + ('...\n' if name.startswith('lines') else '...') + text[end:]
    return text.splitlines()


SELF_TEST = [  # shown, printed where job 7 of the document is job 9, whether that is right
    ('job 7 allocated ws1 at level 0', 'job 9 allocated ws2 at level 0', True),
    ('job 7 allocated ws1 ws2 at level 0', 'job 9 allocated ws2 ws1 at level 0', True),
    ('job 7 allocated ws1 ws2 at level 0', 'job 9 allocated ws1 ws1 at level 0', False),
    ('job 7 allocated ws1 ws1 at level 0', 'job 9 allocated ws1 ws2 at level 0', False),
    ('job 7 allocated ws1 at level 0', 'job 9 allocated ws1 at level 1', False),
    ('job 7 allocated ws1 at level 0', 'job 8 allocated ws1 at level 0', False),
    ('job 7 queued: 0 ahead', 'job 9 queued: 10 ahead', False),
    ('1 of 4 tasks failed', '11 of 4 tasks failed', False),
    ('rank 0 of 4', 'rank 1 of 4', False),
    ('the first of them is 7[3]', 'the first of them is 9[3]', True),
    ('the first of them is 7[3]', 'the first of them is 9[4]', False),
    ('ended  2026-11-26 09:09:29', 'ended  2027-01-01 00:00:00', True),
    ('ended  2026-11-26 09:09:29', 'ended  -', False),
    ('0:00:02  0.03s  L0 2.0s', '0:00:12  1.50s  L0 2.1s', True),
    ('0:00:02  0.03s  L0 2.0s', '0:00:12  1.50s  L1 2.1s', False),
    ('processors  1: ws1 (1)', 'processors  1: ws2 (0)', True),
    ('processors  1: ws1 (1)', 'processors  2: ws2 (0)', False),
    ('time 1m', 'time 2m', False),
    ('a  b', 'a b', False),
    ('a', 'a\n', False),
    ('verified slaves=2 ...', 'verified slaves=2 seconds=1', True),
    ('verified slaves=2 ...', 'verified slaves=1 seconds=1', False),
    ('begin\n...\nend', 'begin\n1\n2\nend', True),
    ('begin\n...\nend', 'begin\n1\n2\n', False)]


def self_test():
    return [f'{shown!r} and {got!r}: right is {right}' for shown, got, right in SELF_TEST
            if bool(compare([shown], [got], {'7': '9'})) != right]


# ---- where it was found ----

def found_in(items):
    """(task, where) of each paragraph "Found in: .."."""
    task, text = 0, None
    for item in items + ['']:
        line = item if isinstance(item, str) else ''
        begin = re.match(r'## (\d+)\. ', line)
        task = int(begin[1]) if begin else task
        if line.startswith('Found in: '):
            text = ''
        if text is not None and line:
            text += line + ' '
        elif text is not None:
            yield task, text
            text = None


def missing(where, lab, pages):
    """What a paragraph names and its place has not."""
    for found in re.finditer(r'`(\w+) --help`(?: \(((?:`[^`]+`(?:, )?)+)\))?', where):
        said = subprocess.run(lab + ['alice', found[1], '--help'], stdout=subprocess.PIPE, check=False, timeout=60).stdout.decode()
        for option in re.findall('`([^`]+)`', found[2] or 'Usage'):
            if not re.search(r'(?<![\w-])' + re.escape(option) + r'(?![\w-])', said):
                yield f'{found[1]} --help has no {option}'
    for found in re.finditer(r'(\w+)\((\d)\)((?:(?:, | and )(?:"[^"]+"|[A-Z]{4,}))*)', where):
        page = os.path.join(pages, f'{found[1]}.{found[2]}')
        text = open(page, encoding='utf-8').read() if os.path.exists(page) else ''
        if not text:
            yield f'there is no {found[1]}({found[2]})'
        for heading in re.findall('"([^"]+)"|([A-Z]{4,})', found[3]):
            name = heading[0] or heading[1]
            if not re.search(r'(?m)^\.S[hs] ' + re.escape(name) + '$', text):
                yield f'{found[1]}({found[2]}) has no {name}'


# ---- following ----

def point(good, name, *explained):
    print('good' if good else 'bad', name, flush=True)
    if not good:
        print(*explained, sep='\n  ', flush=True)
    return good


def run(lab, command, ids):
    text = known_ids(command[3], ids)
    done = subprocess.run(lab + [command[1], 'bash', '-c', text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, timeout=120)
    got = [line.rstrip() for line in done.stdout.decode('utf-8', 'replace').replace('\r', '').splitlines()]
    got = [line for line in got if not PASSING.fullmatch(line)]
    number, was = first_number(got), first_number(command[4])
    if number:
        ids[was or number] = number
    return done.returncode, got


def check_shape(items, commands):
    tasks = sorted({command[0] for command in commands})
    if tasks != list(range(1, 16)):
        raise SystemExit(f'these are not 15 tasks: {tasks}')
    for task in tasks:
        own = [command for command in commands if command[0] == task and not command[2]]
        if not 1 <= len(own) <= 2:
            raise SystemExit(f'task {task} has {len(own)} commands')
    if [task for task, _ in found_in(items)] != tasks:
        raise SystemExit('not each task says where it was found')


def write(path, items):
    lines = []
    for item in items:
        if isinstance(item, str):
            lines.append(item)
            continue
        prompt = f'{item[1]}$ ' if item[2] else '$ '
        lines += (INDENT + line for line in (prompt + item[3].replace('\n', '\n> ')).split('\n'))
        lines += ((INDENT + line).rstrip() for line in item[4])
    with open(path, 'w', encoding='utf-8') as out:
        out.write('\n'.join(lines) + '\n')


def main():
    if sys.argv[1] == 'self-test':
        print(*self_test(), sep='\n', end='')
        return 1 if self_test() else 0
    mode, path, lab = sys.argv[1], sys.argv[2], sys.argv[3:]
    items = read(path)
    commands = [item for item in items if isinstance(item, list)]
    check_shape(items, commands)
    ids, failed = {}, 0
    for task, where in found_in(items):
        lacks = list(missing(where, lab, os.path.join(os.path.dirname(path), '..', 'man')))
        failed += not point(not lacks, f'{task}: the commands stand where the tour says', *lacks)
    for command in commands:
        status, got = run(lab, command, ids)
        same = compare(command[4], got, ids)
        good = (status == 0 or command[2]) and (same or mode == 'record')
        failed += not point(good, f'{command[0]}: {command[3].splitlines()[0]}',
                            f'it ended with {status}, and printed', *got, 'where the document shows', *command[4])
        if mode == 'record':
            command[3] = known_ids(command[3], ids)
            command[4] = recorded(command[4], got, same)
    if mode == 'record':
        write(path, items)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
