#!/usr/bin/env python3
"""Writes a small BLS12-381 circuit as cuzk extracts them from bellperson (node/witness/pce.h), for tests.

    make_pce.py CASE_DIR [inputs]    reads circuit.r1cs there, writes circuit.pce beside it; with `inputs` the rows that
                                     bellman appends, one for each public wire, are among the constraints
"""
import struct
import sys
from pathlib import Path

R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


def sections(path):
    data, at, found = Path(path).read_bytes(), 12, {}
    for _ in range(struct.unpack_from("<I", data, 8)[0]):
        kind, length = struct.unpack_from("<IQ", data, at)
        found[kind] = data[at + 12 : at + 12 + length]
        at += 12 + length
    return found


def terms_at(data, at):
    count = struct.unpack_from("<I", data, at)[0]
    places = [at + 4 + 36 * i for i in range(count)]
    terms = [(struct.unpack_from("<I", data, p)[0], int.from_bytes(data[p + 4 : p + 36], "little")) for p in places]
    return terms, at + 4 + 36 * count


def matrix(rows):
    starts = [0]
    for row in rows:
        starts.append(starts[-1] + len(row))
    terms = [term for row in rows for term in row]
    values = b"".join((value * 2**256 % R).to_bytes(32, "little") for _, value in terms)
    return (
        struct.pack(f"<Q{len(starts)}I", len(starts), *starts)
        + struct.pack(f"<Q{len(terms)}I", len(terms), *[wire for wire, _ in terms])
        + struct.pack("<Q", len(terms))
        + values
    )


def density(named, first, count):
    bits = [first + i in named for i in range(count)]
    words = [sum(bit << k for k, bit in enumerate(bits[i : i + 64])) for i in range(0, count, 64)]
    return struct.pack(f"<Q{len(words)}QQQ", len(words), *words, count, sum(bits))


def main(folder, with_inputs):
    r1cs = sections(f"{folder}/circuit.r1cs")
    wires, outputs, public = struct.unpack_from("<III", r1cs[1], 36)
    count = struct.unpack_from("<I", r1cs[1], 60)[0]
    rows, at = ([], [], []), 0
    for _ in range(count):
        for m in rows:
            terms, at = terms_at(r1cs[2], at)
            m.append(terms)
    inputs = outputs + public + 1
    if with_inputs:
        for i in range(inputs):
            rows[0].append([(i, 1)])
            rows[1].append([])
            rows[2].append([])
    named = [{wire for row in m for wire, value in row if value} for m in rows]
    total = sum(len(row) for m in rows for row in m)
    head = b"PCE\x02" + struct.pack("<IIIIQI", 2, inputs, wires - inputs, len(rows[0]), total, 0)
    body = b"".join(matrix(m) for m in rows)
    body += density(named[0], inputs, wires - inputs)
    body += density(named[1], 0, inputs) + density(named[1], inputs, wires - inputs)
    Path(f"{folder}/circuit.pce").write_bytes(head + body)


main(sys.argv[1], "inputs" in sys.argv[2:])
