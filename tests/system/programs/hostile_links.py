#!/usr/bin/env python3
"""hostile_links.py ADDRESS:PORT WHAT [ARGUMENT..] - the hostile side of elmer's port for hosts.

Prints one line: what the other side did. DIR holds host.crt and host.key of whoever we pretend to be."""
import os
import json
import socket
import ssl
import struct
import sys
import time


def frame(**message):
    text = json.dumps(message).encode()
    return struct.pack(">I", len(text)) + text


HELLO = frame(type="hello", id=0, program="hostile", major=1, minor=0, capabilities=[])


def host_hello(name):
    return frame(type="host_hello", id=1, host=name, boot="b", cpus=[0], generation=0, holdings=[], mode="none",
                 mode_reason="", address="", name_loopback=False, pvm=False)


def connect(source=None):
    address, port = sys.argv[1].rsplit(":", 1)
    s = socket.socket()
    s.settimeout(20)
    if source:
        s.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        s.bind((source, 0))
    s.connect((address, int(port)))
    return s


def context(directory=None):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    c.check_hostname = False
    c.verify_mode = ssl.CERT_NONE
    if directory:
        c.load_cert_chain(directory + "/host.crt", directory + "/host.key")
    return c


def read_all(s):
    data = b""
    try:
        while True:
            more = s.recv(65536)
            if not more:
                return data
            data += more
    except socket.timeout:
        return data + b" STILL OPEN"
    except (ssl.SSLError, OSError) as e:
        return data + (" " + str(e)).encode()


def said(data):
    "the text of the last error message, or what came instead"
    at = data.rfind(b'{"type":"error"')
    if not data:
        return "closed"
    if data[:2] == b"\x15\x03" and len(data) < 50:
        return "an alert"
    return json.loads(data[at:data.index(b"}", at) + 1])["text"] if at >= 0 else data[-300:].decode("latin1")


def talk(directory, *frames):
    "with TLS, and with a certificate if there is a directory"
    try:
        s = context(directory).wrap_socket(connect())
        s.sendall(b"".join(frames))
    except (ssl.SSLError, OSError) as e:
        return str(e)
    return said(read_all(s))


def raw(data):
    s = connect()
    try:
        s.sendall(data)
    except OSError:
        pass
    return said(read_all(s))


def old_version():
    c = context()
    c.maximum_version = ssl.TLSVersion.TLSv1_2
    try:
        c.wrap_socket(connect())
        return "accepted"
    except (ssl.SSLError, OSError) as e:
        return str(e)


class Recorded:
    "a session over memory BIOs, so that all that we send can be kept"

    def __init__(self, directory):
        self.s = connect()
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context(directory).wrap_bio(self.incoming, self.outgoing)
        self.sent = b""

    def flush(self):
        data = self.outgoing.read()
        self.sent += data
        self.s.sendall(data)

    def run(self, call):
        while True:
            try:
                result = call()
                self.flush()
                return result
            except ssl.SSLWantReadError:
                self.flush()
                self.incoming.write(self.s.recv(65536))

    def begin(self):
        self.run(self.tls.do_handshake)
        self.run(lambda: self.tls.write(HELLO))
        return self.run(lambda: self.tls.read(65536))


def replay(directory):
    r = Recorded(directory)
    if b"hello" not in r.begin():
        return "the session to be recorded was not accepted"
    r.s.close()
    answer = raw(r.sent)
    return "served" if "welcome" in answer else "nothing was served"


def truncated(directory):
    r = Recorded(directory)
    r.begin()
    r.tls.write(host_hello("ws2"))
    r.s.sendall(r.outgoing.read()[:50])
    r.s.shutdown(socket.SHUT_WR)
    return "still open" if b"STILL OPEN" in read_all(r.s) else "closed"


def slow():
    tls = context().wrap_bio(ssl.MemoryBIO(), out := ssl.MemoryBIO())
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    s, begin = connect(), time.monotonic()
    s.settimeout(0.25)
    for byte in out.read():
        try:
            s.send(bytes([byte]))
            if not s.recv(1):
                break
        except socket.timeout:
            continue
        except OSError:
            break
    return "ended" if time.monotonic() - begin < 15 else "lasted"


def idle(count, network):
    "half of them from here, half from addresses of the network; they stay until our stdin is closed"
    all_of_them = []
    for i in range(int(count)):
        all_of_them.append(connect(None if i % 2 else "%s.%d.%d" % (network, i // 250, i % 250 + 1)))
    print("connected %d" % len(all_of_them), flush=True)
    sys.stdin.read()
    still = 0
    for s in all_of_them:
        s.setblocking(False)
        try:
            still += s.recv(1) != b""
        except BlockingIOError:
            still += 1
        except OSError:
            pass
    return "open %d" % still


def texts(links, seconds=0.3):
    "what those say that are closed soon"
    found = []
    for s in links:
        s.settimeout(seconds)
        data = b""
        try:
            while more := s.recv(65536):
                data += more
        except (ssl.SSLError, OSError):
            pass
        if b'"error"' in data:
            found.append(said(data))
    return "%d of %d: %s" % (len(found), len(links), " | ".join(sorted(set(found))))


def links(directory, count):
    "links with the certificate of one host, which say nothing but hello"
    made = []
    for _ in range(int(count)):
        made.append(context(directory).wrap_socket(connect()))
        made[-1].sendall(HELLO)
    return texts(made)


def joins(count):
    "at once, with a token that there is not"
    made = [context().wrap_socket(connect()) for _ in range(int(count))]
    ask = frame(type="join", id=1, host="ws2", token="0123456789abcdef", proof="00" * 32, request="none", clock_ms=0)
    for s in made:
        s.sendall(HELLO.replace(b'"minor": 0', b'"minor": 1') + ask)
    return texts(made, 5)  # all of them are closed


WHAT = {
    "old-version": old_version,
    "garbage": lambda: raw(b"\xff" + os.urandom(4095)),  # what begins with 0 is taken for an Elmer without TLS
    "http": lambda: raw(b"GET / HTTP/1.0\r\n\r\n"),
    "plain": lambda: raw(HELLO),
    "stranger": lambda: talk(None, HELLO, host_hello("ws2")),
    "certificate": lambda directory: talk(directory, HELLO, host_hello("ws2")),
    "name": lambda directory, name: talk(directory, HELLO, host_hello(name)),
    "replay": replay,
    "truncated": truncated,
    "slow": slow,
    "idle": idle,
    "links": links,
    "joins": joins,
}
print(WHAT[sys.argv[2]](*sys.argv[3:]).replace("\n", " "))
