#!/usr/bin/env python3
"""prove.py SERVER KEY WITNESS VERIFICATION_KEY: one proof from the fleet, written to proof.json and public.json.

Nothing but the standard library: the NATS protocol over a socket, and the few protobuf fields that a job needs. proto/README.md explains
each step. The fleet must know the key (`bellows key push KEY`); `bellows verify` or snarkjs verifies what comes back.
A server with TLS wants BELLOWS_TLS_CA, BELLOWS_TLS_CERT and BELLOWS_TLS_KEY, as `bellows submit` does.
"""

import base64
import hashlib
import json
import os
import socket
import ssl
import struct
import sys
import time
import urllib.parse
import uuid

CURVES = {"bn128": (1, 32), "bls12381": (2, 48)}
INLINE_BYTES_MAX, CHUNK_BYTES, FRAME_BYTES = 128 << 10, 128 << 10, 4 << 20


def holder_of(path):
    """The common name of a certificate: submitter.TENANT.USER. In DER, issuer before subject, it is tag, length and text behind its OID."""
    with open(path, encoding="ascii") as f:
        der = ssl.PEM_cert_to_DER_cert(f.read())
    at = der.rindex(b"\x06\x03\x55\x04\x03") + 5
    return der[at + 2 : at + 2 + der[at + 1]].decode()


# --- NATS: one socket, one thread ---
class Nats:
    def __init__(self, url):
        where = urllib.parse.urlparse(url)
        ca, cert, key = (os.environ.get(f"BELLOWS_TLS_{name}") for name in ("CA", "CERT", "KEY"))
        self.socket = socket.create_connection((where.hostname, where.port or 4222), timeout=10)
        self.buffer, self.heard, self.inbox, self.tenant = b"", [], f"_INBOX.{uuid.uuid4().hex}", os.environ.get("BELLOWS_TENANT", "default")
        self.max_payload = json.loads(self.line(time.monotonic() + 10).split(b" ", 1)[1])["max_payload"]
        if cert:  # the server has greeted in the clear; from here on it is TLS. What it permits goes by the certificate's name
            context = ssl.create_default_context(cafile=ca)
            context.load_cert_chain(cert, key)
            self.socket = context.wrap_socket(self.socket, server_hostname=where.hostname)
            self.tenant = holder_of(cert).split(".")[1]
            self.inbox = f"_INBOX.{holder_of(cert)}.{uuid.uuid4().hex}"
        hello = {"verbose": False, "headers": True, "no_responders": True, "lang": "python", "version": "1"}
        self.send(f"CONNECT {json.dumps(hello)}\r\nSUB {self.inbox}.> 1\r\n")

    def send(self, text, payload=b""):
        self.socket.settimeout(10)
        self.socket.sendall(text.encode() + payload)

    def fill(self, until):
        self.socket.settimeout(max(until - time.monotonic(), 0.001))
        more = self.socket.recv(1 << 20)
        if not more:
            raise ConnectionError("the server closed the connection")
        self.buffer += more

    def line(self, until):
        while b"\r\n" not in self.buffer:
            self.fill(until)
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def listen(self, subject):
        self.send(f"SUB {subject} 2\r\n")

    def publish(self, subject, payload, reply="", headers=None):
        if len(payload) > self.max_payload:
            raise ValueError(f"{len(payload)} bytes are more than the server takes")
        head = "NATS/1.0\r\n" + "".join(f"{k}: {v}\r\n" for k, v in (headers or {}).items()) + "\r\n"
        self.send(f"HPUB {subject} {reply} {len(head)} {len(head) + len(payload)}\r\n{head}", payload + b"\r\n")

    def receive(self, until):
        """The next message: subject, payload; None when there is none by then."""
        try:
            while True:
                verb, *words = self.line(until).decode().split()
                if verb == "PING":
                    self.send("PONG\r\n")
                elif verb == "-ERR":
                    raise ConnectionError(" ".join(words))
                elif verb in ("MSG", "HMSG"):
                    break
        except TimeoutError:
            return None
        while len(self.buffer) < int(words[-1]) + 2:
            self.fill(time.monotonic() + 10)
        data, self.buffer = self.buffer[: int(words[-1])], self.buffer[int(words[-1]) + 2 :]
        return words[0], data[int(words[-2]) :] if verb == "HMSG" else data

    def next(self, wait_s):
        return self.heard.pop(0) if self.heard else self.receive(time.monotonic() + wait_s)

    def ask(self, subject, payload, headers=None):
        """One at a time; what is heard meanwhile waits for next(). An answer without content says that there is nothing, or nobody."""
        reply, until = f"{self.inbox}.{uuid.uuid4().hex}", time.monotonic() + 10
        self.publish(subject, payload, reply, headers)
        while message := self.receive(until):
            if message[0] == reply:
                return message[1]
            self.heard.append(message)
        raise TimeoutError(f"{subject}: no answer")

    def request(self, subject, payload, headers=None):
        answer = json.loads(self.ask(subject, payload, headers) or b'{"error": {"description": "nobody answers"}}')
        if "error" in answer:
            raise ConnectionError(f"{subject}: {answer['error']['description']}")
        return answer

    def put_object(self, bucket, name, data):
        """The object store's layout (ADR-20): chunks, then their description. Returns the object's nuid."""
        nuid = uuid.uuid4().hex[:22]
        for at in range(0, len(data), CHUNK_BYTES):
            self.request(f"$O.{bucket}.C.{nuid}", data[at : at + CHUNK_BYTES])
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()
        meta = {"name": name, "bucket": bucket, "nuid": nuid, "size": len(data), "digest": f"SHA-256={digest}"}
        meta |= {"chunks": -(-len(data) // CHUNK_BYTES), "options": {"max_chunk_size": CHUNK_BYTES}}
        key = base64.urlsafe_b64encode(name.encode()).decode()
        self.request(f"$O.{bucket}.M.{key}", json.dumps(meta).encode(), {"Nats-Rollup": "sub"})
        return nuid


# --- Protobuf: fields as (number, value); an int is a varint, bytes and text are counted, a tuple is eight fixed bytes ---
def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def pack(*fields):
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value) if value else b""
        elif isinstance(value, tuple):
            out += varint(number << 3 | 1) + struct.pack("<Q", *value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def unpack(data):
    fields, at = {}, 0

    def number():
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            at += 1
            n |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return n

    while at < len(data):
        tag = number()
        length = {1: 8, 5: 4}.get(tag & 7)
        if tag & 7 == 0:
            value = number()
        else:
            length = number() if length is None else length
            value = data[at : at + length]
            at += length
        fields.setdefault(tag >> 3, []).append(value)
    return fields


# --- The body ---
def xxh64(data):
    mask, p = (1 << 64) - 1, (11400714785074694791, 14029467366897019727, 1609587929392839161)
    p += (9650029242287828579, 2870177450012600261)
    rot = lambda x, r: (x << r | x >> (64 - r)) & mask
    mix = lambda acc, lane: rot((acc + lane * p[1]) & mask, 31) * p[0] & mask
    acc, at = [(p[0] + p[1]) & mask, p[1], 0, -p[0] & mask], 0
    for lanes in struct.iter_unpack("<4Q", data[: len(data) & ~31]):
        acc = [mix(a, lane) for a, lane in zip(acc, lanes)]
        at += 32
    h = p[4]
    if at:
        h = sum(rot(a, r) for a, r in zip(acc, (1, 7, 12, 18))) & mask
        for a in acc:
            h = ((h ^ mix(0, a)) * p[0] + p[3]) & mask
    h = (h + len(data)) & mask
    for (lane,) in struct.iter_unpack("<Q", data[at:]):  # scalars: a multiple of eight bytes
        h = (rot(h ^ mix(0, lane), 27) * p[0] + p[3]) & mask
    h = (h ^ h >> 33) * p[1] & mask
    h = (h ^ h >> 29) * p[2] & mask
    return h ^ h >> 32


def read_wtns(path):
    data = open(path, "rb").read()
    if data[:4] != b"wtns":
        raise ValueError(f"{path} is not a .wtns file")
    at = 12
    while at < len(data):
        section, length = struct.unpack_from("<IQ", data, at)
        if section == 2:
            return data[at + 12 : at + 12 + length]
        at += 12 + length
    raise ValueError(f"{path} has no section 2")


def make_body(nats, values, bucket, name):
    frames = []
    for at in range(0, len(values), FRAME_BYTES):
        piece = values[at : at + FRAME_BYTES]
        place = ((2, len(frames)), (3, at), (4, len(piece)), (5, (xxh64(piece),)), (7, piece))
        frame = pack(*place)
        frames.append(varint(len(frame)) + frame)
    sequence = b"".join(frames)
    body = pack((1, pack((1, 1), (2, len(values) // 32), (3, len(values)))))
    body += pack((2, FRAME_BYTES), (3, len(frames)), (4, len(values)), (5, len(sequence)))
    body += pack((6, hashlib.sha256(sequence).digest()))
    if len(sequence) <= INLINE_BYTES_MAX:
        return body + pack((7, sequence))
    return body + pack((8, pack((1, bucket), (2, name), (3, nats.put_object(bucket, name, sequence)))))


# --- The result ---
def snarkjs_of(proof, curve):
    width = CURVES[curve][1]
    whole = lambda data: str(int.from_bytes(data, "little"))
    at = lambda field, i: whole(proof[field][0][i * width : (i + 1) * width])
    publics = proof.get(4, [b""])[0]
    g2 = [[at(2, 0), at(2, 1)], [at(2, 2), at(2, 3)], ["1", "0"]]
    points = {"pi_a": [at(1, 0), at(1, 1), "1"], "pi_b": g2, "pi_c": [at(3, 0), at(3, 1), "1"]}
    points |= {"protocol": "groth16", "curve": curve}
    return points, [whole(publics[i : i + 32]) for i in range(0, len(publics), 32)]


def wait_for_result(nats, subject, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        message = nats.next(0.5)
        if message:
            return unpack(message[1])
        stored = nats.ask(f"$JS.API.DIRECT.GET.BELLOWS_DONE.{subject}", b"")
        if stored:
            return unpack(stored)
    raise TimeoutError(f"no result on {subject} after {seconds} s")


def main(server, key, witness, vkey):
    curve = json.load(open(vkey))["curve"]
    digest = hashlib.sha256(open(key, "rb").read()).digest()
    nats = Nats(server)
    tenant, job = nats.tenant, f"py-{uuid.uuid4()}"
    done = f"bellows.done.{tenant}.{job}.1"
    nats.listen(done)
    body = make_body(nats, read_wtns(witness), f"bellows-in-{tenant}", job)
    message = pack((1, 1), (2, job), (3, tenant), (4, digest), (5, CURVES[curve][0]), (7, 2))
    message += pack((9, f"{nats.inbox}.refused"), (10, 1), (11, int(time.time() * 1000)), (12, pack((1, body))))
    subject = f"bellows.job.2.{digest.hex()[:16]}.{tenant}.{job}"
    nats.request(subject, message, {"Nats-Msg-Id": f"{tenant}.{job}.1"})
    print(f"job {job}", file=sys.stderr)
    result = wait_for_result(nats, done, 60)
    if result[5] != [1]:
        error = unpack(result[9][0])
        raise RuntimeError(" ".join(field[0].decode() for field in error.values()))
    proof, publics = snarkjs_of(unpack(unpack(result[8][0])[7][0]), curve)
    for name, value in (("proof.json", proof), ("public.json", publics)):
        with open(name, "w") as out:
            json.dump(value, out, indent=1)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except (OSError, ValueError, RuntimeError) as why:
        sys.exit(f"prove.py: {why}")
