#!/usr/bin/python3
"""examples - what a manual page shows: its commands, and what they print.

  examples.py list PAGE DIRECTORY      the steps of the page, numbered files: 01.command, 01.who, 01.shown, 01.hint, 01.line
  examples.py same SHOWN PRINTED IDS   exit status 1, and the first line that differs; IDS: lines of a word of the page and what it is here
  examples.py --self-test

A step is a line with a prompt in a block of literal text, of .Dl or .Bd -literal: `$ ` is a user, `# ` root, `ws2# ` root on ws2. A line
that ends with a backslash goes on, and so does `<<'WORD'` up to WORD. What follows up to the next prompt is what the page shows.
A comment of the page before a block, `.\\" example: HINT`, tells the test what is there before, or what is typed.
Literal text without a prompt is a step too, without a command. A page without any is an error, and so are literal text in another form and a
hint without a block.

Shown and printed are the same if their words are; the blanks between words may differ, and of numbers these: what a clock says (2026-01-31,
12:00:04) or has measured (200.1s) is another one of that form. A host of the page (ws2) is one host of the example, another for each. A number
that is an id is that of here, or all of the example has it as the page does. A line `...` of the page is any lines; a line that is too long for
it may go on in the next.
"""
import os
import re
import sys
import tempfile

PROMPT = re.compile(r"^(\w*[$#]) (.*)$")
HINT = re.compile(r'^\.\\" example: (.*)$')
INSIDE = "inside a job"  # of all commands of a block
ESCAPES = {r"\e": "\\", r"\&": "", r"\-": "-", r"\(aq": "'", r"\(dq": '"', r"\(ha": "^", r"\(ti": "~"}


def plain(line):
    return re.sub(r"\\(?:\(..|.)", lambda found: ESCAPES.get(found.group(), found.group()), line)


def blocks(page):
    """(number of the first line, hints, lines) of each block."""
    inside, hints, first = None, [], 0
    for number, line in enumerate(page, 1):
        line = line.rstrip("\n")
        hint = HINT.match(line)
        if hint:
            hints.append(hint.group(1))
        elif inside is not None:
            if line == ".Ed":
                yield first, hints, inside
                inside, hints = None, []
            else:
                inside.append(plain(line))
        elif line.startswith(".Bd -literal"):
            inside, first = [], number + 1
        elif line.startswith(".Dl "):
            yield number, hints, [plain(line[len(".Dl "):])]
            hints = []
        elif re.match(r"\.(D1|nf|EX|Bd)\b", line) or "example:" in line:
            raise ValueError(f"{number}: literal text that is neither .Dl nor .Bd -literal, or a hint that is none: {line}")
    if hints or inside is not None:
        raise ValueError("a hint without a block, or a block without an end")


def steps(lines):
    """(place of its first line, who, command, what is shown) of each; who and command are None before the first prompt."""
    at = 0
    place, who, command, shown = 0, None, None, []
    while at < len(lines):
        prompt = PROMPT.match(lines[at])
        if not prompt:
            shown.append(lines[at])
            at += 1
            continue
        if command is not None or any(shown):
            yield place, who, command, shown
        place, who, command, shown = at, prompt.group(1), prompt.group(2), []
        at += 1
        while command.endswith("\\") and at < len(lines):
            command += "\n" + lines[at]
            at += 1
        here = re.search(r"<<'(\w+)'", command)
        while here and at < len(lines) and not command.endswith("\n" + here.group(1)):
            command += "\n" + lines[at]
            at += 1
    if command is not None or any(shown):
        yield place, who, command, shown


def write(directory, number, **parts):
    for name, text in parts.items():
        with open(os.path.join(directory, f"{number:02}.{name}"), "w", encoding="utf-8") as file:
            file.write(text)


def list_steps(path, directory):
    number = 0
    with open(path, encoding="utf-8") as page:
        for first, hints, lines in blocks(page):
            for place, who, command, shown in steps(lines):
                while shown and not shown[-1]:
                    shown.pop()
                number += 1
                write(directory, number, line=str(first + place), hint="".join(f"{hint}\n" for hint in hints), who=who or "",
                      command=command or "", shown="".join(f"{line}\n" for line in shown))
                hints = [hint for hint in hints if hint == INSIDE]
    if not number:
        raise ValueError(f"{path} has no example")


KINDS = {  # of what may differ; the first that fits
    r"\d{4}-\d\d-\d\d": r"\d{4}-\d\d-\d\d",
    r"\d+:\d\d:\d\d": r"\d+:\d\d:\d\d",
    r"\d+\.\d+(?=s\b)": r"\d+\.\d+",
    r"\bws\d+": r"(ws\d+)",
    r"\d+": r"(\d+)",
}
KIND = re.compile("|".join(f"({kind})" for kind in KINDS))


def line_is(shown, printed, means, ids):
    """What hosts and ids of the page mean with this line too; None if it is another one."""
    names = []

    def part(found):
        pattern = list(KINDS.values())[found.lastindex - 1]
        if "(" in pattern:
            names.append(found.group())
        return pattern

    def words(text):
        at, done = 0, ""
        for found in KIND.finditer(text):
            done += re.escape(text[at:found.start()]) + part(found)
            at = found.end()
        return done + re.escape(text[at:])

    match = re.fullmatch(r"\s*" + r"\s+".join(words(word) for word in shown.split()) + r"\s*", printed)
    if not match:
        return None
    means = dict(means)
    for name, here in zip(names, match.groups()):
        if name.isdigit() and here not in (name, ids.get(name)):
            return None
        if means.setdefault(name, here) != here:
            return None
    hosts = [here for name, here in means.items() if not name.isdigit()]
    return means if len(set(hosts)) == len(hosts) else None


def same(shown, printed, ids):
    """None, or what differs."""
    def matches(i, j, means):
        while i < len(shown):
            if shown[i] == "...":
                return any(matches(i + 1, k, means) for k in range(j, len(printed) + 1))
            for lines in 1, 2:
                more = line_is(" ".join(shown[i:i + lines]), printed[j], means, ids) if j < len(printed) else None
                if more is not None:
                    break
            if more is None:
                reached.append((i, j))
                return False
            i, j, means = i + lines, j + 1, more
        if j < len(printed):
            reached.append((i, j))
        return j == len(printed)

    reached = []
    if matches(0, 0, {}):
        return None
    i, j = max(reached)
    return (f"the page shows: {shown[i] if i < len(shown) else 'nothing more'}\n"
            f"printed is:     {printed[j] if j < len(printed) else 'nothing more'}")


def same_files(shown, printed, ids):
    texts = []
    for path in shown, printed:
        with open(path, encoding="utf-8", errors="replace") as file:
            texts.append([line.rstrip() for line in file.read().replace("\r\n", "\n").splitlines()])
    with open(ids, encoding="utf-8") as file:
        return same(*texts, dict(line.split() for line in file))


def self_test():
    cases = (  # shown, printed, ids, whether they are the same
        ("job 42 runs", "job  7 runs", "42 7", True),
        ("job 42 runs", "job 8 runs", "42 7", False),
        ("job 42 runs", "job 42 runs", "42 7", True),
        ("job 42, out/42.1", "job 7, out/42.1", "42 7", False),
        ("job 42, out/42.1", "job 7, out/7.1", "42 7", True),
        ("job 42\nits level: 1", "job 7\nits level: 1", "42 7", True),
        ("job 42\nits level: 1", "job 7\nits level: 0", "42 7", False),
        ("4 processors", "14 processors", "", False),
        ("4 processors", "4 processors", "4 7", True),
        ("after 0:00:04, L1 200.1s, on 2026-01-31", "after 12:03:20, L1 0.0s, on 2027-12-01", "", True),
        ("after 0:00:04", "after 4", "", False),
        ("after 0:00:04", "after 0:04", "", False),
        ("L1 200.1s", "L0 200.1s", "", False),
        ("L1 200.1s", "L1 200s", "", False),
        ("on 2026-01-31", "on 2026-1-31", "", False),
        ("time 2h30m", "time 2h31m", "", False),
        ("ws1 ws2\nws1", "ws2 ws3\nws2", "", True),
        ("ws1 ws2\nws1", "ws2 ws3\nws3", "", False),
        ("ws1 ws2", "ws1 ws1", "", False),
        ("ws1:7110", "ws1:7111", "", False),
        ("a\n...\njob 42", "a\njob 8\njob 7", "42 7", True),
        ("a\n...\njob 42", "a\njob 7\njob 8", "42 7", False),
        ("job 42 waits for\n3 hosts", "job 7 waits for 3 hosts", "42 7", True),
        ("job 42 waits for\n3 hosts", "job 7 waits for 2 hosts", "42 7", False),
    )
    with tempfile.TemporaryDirectory() as directory:
        for *texts, expected in cases:
            paths = [os.path.join(directory, name) for name in ("shown", "printed", "ids")]
            for path, text in zip(paths, texts):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text + "\n" if text else "")
            if (same_files(*paths) is None) != expected:
                print(f"examples.py: {texts} are {'not ' if expected else ''}the same")
                return 1
    return 0


def main(words):
    if len(words) == 3 and words[0] == "list":
        list_steps(words[1], words[2])
        return 0
    if words == ["--self-test"]:
        return self_test()
    if len(words) == 4 and words[0] == "same":
        difference = same_files(*words[1:])
        if difference:
            print(difference)
        return 1 if difference else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
