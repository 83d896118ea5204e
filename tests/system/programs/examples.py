#!/usr/bin/python3
"""examples - what a manual page shows: its commands, and what they print.

  examples.py list PAGE DIRECTORY      the steps of the page, numbered files: 01.command, 01.who, 01.shown, 01.hint, 01.line
  examples.py same SHOWN PRINTED       exit status 1, and the first line that differs

A step is a line with a prompt in a block of literal text, of .Dl or .Bd -literal: `$ ` is a user, `# ` root, `ws2# ` root on ws2. A line
that ends with a backslash goes on, and so does `<<'WORD'` up to WORD. What follows up to the next prompt is what the page shows.
A comment of the page before a block, `.\\" example: HINT`, tells the test what is there before, or what is typed.
Literal text without a prompt is a step too, without a command. A page without any is an error, and so are literal text in another form and a
hint without a block.

Shown and printed are the same if their words are: numbers may differ in their digits, and so may the blanks between words. A line `...` of the
page is any lines; a line that is too long for it may go on in the next.
"""
import os
import re
import sys

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


def pattern(line):
    words = [re.sub(r"\d+", r"\\d+", re.escape(word)) for word in line.split()]
    return re.compile(r"\s*" + r"\s+".join(words) + r"\s*")


def same(shown, printed):
    """None, or what differs."""
    def matches(i, j):
        while i < len(shown):
            if shown[i] == "...":
                return any(matches(i + 1, k) for k in range(j, len(printed) + 1))
            if j == len(printed) or not pattern(shown[i]).fullmatch(printed[j]):
                wrapped = " ".join(shown[i:i + 2])
                if j < len(printed) and pattern(wrapped).fullmatch(printed[j]):
                    i, j = i + 2, j + 1
                    continue
                reached.append((i, j))
                return False
            i, j = i + 1, j + 1
        if j < len(printed):
            reached.append((i, j))
        return j == len(printed)

    reached = []
    if matches(0, 0):
        return None
    i, j = max(reached)
    return (f"the page shows: {shown[i] if i < len(shown) else 'nothing more'}\n"
            f"printed is:     {printed[j] if j < len(printed) else 'nothing more'}")


def main(words):
    if len(words) == 3 and words[0] == "list":
        list_steps(words[1], words[2])
        return 0
    if len(words) == 3 and words[0] == "same":
        texts = []
        for path in words[1:]:
            with open(path, encoding="utf-8", errors="replace") as file:
                texts.append([line.rstrip() for line in file.read().replace("\r\n", "\n").splitlines()])
        difference = same(*texts)
        if difference:
            print(difference)
        return 1 if difference else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
