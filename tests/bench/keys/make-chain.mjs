// node make-chain.mjs bn128|bls12-381 N OUT.r1cs OUT.wtns
//
// The squaring chain of a squaring circuit for N constraints, written straight to
// the two files: circom2 needs minutes for 2^18 constraints and more than that beyond.
// x = 3; the wires are 0: one, 1: y = t[N-1], 2: x, 3 and on: t[0], t[1], ...
import fs from "node:fs";
const [curve, nStr, r1csFile, wtnsFile] = process.argv.slice(2), n = Number(nStr);
if (!wtnsFile || !(n >= 2)) { console.error("usage: node make-chain.mjs bn128|bls12-381 N OUT.r1cs OUT.wtns"); process.exit(2); }
const r = /381/.test(curve)
    ? 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001n
    : 0x30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001n;
const le = (b, o, x) => { for (let i = 0; i < 32; i += 8, x >>= 64n) b.writeBigUInt64LE(x & 0xffffffffffffffffn, o + i); return o + 32; };
const nVars = n + 2, t = (i) => i < 0 ? 2 : i === n - 1 ? 1 : 3 + i;

const w = Buffer.alloc(76 + nVars * 32);
w.write("wtns"); w.writeUInt32LE(2, 4); w.writeUInt32LE(2, 8);
w.writeUInt32LE(1, 12); w.writeUInt32LE(40, 16); w.writeUInt32LE(32, 24); le(w, 28, r); w.writeUInt32LE(nVars, 60);
w.writeUInt32LE(2, 64); w.writeBigUInt64LE(BigInt(nVars) * 32n, 68);
le(w, 76, 1n);
let x = 3n;
le(w, 76 + 64, x);
for (let i = 0; i < n; i++) { x = (x * x + BigInt(i)) % r; le(w, 76 + 32 * t(i), x); }
fs.writeFileSync(wtnsFile, w);

const body = 12 + 36 * 3 + (n - 1) * (12 + 36 * 4), b = Buffer.alloc(12 + 12 + 64 + 12 + body + 12 + nVars * 8);
b.write("r1cs"); b.writeUInt32LE(1, 4); b.writeUInt32LE(3, 8);
b.writeUInt32LE(1, 12); b.writeUInt32LE(64, 16); b.writeUInt32LE(32, 24);
let p = le(b, 28, r);
for (const v of [nVars, 1, 0, 1, nVars, 0, n]) p = b.writeUInt32LE(v, p); // wires, outputs, public and private inputs, labels (u64), constraints
p = b.writeUInt32LE(2, p); p = b.writeBigUInt64LE(BigInt(body), p);
const lc = (...terms) => { p = b.writeUInt32LE(terms.length, p); for (const [s, v] of terms) { p = b.writeUInt32LE(s, p); p = le(b, p, v); } };
for (let i = 0; i < n; i++) {
    lc([t(i - 1), 1n]);
    lc([t(i - 1), 1n]);
    if (i) lc([0, r - BigInt(i)], [t(i), 1n]); else lc([t(i), 1n]);
}
p = b.writeUInt32LE(3, p); p = b.writeBigUInt64LE(BigInt(nVars) * 8n, p);
for (let i = 0; i < nVars; i++) p = b.writeBigUInt64LE(BigInt(i), p);
if (p !== b.length) throw new Error("size");
fs.writeFileSync(r1csFile, b);
