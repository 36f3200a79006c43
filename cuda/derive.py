#!/usr/bin/env python3
"""Derives a curve's device constants and multiplication sequences, and proves the sequences before writing them.

    derive.py CURVE OUT [TRIALS]

A sequence is a list of 32-bit instructions with a carry flag. Each is run here, instruction by instruction, on edge and
random operands and compared with big integers; only then is it written, as one block of PTX for the device and as the same
instructions in C for the host. What it writes is meant to be read by cuda/field.cuh and cuda/fr.cuh only.

On the device a pair mad.lo.cc, madc.hi.cc on adjacent registers becomes one wide multiply-add, so the sequences are
made of such pairs ("wide"), on even and odd columns kept apart, as a register pair must start at an even column.
"""
import random
import sys

M32 = (1 << 32) - 1
CURVES = {
    "bn254": dict(
        p=0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47,
        r=0x30644E72E131A029B85045B68181585D2833E84879B9709143E1F593F0000001,
        words=8,
    ),
    "bls12_381": dict(
        p=0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB,
        r=0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001,
        words=12,
    ),
}


class Sequence:
    """Instructions in order. Operands are register names or constants."""

    def __init__(self):
        self.ops = []
        self.registers = set()

    def op(self, name, to, *operands):
        self.ops.append((name, to) + operands)
        self.registers.add(to)

    def wide(self, low, high, a, b, fresh, carry_in, carry_out):
        """One step of a carry chain on the column (low, high); fresh: the column holds nothing yet."""
        if fresh and carry_in:
            self.op("madc.lo.cc", low, a, b, 0)
            self.op("madc.hi", high, a, b, 0)
        elif fresh:
            self.op("mul.lo", low, a, b)
            self.op("mul.hi", high, a, b)
        else:
            self.op("madc.lo.cc" if carry_in else "mad.lo.cc", low, a, b, low)
            self.op("madc.hi.cc" if carry_out else "madc.hi", high, a, b, high)


def run(sequence, registers):
    """Interprets a sequence; a carry that nobody takes is an error."""
    registers = dict(registers)
    carry = 0

    def value(x):
        return x & M32 if isinstance(x, int) else registers[x]

    for instruction in sequence.ops:
        name, to = instruction[:2]
        a = [value(x) for x in instruction[2:]]
        parts = name.split(".")
        base, sets = parts[0], parts[-1] == "cc"
        if base in ("mul", "mad", "madc"):
            product = a[0] * a[1]
            product = product & M32 if parts[1] == "lo" else product >> 32
            t = product + (a[2] if base != "mul" else 0) + (carry if base == "madc" else 0)
            if sets:
                carry = t >> 32
            elif t >> 32 and parts[1] != "lo":
                raise Exception("lost carry in %r" % (instruction,))
        elif base in ("add", "addc"):
            t = a[0] + a[1] + (carry if base == "addc" else 0)
            if sets:
                carry = t >> 32
        elif base in ("sub", "subc"):  # the flag is the inverted borrow, as in the device's own convention
            t = a[0] - a[1] - ((1 - carry) if base == "subc" else 0)
            if sets:
                carry = 0 if t < 0 else 1
        elif base == "not":
            t = a[0] ^ M32
        else:
            raise Exception(name)
        registers[to] = t & M32
    return registers


def reg(kind, i):
    return "%s%d" % (kind, i)


def high_product(s):
    """q[0..7] = floor(x v / 2^256), or one less: columns 6 to 14 of the product are enough."""
    even = lambda c: (reg("he", c), reg("he", c + 1))
    odd = lambda c: (reg("ho", c), reg("ho", c + 1))
    rows = {c: list(range(max(0, c - 7), min(7, c) + 1)) for c in range(6, 15)}
    touched = set()

    def chain(column, columns, out=None):
        fresh_before = False
        for k, c in enumerate(columns):
            i = rows[c].pop(0)
            fresh = c not in touched
            low, high = column(c)
            carry_in = not (fresh and (k == 0 or fresh_before)) and k > 0
            s.wide(low, high, reg("x", i), reg("v", c - i), fresh, carry_in, k < len(columns) - 1 or out is not None)
            fresh_before = fresh
            touched.add(c)
        if out:
            s.op("addc", out, out, 0)

    e = lambda i: reg("he", i)
    o = lambda i: reg("ho", i)
    chain(even, [6, 8]), chain(odd, [7]), chain(odd, [7], e(9)), chain(odd, [7, 9])
    chain(even, [6, 8], o(10)), chain(even, [6, 8, 10]), chain(odd, [7, 9], e(11)), chain(odd, [7, 9, 11])
    chain(even, [6, 8, 10], o(12)), chain(even, [6, 8, 10, 12])
    chain(odd, [7, 9, 11], e(13)), chain(odd, [7, 9, 11, 13])
    chain(even, [6, 8, 10, 12], o(14)), chain(even, [6, 8, 10, 12, 14]), chain(odd, [7, 9, 11, 13], e(15))
    assert all(not left for left in rows.values())
    s.op("add.cc", "dump", e(7), o(7))
    for k in range(8, 15):
        s.op("addc.cc", reg("q", k - 8), e(k), o(k))
    s.op("addc", "q7", e(15), 0)


def low_chains(s, terms, even_fresh):
    """Adds the terms (i, j, a, b) to columns i + j modulo 2^256: even columns in e, odd ones in o."""
    columns = {c: [] for c in range(8)}
    for i, j, a, b in terms:
        if i + j < 8:
            columns[i + j].append((a, b))
    touched = set() if even_fresh else {0, 2, 4, 6}

    def chain(kind, chained):
        carry = False
        for k, c in enumerate(chained):
            a, b = columns[c].pop(0)
            low, high = reg(kind, c), reg(kind, c + 1)
            fresh = c not in touched
            touched.add(c)
            if c == 7:
                if fresh and not carry:
                    s.op("mul.lo", low, a, b)
                else:
                    s.op("madc.lo" if carry else "mad.lo", low, a, b, 0 if fresh else low)
            elif fresh:
                s.wide(low, high, a, b, True, carry, False)
                carry = False
            elif k == len(chained) - 1:  # column 6: its carry leaves 2^256
                s.op("madc.lo.cc" if carry else "mad.lo.cc", low, a, b, low)
                s.op("madc.hi.cc", high, a, b, high)
                carry = False
            else:
                s.wide(low, high, a, b, False, carry, True)
                carry = True

    for kind, top, least in (("e", 6, 0), ("o", 7, 1)):
        while columns[top]:
            start = top
            while start - 2 >= least and columns[start - 2]:
                start -= 2
            chain(kind, range(start, top + 1, 2))
        assert all(not columns[c] for c in columns if c % 2 == least)


def constant_product(curve):
    """r = x w - q r with q = floor(x v / 2^256) or one less, modulo 2^256: below (1 + x/2^256 + 2^-28) r.

    v = floor(w 2^256 / r). BLS12-381's r is 2^64 R' - 2^32 + 1, so q r needs no products for its two low words."""
    s = Sequence()
    r = CURVES[curve]["r"]
    high_product(s)
    terms = [(i, j, reg("x", i), reg("w", j)) for i in range(8) for j in range(8)]
    if curve == "bls12_381":
        minus = (1 << 192) - ((r >> 64) + 1)
        s.op("sub.cc", "e0", 0, "q0")
        for k in range(1, 8):
            s.op("subc.cc" if k < 7 else "subc", reg("e", k), reg("q", k - 1), reg("q", k))
        terms += [(i, j + 2, reg("q", i), (minus >> 32 * j) & M32) for i in range(6) for j in range(6)]
        low_chains(s, terms, False)
    else:
        minus = (1 << 256) - r
        terms += [(i, j, reg("q", i), (minus >> 32 * j) & M32) for i in range(8) for j in range(8)]
        low_chains(s, terms, True)
    s.op("add.cc", "r1", "e1", "o1")
    for k in range(2, 8):
        s.op("addc.cc" if k < 7 else "addc", reg("r", k), reg("e", k), reg("o", k))
    s.op("add", "r0", "e0", 0)
    return s


def registers_of(value, kind):
    return {reg(kind, i): (value >> 32 * i) & M32 for i in range(8)}


def value_of(registers, kind):
    return sum(registers[reg(kind, i)] << 32 * i for i in range(8))


EDGES = [0, 1, 2, M32, 1 << 32, (1 << 256) - 1, 1 << 255, (1 << 64) - 1, ((1 << 256) - 1) ^ M32]
EDGES.append(sum(M32 << 64 * i for i in range(4)))


def constant_registers(x, w, r):
    registers = registers_of(x, "x")
    registers.update(registers_of(w, "w"))
    registers.update(registers_of((w << 256) // r, "v"))
    return registers


def prove_product(s, r, trials):
    for t in range(trials):
        x = random.choice(EDGES + [r - 1, r, 2 * r]) if t % 3 == 0 else random.getrandbits(256)
        w = random.choice([e for e in EDGES if e < r] + [r - 1, r - 2]) if t % 5 == 0 else random.randrange(r)
        got = value_of(run(s, constant_registers(x, w, r)), "r")
        assert got % r == x * w % r and got < 2 * r + (r >> 20), (hex(x), hex(w), hex(got))


def sum_rule(curve):
    """(bound, multiple): sums stay below the bound when corrected by that multiple of r on carry (and at the bound).

    A quotient cut short can leave a product above 2r by 2^-28 r when x is within 2^228 of 2^256. BN254 has room for a
    correction by 3r; BLS12-381 keeps everything below 2^256 - 2^228 instead, where a product stays below 2r."""
    return ((1 << 256) - (16 << 224), 2) if curve == "bls12_381" else (1 << 256, 3)


def prove_sums(curve, s, trials):
    r = CURVES[curve]["r"]
    bound, multiple = sum_rule(curve)

    def pick():
        near = bound - 1 - random.getrandbits(random.choice([1, 30, 200, 230]))
        return random.choice([near, random.randrange(bound), random.getrandbits(240), 0, r - 1, 2 * r])

    for _ in range(trials):
        u, v, w = pick(), pick(), random.choice([1, r - 1, random.randrange(r)])
        t = value_of(run(s, constant_registers(v, w, r)), "r")
        up, down = u + t, u - t
        up -= multiple * r if up >= bound else 0
        down += multiple * r if down < 0 else 0
        assert 0 <= up < bound and 0 <= down < bound, (hex(u), hex(v), hex(w))


def write_sequence(f, name, s, inputs):
    """One function: a block of PTX on the device, the same instructions one by one on the host."""
    args = ", ".join("const uint32_t *" + k for k in inputs)
    place = {reg("r", i): "%%%d" % i for i in range(8)}
    host = {reg("r", i): "r[%d]" % i for i in range(8)}
    for n, k in enumerate(inputs):
        for i in range(8):
            place[reg(k, i)] = "%%%d" % (8 + 8 * n + i)
            host[reg(k, i)] = "%s[%d]" % (k, i)
    scratch = sorted(x for x in s.registers if x not in place)
    wides = sum(1 for o in s.ops if o[0].startswith("m") and ".hi" in o[0])
    lows = sum(1 for o in s.ops if o[0].startswith("m")) - 2 * wides
    others = sum(1 for o in s.ops if not o[0].startswith("m"))
    f.write("/* %d wide, %d low, %d other instructions. */\n" % (wides, lows, others))
    f.write("static __host__ __device__ __forceinline__ void %s(uint32_t *r, %s) {\n#ifdef __CUDA_ARCH__\n" % (name, args))
    f.write('    asm("{\\n\\t"\n')
    for i in range(0, len(scratch), 12):
        f.write('        ".reg .u32 %s;\\n\\t"\n' % ", ".join("t_" + x for x in scratch[i : i + 12]))
    for o in s.ops:
        operands = [str(x) if isinstance(x, int) else place.get(x, "t_%s" % x) for x in o[1:]]
        f.write('        "%s.%s %s;\\n\\t"\n' % (o[0], "b32" if o[0] == "not" else "u32", ", ".join(operands)))
    outputs = ", ".join('"=r"(r[%d])' % i for i in range(8))
    ins = ", ".join('"r"(%s[%d])' % (k, i) for k in inputs for i in range(8))
    f.write('        "}"\n        : %s\n        : %s);\n#else\n' % (outputs, ins))
    f.write("    uint32_t %s;\n" % ", ".join("t_" + x for x in scratch))
    for o in s.ops:
        operands = ["0x%xu" % (x & M32) if isinstance(x, int) else host.get(x, "t_%s" % x) for x in o[1:]]
        f.write("    carry_%s(%s);\n" % (o[0].replace(".", "_"), ", ".join(operands)))
    f.write("    (void)t_dump;\n#endif\n}\n\n")


def write_sums(f, curve):
    """x + y and x - y, any representatives below the bound of sum_rule, corrected on carry or borrow only."""
    bound, multiple = sum_rule(curve)
    words = [(multiple * CURVES[curve]["r"] >> 32 * i) & M32 for i in range(8)]
    outputs = ", ".join('"=r"(r[%d])' % i for i in range(8))
    ins = ", ".join('"r"(%s[%d])' % (k, i) for k in "xy" for i in range(8))
    guard = curve == "bls12_381"
    for name, op, back in (("fr_sum", "add", "sub"), ("fr_difference", "sub", "add")):
        f.write("static __host__ __device__ __forceinline__ void %s(uint32_t *r, const uint32_t *x, const uint32_t *y) {\n" % name)
        f.write('#ifdef __CUDA_ARCH__\n    asm("{\\n\\t.reg .pred p, q; .reg .u32 c, t0, t1, t2, t3, t4, t5, t6, t7;\\n\\t"\n')
        for i in range(8):
            f.write('        "%s%s.cc.u32 t%d, %%%d, %%%d;\\n\\t"\n' % (op, "c" if i else "", i, 8 + i, 16 + i))
        if op == "add" and guard:
            f.write('        "addc.u32 c, 0, 0;\\n\\tsetp.ne.u32 q, c, 0;\\n\\tsetp.ge.or.u32 p, t7, 0xfffffff0, q;\\n\\t"\n')
        else:
            f.write('        "%sc.u32 c, 0, 0;\\n\\tsetp.ne.u32 p, c, 0;\\n\\t"\n' % op)
        for i in range(8):
            cc = ".cc" if i < 7 else ""
            f.write('        "@p %s%s%s.u32 t%d, t%d, 0x%08x;\\n\\t"\n' % (back, "c" if i else "", cc, i, i, words[i]))
        f.write('        "%s\\n\\t}"\n        : %s\n        : %s);\n#else\n' % (" ".join("mov.u32 %%%d, t%d;" % (i, i) for i in range(8)), outputs, ins))
        f.write("    static const uint32_t m[8] = {%s};\n" % ", ".join("0x%08xu" % w for w in words))
        f.write("    uint32_t c = words_%s(r, x, y, 8);\n" % op)
        f.write("    if (c%s) {\n        words_%s(r, r, m, 8);\n    }\n#endif\n}\n\n" % (" || r[7] >= 0xfffffff0u" if op == "add" and guard else "", back))


def words(value, count):
    return ", ".join("0x%08xu" % ((value >> 32 * i) & M32) for i in range(count))


def write_array(f, name, value, count):
    f.write("    __host__ __device__ __forceinline__ static constexpr uint32_t %s(int i) {\n" % name)
    f.write("        constexpr uint32_t t[%d] = {%s};\n        return t[i];\n    }\n" % (count, words(value, count)))


def write_constants(f, curve):
    c = CURVES[curve]
    p, r, n = c["p"], c["r"], c["words"]
    radix = 1 << 32 * n
    bits = p.bit_length()
    rounds = -(-(2 * bits - 1) // 30)
    f.write("struct fp_modulus {\n    static constexpr int words = %d, bits = %d, inverse_rounds = %d;\n" % (n, bits, rounds))
    f.write("    static constexpr uint32_t minus_inverse = 0x%08xu;\n" % (-pow(p, -1, 1 << 32) % (1 << 32)))
    f.write("    static constexpr uint64_t minus_inverse64 = 0x%016xull;\n" % (-pow(p, -1, 1 << 64) % (1 << 64)))
    write_array(f, "word", p, n)
    write_array(f, "one", radix % p, n)
    f.write("};\n\n")
    # After t rounds of the inversion the cofactor carries 2^(-2t) and a Montgomery form too few: one product by this.
    table = sum((pow(2, 2 * t, p) * radix**3 % p) << (32 * n * t) for t in range(rounds + 1))
    count = n * (rounds + 1)
    f.write("#ifdef __CUDA_ARCH__\nstatic __constant__ uint32_t inverse_scale[%d] = {%s};\n" % (count, words(table, count)))
    f.write("#else\nstatic const uint32_t inverse_scale[%d] = {%s};\n#endif\n\n" % (count, words(table, count)))
    s = (r - 1 & -(r - 1)).bit_length() - 1
    f.write("struct fr_modulus {\n    static constexpr int words = 8, bits = %d, two_adicity = %d;\n" % (r.bit_length(), s))
    f.write("    static constexpr uint32_t minus_inverse = 0x%08xu;\n" % (-pow(r, -1, 1 << 32) % (1 << 32)))
    write_array(f, "word", r, 8)
    write_array(f, "twice", 2 * r, 8)
    write_array(f, "one", (1 << 256) % r, 8)
    write_array(f, "square", (1 << 512) % r, 8)
    write_array(f, "minus_inverse256", -pow(r, -1, 1 << 256) % (1 << 256), 8)
    f.write("    /* 2^256 / r rounded down: how often r can be taken from any 256-bit number. */\n")
    f.write("    static constexpr int fits = %d;\n};\n\n" % ((1 << 256) // r))


def main():
    curve, out = sys.argv[1:3]
    trials = int(sys.argv[3]) if len(sys.argv) > 3 else 300
    random.seed(7)
    s = constant_product(curve)
    prove_product(s, CURVES[curve]["r"], trials)
    prove_sums(curve, s, trials)
    with open(out, "w") as f:
        f.write("/* Written by cuda/derive.py, which ran every sequence against big integers first. */\n#pragma once\n\n")
        f.write("namespace CURVE {\n\n")
        write_constants(f, curve)
        write_sequence(f, "fr_constant_product", s, ["x", "w", "v"])
        write_sums(f, curve)
        f.write("} // namespace CURVE\n")


main()
