#!/usr/bin/env python3
"""Makes a bellman key, its verifying key and a fixed proof for a small BLS12-381 circuit, for tests only.

    make_params.py CASE_DIR     reads circuit.r1cs and witness.wtns there, writes circuit.params, circuit.vk and
                                bellman.json beside them

Every secret is a constant below, so anybody can forge proofs for these keys. The domain is bellman's (root
7^((r-1)/2^32)), H is in powers, infinities are left out of a, b_g1 and b_g2 as bellman's generator does. bellman.json
has the density of each wire (which wires own a point of a and of b), blinding r and s, the five sums before blinding
and the proof in bellman's 192 bytes, all computed from the secrets and not by an MSM.
"""
import json
import struct
import sys

P = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
G1 = (
    0x17F1D3A73197D7942695638C4FA9AC0FC3688C4F9774B905A14E3A3F171BAC586C55E83FF97A1AEFFB3AF00ADB22C6BB,
    0x08B3F481E3AAA0F1A09E30ED741D8AE4FCF5E095D5D00AF600DB18CB2C04B3EDD03CC744A2888AE40CAA232946C5E7E1,
)
G2 = (
    (
        0x024AA2B2F08F0A91260805272DC51051C6E47AD4FA403B02B4510B647AE3D1770BAC0326A805BBEFD48056C8C121BDB8,
        0x13E02B6052719F607DACD3A088274F65596BD0D09920B61AB5DA61BBDC7F5049334CF11213945D57E5AC7D055D042B7E,
    ),
    (
        0x0CE5D527727D6E118CC9CDC6DA2E351AADFD9BAA8CBDD3A76D429A695160D12C923AC9CC3BACA289E193548608B82801,
        0x0606C4A02EA734CC32ACD2B02BC28B99CB3E287E85A763AF267492AB572E99AB3F370D275CEC1DA1AAA9075FF05F79BE,
    ),
)
TAU, ALPHA, BETA, GAMMA, DELTA = 1000003, 2000003, 3000017, 4000037, 5000011
BLIND_R, BLIND_S = 12345678901234567890, 98765432109876543210


class Fp2:
    """c0 + c1·i with i² = -1."""

    def __init__(self, c0, c1):
        self.c0, self.c1 = c0 % P, c1 % P

    def __add__(self, o):
        return Fp2(self.c0 + o.c0, self.c1 + o.c1)

    def __sub__(self, o):
        return Fp2(self.c0 - o.c0, self.c1 - o.c1)

    def __mul__(self, o):
        if isinstance(o, int):
            return Fp2(self.c0 * o, self.c1 * o)
        return Fp2(self.c0 * o.c0 - self.c1 * o.c1, self.c0 * o.c1 + self.c1 * o.c0)

    def inverse(self):
        norm = pow(self.c0 * self.c0 + self.c1 * self.c1, -1, P)
        return Fp2(self.c0 * norm, -self.c1 * norm)

    def __eq__(self, o):
        return self.c0 == o.c0 and self.c1 == o.c1

    def negative(self):
        return Fp2(-self.c0, -self.c1)


class Fp:
    def __init__(self, v):
        self.v = v % P

    def __add__(self, o):
        return Fp(self.v + o.v)

    def __sub__(self, o):
        return Fp(self.v - o.v)

    def __mul__(self, o):
        return Fp(self.v * (o if isinstance(o, int) else o.v))

    def inverse(self):
        return Fp(pow(self.v, -1, P))

    def __eq__(self, o):
        return self.v == o.v

    def negative(self):
        return Fp(-self.v)


def add(p, q):
    """Affine addition; None is infinity."""
    if p is None or q is None:
        return q if p is None else p
    if p[0] == q[0]:
        if not p[1] == q[1]:
            return None
        slope = (p[0] * p[0] * 3) * (p[1] * 2).inverse()
    else:
        slope = (q[1] - p[1]) * (q[0] - p[0]).inverse()
    x = slope * slope - p[0] - q[0]
    return (x, slope * (p[0] - x) - p[1])


def doublings(p):
    out = []
    for _ in range(255):
        out.append(p)
        p = add(p, p)
    return out


TABLE1 = doublings((Fp(G1[0]), Fp(G1[1])))
TABLE2 = doublings((Fp2(*G2[0]), Fp2(*G2[1])))


def times(table, k):
    """k times the generator of the table."""
    out, k = None, k % R
    for bit, point in enumerate(table):
        if k >> bit & 1:
            out = add(out, point)
    return out


def mul1(k):
    return times(TABLE1, k)


def mul2(k):
    return times(TABLE2, k)


def coordinates(point):
    """Big-endian integers in bellman's order: c1 before c0."""
    return [n for c in point for n in ((c.v,) if isinstance(c, Fp) else (c.c1, c.c0))]


def uncompressed(point):
    return b"".join(n.to_bytes(48, "big") for n in coordinates(point))


def compressed(point):
    y, minus_y = coordinates((point[1],)), coordinates((point[1].negative(),))
    x = bytearray(b"".join(n.to_bytes(48, "big") for n in coordinates((point[0],))))
    x[0] |= 0x80 | (0x20 if y > minus_y else 0)
    return bytes(x)


def sections(data):
    at, out = 12, {}
    for _ in range(struct.unpack_from("<I", data, 8)[0]):
        number, length = struct.unpack_from("<IQ", data, at)
        out[number] = data[at + 12 : at + 12 + length]
        at += 12 + length
    return out


def read_r1cs(path):
    parts = sections(open(path, "rb").read())
    wires, outs, ins = struct.unpack_from("<III", parts[1], 36)
    count = struct.unpack_from("<I", parts[1], 60)[0]
    body, at, rows = parts[2], 0, []
    for _ in range(count):
        row = []
        for _ in range(3):
            terms = struct.unpack_from("<I", body, at)[0]
            at += 4
            row.append(
                [
                    (struct.unpack_from("<I", body, at + 36 * i)[0],
                     int.from_bytes(body[at + 36 * i + 4 : at + 36 * i + 36], "little"))
                    for i in range(terms)
                ]
            )
            at += 36 * terms
        rows.append(row)
    return wires, outs + ins, rows


def make(case):
    wires, public, rows = read_r1cs(case + "/circuit.r1cs")
    body = sections(open(case + "/witness.wtns", "rb").read())[2]
    witness = [int.from_bytes(body[32 * i : 32 * i + 32], "little") for i in range(wires)]
    rows += [[[(i, 1)], [], []] for i in range(public + 1)]
    domain = 1
    while domain < len(rows):
        domain *= 2
    root = pow(7, (R - 1) // domain, R)
    z = (pow(TAU, domain, R) - 1) % R
    lagrange = [
        pow(root, j, R) * z * pow(domain * (TAU - pow(root, j, R)), -1, R) % R for j in range(len(rows))
    ]
    columns = [[0] * wires for _ in range(3)]
    for j, row in enumerate(rows):
        for matrix in range(3):
            for wire, value in row[matrix]:
                columns[matrix][wire] = (columns[matrix][wire] + value * lagrange[j]) % R
    u, v, w = columns
    mixed = [(BETA * u[i] + ALPHA * v[i] + w[i]) % R for i in range(wires)]
    per_gamma, per_delta = pow(GAMMA, -1, R), pow(DELTA, -1, R)
    ic = [mixed[i] * per_gamma for i in range(public + 1)]
    private = [mixed[i] * per_delta for i in range(public + 1, wires)]
    powers = [pow(TAU, i, R) * z * per_delta for i in range(domain - 1)]
    in_a = [i for i in range(wires) if u[i]]
    in_b = [i for i in range(wires) if v[i]]

    def vector(scalars, mul):
        return struct.pack(">I", len(scalars)) + b"".join(uncompressed(mul(k)) for k in scalars)

    front = b"".join(
        uncompressed(p)
        for p in (mul1(ALPHA), mul1(BETA), mul2(BETA), mul2(GAMMA), mul1(DELTA), mul2(DELTA))
    ) + vector(ic, mul1)
    b_scalars = [v[i] for i in in_b]
    params = front + vector(powers, mul1) + vector(private, mul1)
    params += vector([u[i] for i in in_a], mul1) + vector(b_scalars, mul1) + vector(b_scalars, mul2)
    open(case + "/circuit.vk", "wb").write(front)
    open(case + "/circuit.params", "wb").write(params)

    def dot(column):
        return sum(column[i] * witness[i] for i in range(wires)) % R

    a, b, c = dot(u), dot(v), dot(w)
    h = (a * b - c) * per_delta % R  # h(tau)·Z(tau)/delta
    l_sum = sum(private[i] * witness[public + 1 + i] for i in range(len(private))) % R
    pi_a = (ALPHA + a + BLIND_R * DELTA) % R
    pi_b = (BETA + b + BLIND_S * DELTA) % R
    pi_c = (h + l_sum + BLIND_S * pi_a + BLIND_R * pi_b - BLIND_R * BLIND_S * DELTA) % R
    proof = compressed(mul1(pi_a)) + compressed(mul2(pi_b)) + compressed(mul1(pi_c))

    def hexed(point):
        return uncompressed(point).hex() if point else "infinity"

    report = {
        "domain": domain,
        "wires_of_a": in_a,
        "wires_of_b": in_b,
        "r": str(BLIND_R),
        "s": str(BLIND_S),
        "sums": {
            "a": hexed(mul1(a)),
            "b1": hexed(mul1(b)),
            "b2": hexed(mul2(b)),
            "l": hexed(mul1(l_sum)),
            "h": hexed(mul1(h)),
        },
        "proof": proof.hex(),
    }
    with open(case + "/bellman.json", "w", encoding="ascii") as out:
        json.dump(report, out, indent=1)
        out.write("\n")
    print(f"{case}: {wires} wires, {public} public, domain {domain}, params {len(params)} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    make(sys.argv[1])
