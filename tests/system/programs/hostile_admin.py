#!/usr/bin/env python3
"""hostile_admin.py ADDRESS:PORT HOST - the network half of a host of admin_hosts, taken over.

It has the host's key for links and may say that anybody asks, but not the key of the host's tickets: what carol has
signed it can pass on, repeat, and put beside other requests. Run as root on HOST, whose real network half stands still.
Prints a line for each case: what elmer has answered."""
import json
import os
import socket
import ssl
import struct
import sys

PKI = "/var/lib/elmer-rsd/pki"
DESK = "/run/elmer-rsd/ticket.sock"
MINOR = 12


def frame(**message):
    text = json.dumps(message).encode()
    return struct.pack(">I", len(text)) + text


def exactly(read, n):
    data = b""
    while len(data) < n:
        more = read(n - len(data))
        if not more:
            raise EOFError("the connection has ended")
        data += more
    return data


def receive(read):
    return json.loads(exactly(read, struct.unpack(">I", exactly(read, 4))[0]))


class Link:
    "the host's link to elmer, with one relayed client for each case"

    def __init__(self, address, host):
        name, port = address.rsplit(":", 1)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.load_cert_chain(PKI + "/host.crt", PKI + "/host.key")
        plain = socket.create_connection((name, int(port)), 30)
        self.s = context.wrap_socket(plain)
        self.s.settimeout(60)
        self.s.sendall(frame(type="hello", id=0, program="hostile", major=1, minor=MINOR, capabilities=[]))
        self.wait("hello")
        self.s.sendall(frame(type="host_hello", id=1, host=host, boot="hostile", cpus=[0], generation=0, holdings=[],
                             mode="none", mode_reason="", address="", name_loopback=False, pvm=False, lacks=[],
                             memory_bytes=0, limits_memory=False, version=""))
        self.wait("host_welcome")
        self.client = 0

    def wait(self, kind):
        while True:
            message = receive(self.s.recv)
            if message["type"] == "ping":
                self.s.sendall(frame(type="pong", id=message["id"]))
            elif message["type"] == kind:
                return message
            elif message["type"] == "error":
                raise EOFError(message["text"])

    def relay(self, uid, user, **message):
        self.s.sendall(frame(type="relay", id=0, client=self.client, uid=uid, user=user, frame=json.dumps(message)))
        while True:
            got = self.wait("relayed")
            if got["client"] == self.client:
                return json.loads(got["frame"])


def signed(user, challenge, request):
    "by elmer-tickets of this host, for that user, in a process that is he"
    uid = int(os.popen("id -u " + user).read())
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(20)
            s.connect(DESK)
            s.sendall(frame(type="warrant_ask", id=1, challenge=challenge, request=request))
            theirs.sendall(json.dumps(receive(s.recv)).encode())
        finally:
            os._exit(0)
    theirs.close()
    data = b""
    while more := ours.recv(65536):
        data += more
    os.waitpid(pid, 0)
    return json.loads(data)["warrant"]


def main():
    link = Link(sys.argv[1], sys.argv[2])
    carol, bob = (int(os.popen("id -u " + name).read()) for name in ("carol", "bob"))

    def say(case, answer):
        print("hostile: %s: %s %s" % (case, answer["type"], answer.get("text", "")), flush=True)

    def ask(user="carol", uid=carol):
        link.client += 1
        return link.relay(uid, user, type="challenge_ask", id=2)

    def decide(request, warrant, user="carol", uid=carol):
        return link.relay(uid, user, type="decide", id=3, request=request, minor=MINOR, warrant=warrant)

    drain = json.dumps({"type": "drain", "id": 1, "host": "ws1", "drained": True, "reason": "signed"})
    remove = json.dumps({"type": "remove_host", "id": 1, "host": "ws1"})
    link.client += 1
    say("unsigned", link.relay(carol, "carol", **json.loads(drain)))
    say("no administrator", ask("bob", bob))
    warrant = signed("carol", ask()["challenge"], drain)
    say("something else", decide(remove, warrant))
    warrant = signed("carol", ask()["challenge"], drain)
    say("one digit changed", decide(drain, warrant[:-1] + ("0" if warrant[-1] != "0" else "1")))
    warrant = signed("bob", ask()["challenge"], drain)
    say("signed by another user", decide(drain, warrant))
    kept = signed("carol", ask()["challenge"], drain)
    ask()
    say("with another challenge", decide(drain, kept))
    warrant = signed("carol", ask()["challenge"], drain)
    say("cut short", decide(drain, warrant[:-2]))
    warrant = signed("carol", ask()["challenge"], drain)
    say("as she has signed it", decide(drain, warrant))
    say("again", decide(drain, warrant))
    ask()
    say("and again", decide(drain, warrant))
    print("hostile: all: finished", flush=True)


main()
