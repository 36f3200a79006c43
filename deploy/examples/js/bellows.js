// What a submitter needs of the wire, for Node: the official NATS clients, protobufjs and an XXH64. proto/README.md explains each step.
import { createHash, randomUUID, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import protobuf from "protobufjs";
import xxhash from "xxhash-wasm";
import { connect, createInbox, headers } from "@nats-io/transport-node";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Objm } from "@nats-io/obj";

const INLINE_BYTES_MAX = 128 * 1024;
const { Long } = protobuf.util;

const CHUNK_BYTES = 128 * 1024;

// A connection to SERVER. With a certificate of `bellows certs issue` (files ca, cert, key) its holder's name, submitter.TENANT.USER, says the
// tenant, and the inboxes that the server allows; such a user lives in its tenant's account.
export async function connectAs(servers, { ca, cert, key } = {}) {
  if (!cert) return { nc: await connect({ servers }), tenant: process.env.BELLOWS_TENANT ?? "default" };
  const holder = /CN=(.*)/.exec(new X509Certificate(readFileSync(cert)).subject)[1], inboxPrefix = `_INBOX.${holder}`;
  const nc = await connect({ servers, tls: { caFile: ca, certFile: cert, keyFile: key }, inboxPrefix });
  return { nc, tenant: holder.split(".")[1], inboxPrefix };
}

export const sha256 = (bytes) => createHash("sha256").update(bytes).digest();

export async function loadWire(protoDir) {
  const root = await protobuf.load(path.join(protoDir, "job.proto"));
  return (name) => root.lookupType("bellows.v1." + name);
}

// The values of a .wtns file: section 2, canonical little-endian integers.
export function readWtns(file) {
  const bytes = readFileSync(file);
  if (bytes.toString("latin1", 0, 4) !== "wtns") throw new Error(file + " is not a .wtns file");
  for (let at = 12, left = bytes.readUInt32LE(8); left > 0; left--) {
    const id = bytes.readUInt32LE(at), len = Number(bytes.readBigUInt64LE(at + 4));
    if (id === 2) return bytes.subarray(at + 12, at + 12 + len);
    at += 12 + len;
  }
  throw new Error(file + " has no section 2");
}

const PRIMES = {
  1: 21888242871839275222246405745257275088548364400416034343698204186575808495617n,
  2: 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001n,
};
const align = (bytes) => Buffer.concat([bytes, Buffer.alloc(-bytes.length & 15)]);
const widthOf = (x) => [1, 2, 4].find((w) => x >= -(1n << BigInt(8 * w - 1)) && x < 1n << BigInt(8 * w - 1)) ?? 8;

// The scalars of one block: class bits, small numbers of either sign, full values; see proto/packed.h.
function packBlock(values, r) {
  const count = values.length / 32, classes = Buffer.alloc((count + 3) >> 2), smalls = [], fulls = [];
  for (let i = 0; i < count; i++) {
    const bytes = values.subarray(32 * i, 32 * i + 32);
    const x = bytes.readBigUInt64LE(0) | (bytes.readBigUInt64LE(8) << 64n) | (bytes.readBigUInt64LE(16) << 128n) |
      (bytes.readBigUInt64LE(24) << 192n);
    const signed = x < 1n << 63n ? x : x - r, isSmall = signed >= -(1n << 63n);
    const kind = x < 2n ? Number(x) : isSmall ? 2 : 3;
    classes[i >> 2] |= kind << (2 * (i & 3));
    if (kind === 2) smalls.push(signed);
    if (kind === 3) fulls.push(bytes);
  }
  const width = smalls.length ? Math.max(...[...new Set(smalls.map(widthOf))]) : 0;
  const small = Buffer.alloc(8 * smalls.length);
  smalls.forEach((x, i) => small.writeBigInt64LE(x, 8 * i));
  const narrow = Buffer.concat(smalls.map((_, i) => small.subarray(8 * i, 8 * i + width)));
  const entry = Buffer.alloc(16);
  [smalls.length, fulls.length, width].forEach((n, i) => entry.writeUInt32LE(n, 4 * i));
  return { entry, parts: [align(classes), align(narrow), ...fulls] };
}

// Plain scalars in the packed form; worth sending where it is at most 7/8 as long.
export function pack(values, curve) {
  const blocks = [];
  for (let at = 0; at < values.length; at += 32 << 16) blocks.push(packBlock(values.subarray(at, at + (32 << 16)), PRIMES[curve]));
  const rest = Buffer.concat(blocks.flatMap((b) => b.parts)), head = Buffer.alloc(32);
  head.write("BPKS");
  head.writeUInt16LE(1, 4);
  head.writeUInt16LE(16, 6);
  head.writeBigUInt64LE(BigInt(values.length / 32), 8);
  head.writeBigUInt64LE(BigInt(32 + 16 * blocks.length + rest.length), 16);
  return Buffer.concat([head, ...blocks.map((b) => b.entry), rest]);
}

// One witness as a Body without its place, and the sequence of frames, packed where that pays. Frames go raw: zstd is a writer's choice.
export async function makeBody(wire, witness, curve, { frameBytes = 4 << 20, packed = true } = {}) {
  const Frame = wire("Frame"), { h64Raw } = await xxhash();
  const frames = [], short = packed ? pack(witness, curve) : witness;
  const isPacked = short.length <= witness.length * 7 / 8, values = isPacked ? short : witness;
  for (let offset = 0; offset < values.length; offset += frameBytes) {
    const data = values.subarray(offset, offset + frameBytes);
    frames.push(Frame.encodeDelimited(Frame.create({
      section: 0,
      index: frames.length,
      offset,
      rawBytes: data.length,
      xxh64: Long.fromString(h64Raw(data).toString(), true),
      encoding: 0,
      data,
    })).finish());
  }
  const sequence = Buffer.concat(frames);
  const body = {
    sections: [{ kind: isPacked ? 2 : 1, valuesCount: witness.length / 32, rawBytes: values.length }],
    frameBytes,
    framesCount: frames.length,
    rawBytes: values.length,
    wireBytes: sequence.length,
    sha256: sha256(sequence),
  };
  return { body, sequence };
}

// An object in the layout of the object store (ADR-20): chunks, then their entry. The client's own store asks for the bucket's state first, which
// a tenant's account may not.
async function putObject(nc, bucket, name, bytes) {
  const js = jetstream(nc), nuid = randomUUID().replaceAll("-", "").slice(0, 22), rollup = headers();
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) await js.publish(`$O.${bucket}.C.${nuid}`, bytes.subarray(at, at + CHUNK_BYTES));
  const entry = {
    name, bucket, nuid, size: bytes.length, chunks: Math.ceil(bytes.length / CHUNK_BYTES), options: { max_chunk_size: CHUNK_BYTES },
    digest: "SHA-256=" + createHash("sha256").update(bytes).digest("base64").replaceAll("+", "-").replaceAll("/", "_"),
  };
  rollup.set("Nats-Rollup", "sub");
  const key = Buffer.from(name).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
  await js.publish(`$O.${bucket}.M.${key}`, JSON.stringify(entry), { headers: rollup });
  return nuid;
}

// Puts the frames inside the body, or into the tenant's bucket: by the client's own object store, which makes the bucket where it may,
// or by hand from a tenant's account (`inboxPrefix`).
export async function placeBody(nc, { body, sequence }, { prefix, tenant, name, inline, inboxPrefix }) {
  if (inline ?? sequence.length <= INLINE_BYTES_MAX) return { ...body, inlineFrames: sequence };
  const bucket = `${prefix}-in-${tenant}`;
  if (inboxPrefix) return { ...body, object: { bucket, name, nuid: await putObject(nc, bucket, name, sequence) } };
  const stores = new Objm(nc);
  const store = await stores.open(bucket).catch(() => stores.create(bucket));
  const info = await store.putBlob({ name }, sequence);
  return { ...body, object: { bucket, name, nuid: info.nuid } };
}

export async function submit(nc, wire, { prefix = "bellows", tenant, job, keyDigest, curve,
  priority = 2, generation = 1, bodies, replySubject = "", label = "" }) {
  const Job = wire("Job");
  const message = Job.encode(Job.create({
    version: 1, jobId: job, tenant, keyDigest, curve, priority, generation, replySubject, label,
    submittedUnixMs: Date.now(),
    partitions: bodies.map((body) => ({ body })),
  })).finish();
  const circuit = Buffer.from(keyDigest).toString("hex").slice(0, 16);
  const subject = `${prefix}.job.${priority}.${circuit}.${tenant}.${job}`;
  return await jetstream(nc).publish(subject, message, { msgID: `${tenant}.${job}.${generation}` });
}

// Subscribes at once; the returned function waits for the Result. Its `inbox` is for the job's replySubject: refusals come there.
export function expectResult(nc, wire, { prefix = "bellows", tenant, job, generation = 1, inboxPrefix }) {
  const subject = `${prefix}.done.${tenant}.${job}.${generation}`, inbox = createInbox(inboxPrefix);
  // The stored result, if it is there: asked for by its subject, which is what the server can permit.
  const stored = async () => {
    const m = await nc.request(`$JS.API.DIRECT.GET.${prefix.toUpperCase()}_DONE.${subject}`, undefined, { timeout: 5000 }).catch(() => null);
    return m && !m.headers?.code ? m.data : null;
  };
  const subs = [subject, inbox].map((s) => nc.subscribe(s, { max: 1 }));
  const heard = Promise.race(subs.map(async (sub) => { for await (const m of sub) return m.data; }));
  const wait = async (waitMs) => {
    const until = Date.now() + waitMs;
    while (Date.now() < until) {
      const pause = new Promise((done) => setTimeout(done, 500, null));
      const data = await Promise.race([heard, pause]) ?? await stored();
      if (data) {
        subs.forEach((sub) => sub.unsubscribe());
        return wire("Result").decode(data);
      }
    }
    throw new Error(`no result on ${subject} within ${waitMs} ms`);
  };
  return Object.assign(wait, { inbox });
}

const integer = (bytes) => BigInt("0x" + (Buffer.from(bytes).reverse().toString("hex") || "0"));

// A Proof message as snarkjs's proof.json and public.json.
export function snarkjsOf(proof, curve) {
  const fp = curve === 1 ? 32 : 48;
  const at = (bytes, i) => integer(bytes.subarray(i * fp, (i + 1) * fp)).toString();
  const { a, b, c, publics } = proof;
  return {
    proof: {
      pi_a: [at(a, 0), at(a, 1), "1"],
      pi_b: [[at(b, 0), at(b, 1)], [at(b, 2), at(b, 3)], ["1", "0"]],
      pi_c: [at(c, 0), at(c, 1), "1"],
      protocol: "groth16",
      curve: curve === 1 ? "bn128" : "bls12381",
    },
    publics: Array.from({ length: publics.length / 32 },
      (_, i) => integer(publics.subarray(32 * i, 32 * i + 32)).toString()),
  };
}

export const freshJob = () => "js-" + randomUUID();
export { connect, headers, jetstream, jetstreamManager, Objm };
