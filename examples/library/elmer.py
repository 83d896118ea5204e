#!/usr/bin/python3
"""elmer.py - submit a job and wait for it, from Python, by the C library.

elmer.py [-a] [-n NPROCS] [-o FILE] [--notify LINE] COMMAND [ARG..]   prints the job's id and how it ended; its exit status is
the job's, 128 and the number of the signal that ended it, or 125: Elmer could not run it to its end

-a waits in the event loop of asyncio, without a thread, and prints a dot each 200 ms meanwhile.
--notify has Elmer run a line of shell here when the job has ended, also when elmer.py is not there any more.

Needs libelmer and its header (Debian: libelmer1, libelmer-dev): the members of the structs are read from the header, so that
they are those of the library that is installed. ELMER_HEADER names another one.
"""
import argparse
import asyncio
import ctypes
import os
import re
import sys

OK = 0
ASK_MS = 30000

TYPES = {
    "bool": ctypes.c_bool, "int": ctypes.c_int, "unsigned": ctypes.c_uint, "double": ctypes.c_double,
    "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_size_t,
    "const char *": ctypes.c_char_p, "const char *const *": ctypes.POINTER(ctypes.c_char_p),
}


def structs(path):
    """The plain structs of a header as classes of ctypes: name -> class."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    found = {}
    for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.S | re.M):
        members = []
        for member in filter(None, (word.strip() for word in body.split(";"))):
            match = re.fullmatch(r"(.*?)(\w+)(?:\[(\d+)\])?", member, re.S)
            if not match:  # a pointer to a function
                break
            kind, label, count = match[1].strip(), match[2], match[3]
            kind = ctypes.c_char if kind == "char" else TYPES.get(kind, ctypes.c_void_p)  # other pointers: not followed here
            members.append((label, kind * int(count) if count else kind))
        else:
            found[name] = type(name, (ctypes.Structure,), {"_fields_": members})
    return found


def strings(words):
    """A list of C strings with NULL behind the last."""
    return (ctypes.c_char_p * (len(words) + 1))(*[os.fsencode(word) for word in words], None)


class Options(ctypes.Structure):
    _fields_ = [("socket", ctypes.c_char_p), ("patience_ms", ctypes.c_int), ("on_wait", ctypes.c_void_p), ("data", ctypes.c_void_p)]


class Elmer:
    def __init__(self):
        known = structs(os.environ.get("ELMER_HEADER", "/usr/include/elmer.h"))
        self.submission, self.submitted, self.job = known["elmer_submission"], known["elmer_submitted"], known["elmer_job"]
        self.error = known["elmer_error"]()
        self.library = ctypes.CDLL("libelmer.so.1", use_errno=True)
        self.handle = ctypes.c_void_p()
        self.library.elmer_next_ended.restype = self.library.elmer_call_jobs.restype = ctypes.c_void_p
        socket = os.environ.get("ELMER_SOCKET")  # as for the commands
        options = Options(socket=os.fsencode(socket) if socket else None)
        self.check(self.library.elmer_open(ctypes.byref(options), ctypes.byref(self.handle), ctypes.byref(self.error)))

    def check(self, result):
        if result != OK:
            raise RuntimeError(self.error.text.decode(errors="replace"))

    def submit(self, command, nprocs, output, notify):
        """The id of the job, which is on elmer's disk then, and why nobody will be told of its end, or ""."""
        environment = strings([f"{name}={value}" for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")])
        words = strings(command)
        asked = self.submission(nprocs=nprocs, command=words, environment=environment,
                                output=os.fsencode(output) if output else None, notify=os.fsencode(notify) if notify else None)
        answer = ctypes.POINTER(self.submitted)()
        self.check(self.library.elmer_submit(self.handle, ctypes.byref(asked), ASK_MS, ctypes.byref(answer), ctypes.byref(self.error)))
        job, untold = answer[0].job, answer[0].untold.decode(errors="replace")
        self.library.elmer_submitted_free(answer)
        return job, untold

    def wait(self, job):
        """(state, exit status, signal) of its end."""
        while True:
            jobs = ctypes.POINTER(ctypes.c_void_p)()  # struct elmer_jobs begins with the jobs
            self.check(self.library.elmer_wait(self.handle, ctypes.c_uint64(job), ASK_MS, ctypes.byref(jobs), ctypes.byref(self.error)))
            result = self.end_of(jobs)
            if result:
                return result

    def end_of(self, jobs):
        """(state, exit status, signal), or None before its end. Frees the answer."""
        item = self.job.from_address(jobs[0])
        ended = item.state in (b"done", b"cancelled")
        result = item.state.decode(), item.exit_status, item.signal
        self.library.elmer_jobs_free(jobs)
        return result if ended else None

    async def wait_in_loop(self, job):
        """The same in the loop of asyncio."""
        while True:
            call = ctypes.c_void_p()
            self.check(self.library.elmer_wait_any_begin(self.handle, ctypes.byref(ctypes.c_uint64(job)), ctypes.c_size_t(1), ASK_MS,
                                                         ctypes.byref(call), ctypes.byref(self.error)))
            await self.until_ended(call)
            try:
                self.check(self.library.elmer_call_result(call, ctypes.byref(self.error)))
                jobs = ctypes.cast(self.library.elmer_call_jobs(call), ctypes.POINTER(ctypes.c_void_p))
            finally:
                self.library.elmer_call_free(call)
            result = self.end_of(jobs)
            if result:
                return result

    async def until_ended(self, call):
        loop, ready, timer = asyncio.get_running_loop(), asyncio.Event(), None
        descriptor = self.library.elmer_fd(self.handle)
        loop.add_reader(descriptor, ready.set)
        try:
            while self.library.elmer_next_ended(self.handle) != call.value:  # there is one at a time
                timeout = self.library.elmer_timeout_ms(self.handle)
                timer = loop.call_later(timeout / 1000, ready.set) if timeout >= 0 else None
                await ready.wait()
                ready.clear()
                if timer:
                    timer.cancel()
                self.library.elmer_step(self.handle)
        finally:
            loop.remove_reader(descriptor)

    def close(self):
        self.library.elmer_close(self.handle)


async def wait_and_tick(elmer, job):
    async def tick():
        while True:
            await asyncio.sleep(0.2)
            print(".", end="", file=sys.stderr, flush=True)

    ticking = asyncio.create_task(tick())
    try:
        return await elmer.wait_in_loop(job)
    finally:
        ticking.cancel()
        print(file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(usage="%(prog)s [-a] [-n NPROCS] [-o FILE] [--notify LINE] COMMAND [ARG..]")
    parser.add_argument("-a", action="store_true")
    parser.add_argument("-n", type=int, default=1, metavar="NPROCS")
    parser.add_argument("-o", metavar="FILE")
    parser.add_argument("--notify", metavar="LINE")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    options = parser.parse_args()
    if not options.command:
        parser.error("a command is missing")
    try:
        elmer = Elmer()
        job, untold = elmer.submit(options.command, options.n, options.o, options.notify)
        print(f"job {job}", flush=True)
        if untold:
            print(f"elmer.py: {untold}", file=sys.stderr)
        state, status, signal = asyncio.run(wait_and_tick(elmer, job)) if options.a else elmer.wait(job)
        elmer.close()
    except (OSError, RuntimeError) as error:
        print(f"elmer.py: {error}", file=sys.stderr)
        return 125
    print(f"job {job} is {state}, " + (f"signal {signal}" if signal > 0 else f"exit status {status}"))
    if signal > 0:
        return 128 + signal
    return status if state == "done" and status >= 0 else 125


if __name__ == "__main__":
    sys.exit(main())
