#!/usr/bin/env python3
"""Derives every constant in this folder's headers from the curves' parameters and proves what the code relies on.

    derive.py            rewrites bn254.h and bls12_381.h
    derive.py --check    fails if a header differs from what would be written (a test of every build)

What goes in by hand is short: the integer x of each family, b, the non-residue xi of the tower, and the published
generators. Everything else follows, and the claims behind the subgroup checks are computed here, not believed.
"""
import math
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def words(value, count, bits=64):
    assert 0 <= value < 1 << (bits * count)
    return [(value >> (bits * i)) & ((1 << bits) - 1) for i in range(count)]


def braces(value, count, bits=64):
    return "{" + ", ".join("0x%xULL" % w for w in words(value, count, bits)) + "}"


def is_prime(n):
    d, s = n - 1, 0
    while d % 2 == 0:
        d, s = d // 2, s + 1
    for a in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47):
        y = pow(a, d, n)
        if y in (1, n - 1):
            continue
        for _ in range(s - 1):
            y = y * y % n
            if y == n - 1:
                break
        else:
            return False
    return True


def naf(value):
    digits = []
    while value:
        digit = 2 - value % 4 if value % 2 else 0
        digits.append(digit)
        value = (value - digit) // 2
    return digits[::-1]  # most significant first


class Fp2:
    """Fp[u]/(u^2 + 1) as pairs, for one prime."""

    def __init__(self, p):
        self.p = p

    def add(self, a, b):
        return ((a[0] + b[0]) % self.p, (a[1] + b[1]) % self.p)

    def sub(self, a, b):
        return ((a[0] - b[0]) % self.p, (a[1] - b[1]) % self.p)

    def mul(self, a, b):
        return ((a[0] * b[0] - a[1] * b[1]) % self.p, (a[0] * b[1] + a[1] * b[0]) % self.p)

    def inv(self, a):
        n = pow(a[0] * a[0] + a[1] * a[1], -1, self.p)
        return (a[0] * n % self.p, -a[1] * n % self.p)

    def conj(self, a):
        return (a[0], -a[1] % self.p)

    def pow(self, a, e):
        y = (1, 0)
        for bit in bin(e)[2:]:
            y = self.mul(y, y)
            if bit == "1":
                y = self.mul(y, a)
        return y

    def sqrt(self, a):
        """A square root or None; p = 3 mod 4."""
        p = self.p
        n = pow(a[0] * a[0] + a[1] * a[1], (p + 1) // 4, p)
        for root in (n, -n):
            t = (a[0] + root) * pow(2, -1, p) % p
            c0 = pow(t, (p + 1) // 4, p)
            if c0 and c0 * c0 % p == t:
                y = (c0, a[1] * pow(2 * c0, -1, p) % p)
                if self.mul(y, y) == (a[0] % p, a[1] % p):
                    return y
        return None


class Group:
    """Affine points of y^2 = x^3 + b over Fp2 (or Fp, with second coordinates 0); None is infinity."""

    def __init__(self, field, b):
        self.f, self.b = field, b

    def on_curve(self, pt):
        f = self.f
        x, y = pt
        return f.mul(y, y) == f.add(f.mul(f.mul(x, x), x), self.b)

    def add(self, a, b):
        f = self.f
        if a is None:
            return b
        if b is None:
            return a
        if a[0] == b[0]:
            if a[1] != b[1] or a[1] == (0, 0):
                return None
            xx = f.mul(a[0], a[0])
            slope = f.mul(f.add(xx, f.add(xx, xx)), f.inv(f.add(a[1], a[1])))
        else:
            slope = f.mul(f.sub(b[1], a[1]), f.inv(f.sub(b[0], a[0])))
        x = f.sub(f.sub(f.mul(slope, slope), a[0]), b[0])
        return (x, f.sub(f.mul(slope, f.sub(a[0], x)), a[1]))

    def neg(self, a):
        return a and (a[0], self.f.sub((0, 0), a[1]))

    def mul(self, k, a):
        if k < 0:
            return self.mul(-k, self.neg(a))
        out = None
        for bit in bin(k)[2:]:
            out = self.add(out, out)
            if bit == "1":
                out = self.add(out, a)
        return out

    def some_point(self, rng, in_base_field):
        f = self.f
        while True:
            x = (rng.randrange(f.p), 0 if in_base_field else rng.randrange(f.p))
            y = f.sqrt(f.add(f.mul(f.mul(x, x), x), self.b))
            if y is not None and (not in_base_field or y[1] == 0):
                return (x, y)


class Header:
    def __init__(self):
        self.lines = []

    def text(self, *lines):
        self.lines += lines

    def define(self, name, value, comment=None):
        line = "#define %s %s" % (name, value)
        self.lines.append(line + (" /* %s */" % comment if comment else ""))


def field(h, name, p, limbs, limbs52):
    """The constants of one prime field, in 64-bit words (R = 2^(64 limbs)) and in the 52-bit form of the IFMA tier."""
    R, R52 = 1 << (64 * limbs), 1 << (52 * limbs52)
    assert is_prime(p) and p.bit_length() < 64 * limbs

    def word_array(key, value, comment=None):
        h.define("%s_%s" % (name, key), braces(value, limbs), comment)

    def lane_array(key, value, comment=None):
        h.define("%s_%s" % (name, key), braces(value, limbs52, 52), comment)

    h.define(name + "_LIMBS", limbs)
    h.define(name + "_BITS", p.bit_length())
    word_array("P", p, "the modulus")
    h.define(name + "_NINV", "0x%xULL" % (-pow(p, -1, 1 << 64) % (1 << 64)), "-1/p mod 2^64; its low half is -1/p mod 2^32")
    word_array("R1", R % p, "R mod p: one in Montgomery form")
    word_array("R2", R * R % p)
    word_array("R3", R * R * R % p)
    word_array("HALF", (p - 1) // 2, "(p - 1)/2, a plain integer")
    word_array("TWO_INV", R * pow(2, -1, p) % p, "1/2, Montgomery")
    h.define(name + "_LIMBS52", limbs52)
    lane_array("P52", p)
    lane_array("P2_52", 2 * p)
    lane_array("P4_52", 4 * p)
    lane_array("P6_52", 6 * p)
    h.define(name + "_NINV52", "0x%xULL" % (-pow(p, -1, 1 << 52) % (1 << 52)))
    lane_array("R1_52", R52 % p, "R52 = 2^(52 limbs52) mod p")
    lane_array("R2_52", R52 * R52 % p)
    lane_array("OUT52", R % p, "52-bit product of x*R52 and this is x*R")
    word_array("IN64", R52 % p, "64-bit product of x*R and this is x*R52")
    word_array("OUTS", R * pow(R52, -1, p) * R % p, "64-bit product of x*R52 and this is x*R")
    h.define(name + "_SHIFT", 52 * limbs52 - 64 * limbs, "x*R shifted left by this is x*R52, unreduced")


def resultant_gcd(poly, t, p, order):
    """gcd(N, order) for the norm N of poly(psi), psi a root of X^2 - t X + p. poly(psi) kills only points of that order."""
    a, b = 0, 0  # Horner in Z[psi]: a + b psi
    for coefficient in reversed(poly):
        a, b = -p * b + coefficient, a + t * b
    return math.gcd(a * a + t * a * b + p * b * b, order)


def curve(c):
    p, r, x, t = c["p"], c["r"], c["x"], c["t"]
    n = c["limbs"]
    R = 1 << (64 * n)
    f2 = Fp2(p)
    xi = c["xi"]
    rng = random.Random(1)

    # --- What must hold. ---
    assert is_prime(p) and is_prime(r) and p % 4 == 3 and p % 6 == 1
    assert f2.pow(xi, (p * p - 1) // 2) != (1, 0) and f2.pow(xi, (p * p - 1) // 3) != (1, 0)
    h1 = (p + 1 - t) // r
    assert h1 * r == p + 1 - t
    h2 = c["h2"]
    b1 = (c["b"], 0)
    b2 = f2.mul(b1, f2.inv(xi)) if c["twist_is_d"] else f2.mul(b1, xi)
    e1, e2 = Group(f2, b1), Group(f2, b2)
    g1 = ((c["g1"][0], 0), (c["g1"][1], 0))
    g2 = c["g2"]
    assert e1.on_curve(g1) and e2.on_curve(g2)
    assert e1.mul(r, g1) is None and e2.mul(r, g2) is None
    for _ in range(2):
        assert e1.mul(h1 * r, e1.some_point(rng, True)) is None
        assert e2.mul(h2 * r, e2.some_point(rng, False)) is None

    # --- psi: untwist, Frobenius, twist. On G2 it is multiplication by p. ---
    sixth = f2.pow(xi, (p - 1) // 6)  # w^(p - 1), as w^6 = xi
    psi_x, psi_y = f2.pow(sixth, 2), f2.pow(sixth, 3)
    if not c["twist_is_d"]:
        psi_x, psi_y = f2.inv(psi_x), f2.inv(psi_y)

    def psi(pt):
        return (f2.mul(f2.conj(pt[0]), psi_x), f2.mul(f2.conj(pt[1]), psi_y))

    assert psi(g2) == e2.mul(p % r, g2)
    q = e2.some_point(rng, False)  # psi^2 - t psi + p = 0 on the whole curve
    assert e2.add(psi(psi(q)), e2.mul(p, q)) == e2.mul(t, psi(q))

    # --- phi(x, y) = (beta x, y), multiplication by lambda on G1; lambda is -x^2 (BLS) and one of the roots (BN). ---
    beta = next(y for y in (pow(g, (p - 1) // 3, p) for g in range(2, 20)) if y != 1)
    lam = c["lambda"] % r
    assert (lam * lam + lam + 1) % r == 0
    if e1.mul(lam, g1) != ((beta * g1[0][0] % p, 0), g1[1]):
        beta = beta * beta % p
    assert e1.mul(lam, g1) == ((beta * g1[0][0] % p, 0), g1[1])
    if c["family"] == "bls12":
        # G1: phi^2 + phi + 1 = 0 everywhere, so phi(P) = -[x^2] P gives [x^4 - x^2 + 1] P = [r] P = 0.
        assert x**4 - x**2 + 1 == r and c["lambda"] == -x * x
        # G2: psi(P) = [x] P kills exactly the points of order r.
        assert resultant_gcd([-x, 1], t, p, h2 * r) == r
        # The chain of the final exponentiation.
        assert (x - 1) ** 2 * (x + p) * (x * x + p * p - 1) + 3 == 3 * ((p**4 - p**2 + 1) // r)
    else:
        assert h1 == 1
        # G2: [x+1] P + psi([x] P) + psi^2([x] P) = psi^3([2x] P) kills exactly the points of order r.
        assert resultant_gcd([x + 1, x, x, -2 * x], t, p, h2 * r) == r
        # The chain of the final exponentiation.
        m, a = 2 * x * (6 * x**2 + 3 * x + 1), 12 * x**3 + 6 * x**2 + 6 * x
        b = a - 2 * x
        assert (a + 6 * x**2 + 1) + b * p + a * p**2 + (b - 1) * p**3 == m * ((p**4 - p**2 + 1) // r)
        assert m % r != 0
        a = e2.mul(x, g2)
        left = e2.add(e2.add(e2.add(a, g2), psi(a)), psi(psi(a)))
        assert left == psi(psi(psi(e2.add(a, a))))
    assert h2 % r != 0 and h1 % r != 0

    # --- The header. ---
    h = Header()
    h.text("/* %s: every constant of host and device, in 64-bit little-endian words." % c["title"], " *",
           " * Written by derive.py from x = %s%#x; change that file, never this one. A brace list" % ("-" if x < 0 else "", abs(x)),
           " * initialises an array of words. Unless said otherwise a field element is in Montgomery form (R = 2^(64 limbs)),",
           " * an element of fp2 is two of them, _C0 and _C1. Source: %s." % c["source"], " */",
           "#pragma once", "// clang-format off", "")
    h.define("CURVE_NAME", '"%s"' % c["name"])
    h.define("CURVE_SNARKJS_NAME", '"%s"' % c["snarkjs_name"])
    h.define("CURVE_ID", c["id"], "as enum curve_id")
    h.define("CURVE_IS_BN", int(c["family"] == "bn"), "family: BN, else BLS12")
    h.define("CURVE_X", "0x%xULL" % abs(x), "|x|, the family's parameter")
    h.define("CURVE_X_IS_NEGATIVE", int(x < 0))
    h.text("", "/* Coordinates: integers mod p. */")
    field(h, "FP", p, n, c["limbs52"])
    h.define("FP_IS_3_MOD_4", 1)
    h.define("FP_SQRT_EXPONENT", braces((p + 1) // 4, n), "p = 3 mod 4: a root of a is a^((p+1)/4)")
    h.text("", "/* Scalars: integers mod r. */")
    field(h, "FR", r, 4, 5)
    s = 0
    while (r - 1) >> s & 1 == 0:
        s += 1
    h.define("FR_IS_3_MOD_4", 0)
    h.define("FR_TWO_ADICITY", s)
    for name, g in (("SNARKJS", 5), ("BELLMAN", 7)):
        root = pow(g, (r - 1) >> s, r)
        assert pow(root, 1 << (s - 1), r) == r - 1
        h.define("FR_GENERATOR_" + name, g, "a non-residue, plain integer")
        h.define("FR_ROOT_" + name, braces(root * (1 << 256) % r, 4), "%d^((r-1)/2^%d): order 2^%d" % (g, s, s))

    def fp(name, value, comment=None):
        h.define(name, braces(value * R % p, n), comment)

    def flat(name, values, comment):
        joined = sum((words(v * R % p, n) for v in values), [])
        h.define(name, "{" + ", ".join("0x%xULL" % w for w in joined) + "}", comment)

    def fp2(name, value, comment=None):
        fp(name + "_C0", value[0], comment)
        fp(name + "_C1", value[1])

    h.text("", "/* G1: y^2 = x^3 + b over fp. */")
    fp("G1_B", c["b"])
    flat("G1_GENERATOR", c["g1"], "x, y")
    h.define("G1_COFACTOR_WORDS", max(1, (h1.bit_length() + 63) // 64))
    h.define("G1_COFACTOR", braces(h1, max(1, (h1.bit_length() + 63) // 64)))
    fp("G1_BETA", beta, "(x, y) to (beta x, y) is multiplication by G1_LAMBDA")
    h.define("G1_LAMBDA", braces(lam, 4), "plain integer mod r" + ("; -x^2" if c["family"] == "bls12" else ""))
    h.text("", "/* G2: y^2 = x^3 + b over fp2 = fp[u]/(u^2 + 1). */")
    fp2("G2_B", b2, "b/xi" if c["twist_is_d"] else "b*xi")
    flat("G2_GENERATOR", g2[0] + g2[1], "x.c0, x.c1, y.c0, y.c1")
    h.define("G2_COFACTOR_WORDS", (h2.bit_length() + 63) // 64)
    h.define("G2_COFACTOR", braces(h2, (h2.bit_length() + 63) // 64))
    fp2("G2_PSI_X", psi_x, "psi(x, y) = (conj(x) PSI_X, conj(y) PSI_Y): multiplication by p on G2")
    fp2("G2_PSI_Y", psi_y)
    h.text("", "/* Tower: fp6 = fp2[v]/(v^3 - xi), fp12 = fp6[w]/(w^2 - v). */")
    h.define("XI_C0", xi[0], "xi = XI_C0 + u")
    assert xi[1] == 1
    h.define("TWIST_IS_D", int(c["twist_is_d"]), "D: (x, y) untwists to (x w^2, y w^3); M: (x/w^2, y/w^3)")
    for i in (1, 2, 3):
        fp2("FROBENIUS%d_V" % i, f2.pow(xi, (p**i - 1) // 3), "v^(p^%d - 1)" % i)
        fp2("FROBENIUS%d_VV" % i, f2.pow(xi, 2 * (p**i - 1) // 3), "v^2(p^%d - 1)" % i)
        fp2("FROBENIUS%d_W" % i, f2.pow(xi, (p**i - 1) // 6), "w^(p^%d - 1)" % i)
    loop = naf(abs(c["ate_loop"]))
    h.text("", "/* Optimal ate: %s in signed digits, most significant first. */" % c["ate_text"])
    h.define("ATE_LOOP_DIGITS", len(loop))
    h.define("ATE_LOOP", "{" + ", ".join(str(d) for d in loop) + "}")
    h.text("", "// clang-format on")
    return "\n".join(h.lines) + "\n"


def bn254():
    x = 4965661367192848881
    p = 36 * x**4 + 36 * x**3 + 24 * x**2 + 6 * x + 1
    return dict(
        name="bn254", snarkjs_name="bn128", id=1, family="bn", title="BN254", source="EIP-196, EIP-197",
        x=x, t=6 * x**2 + 1, p=p, r=36 * x**4 + 36 * x**3 + 18 * x**2 + 6 * x + 1, limbs=4, limbs52=5,
        h2=p - 1 + 6 * x**2 + 1, b=3, xi=(9, 1), twist_is_d=True, g1=(1, 2),
        g2=((10857046999023057135944570762232829481370756359578518086990519993285655852781,
             11559732032986387107991004021392285783925812861821192530917403151452391805634),
            (8495653923123431417604973247489272438418190587263600148770280649306958101930,
             4082367875863433681332203403145435568316851327593401208105741076214120093531)),
        **{"lambda": 36 * x**3 + 18 * x**2 + 6 * x + 1}, ate_loop=6 * x + 2, ate_text="6x + 2")


def bls12_381():
    x = -0xD201000000010000
    r = x**4 - x**2 + 1
    h2 = x**8 - 4 * x**7 + 5 * x**6 - 4 * x**4 + 6 * x**3 - 4 * x**2 - 4 * x + 13
    assert h2 % 9 == 0
    return dict(
        name="bls12_381", snarkjs_name="bls12381", id=2, family="bls12", title="BLS12-381",
        source="draft-irtf-cfrg-pairing-friendly-curves, 4.2.1",
        x=x, t=x + 1, p=(x - 1) ** 2 * r // 3 + x, r=r, limbs=6, limbs52=8,
        h2=h2 // 9, b=4, xi=(1, 1), twist_is_d=False,
        g1=(0x17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb,
            0x08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1),
        g2=((0x024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8,
             0x13e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e),
            (0x0ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801,
             0x0606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be)),
        **{"lambda": -x * x}, ate_loop=x, ate_text="|x|")


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit("usage: derive.py [--check]")
    # The moduli as published, so that a slip in x shows.
    assert bn254()["p"] == 21888242871839275222246405745257275088696311157297823662689037894645226208583
    assert bn254()["r"] == 21888242871839275222246405745257275088548364400416034343698204186575808495617
    assert bls12_381()["p"] == 0x1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab
    assert bls12_381()["r"] == 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001
    differ = []
    for c in (bn254(), bls12_381()):
        path = os.path.join(HERE, c["name"] + ".h")
        text = curve(c)
        if not check:
            with open(path, "w") as out:
                out.write(text)
            continue
        try:
            with open(path) as have:
                found = have.read().splitlines()
        except OSError as why:
            sys.exit("%s: %s" % (path, why.strerror))
        want = text.splitlines()
        for i in range(max(len(found), len(want))):
            a, b = found[i:i + 1], want[i:i + 1]
            if a != b:
                differ.append("%s:%d: has %s, derived %s" % (path, i + 1, a or "nothing", b or "nothing"))
    if check:
        failed = len({line.split(":")[0] for line in differ})
        print("\n".join(differ[:10] + ["%d passed, %d failed" % (2 - failed, failed)]))
        sys.exit(1 if failed else 0)


main()
