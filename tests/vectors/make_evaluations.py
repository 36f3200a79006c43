#!/usr/bin/env python3
"""Writes the evaluations of a small circuit, for tests; by itself, as a second opinion on proto/evaluations.h.

    make_evaluations.py CASE_DIR     reads circuit.r1cs and witness.wtns there, writes witness.evaluations beside them

Rows are the constraints in their order and behind them one for each public wire, the constant first: a is that wire, b 0.
"""
import struct
import sys
from pathlib import Path

CURVES = {
    21888242871839275222246405745257275088548364400416034343698204186575808495617: 1,
    0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001: 2,
}


def sections(path):
    data, at, found = Path(path).read_bytes(), 12, {}
    for _ in range(struct.unpack_from("<I", data, 8)[0]):
        kind, length = struct.unpack_from("<IQ", data, at)
        found[kind] = data[at + 12 : at + 12 + length]
        at += 12 + length
    return found


def number(data, at):
    return int.from_bytes(data[at : at + 32], "little")


def evaluate(constraints, at, w, r):
    total = 0
    terms = struct.unpack_from("<I", constraints, at)[0]
    for i in range(terms):
        place = at + 4 + 36 * i
        total += w[struct.unpack_from("<I", constraints, place)[0]] * number(constraints, place + 4)
    return total % r, at + 4 + 36 * terms


def main(folder):
    r1cs, wtns = sections(f"{folder}/circuit.r1cs"), sections(f"{folder}/witness.wtns")
    header = r1cs[1]
    r = number(header, 4)
    wires, outputs, inputs = struct.unpack_from("<III", header, 36)
    count = struct.unpack_from("<I", header, 60)[0]
    w = [number(wtns[2], 32 * i) for i in range(wires)]
    a, b, at = [], [], 0
    for _ in range(count):
        for vector in (a, b, None):
            value, at = evaluate(r1cs[2], at, w, r)
            if vector is not None:
                vector.append(value)
    publics = w[: outputs + inputs + 1]
    a, b = a + publics, b + [0] * len(publics)
    head = b"BELLOWSE" + struct.pack("<IIQQ", 1, CURVES[r], len(a), wires) + bytes(32)
    values = b"".join(x.to_bytes(32, "little") for x in a + b + w)
    Path(f"{folder}/witness.evaluations").write_bytes(head + values)


main(sys.argv[1])
