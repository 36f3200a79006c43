// A submitter written from proto/job.proto alone: the official NATS clients, protobufjs and an XXH64.
import { createHash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import protobuf from "protobufjs";
import xxhash from "xxhash-wasm";
import { connect, headers } from "@nats-io/transport-node";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Objm } from "@nats-io/obj";

const INLINE_BYTES_MAX = 128 * 1024;
const { Long } = protobuf.util;

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

// One witness as a Body without its place, and the sequence of frames. Everything goes raw: compression is a writer's choice.
export async function makeBody(wire, values, frameBytes = 4 << 20) {
  const Frame = wire("Frame"), { h64Raw } = await xxhash();
  const frames = [];
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
    sections: [{ kind: 1, valuesCount: values.length / 32, rawBytes: values.length }],
    frameBytes,
    framesCount: frames.length,
    rawBytes: values.length,
    wireBytes: sequence.length,
    sha256: sha256(sequence),
  };
  return { body, sequence };
}

// Puts the frames inside the body, or into the tenant's bucket in the client's own chunks (128 KiB).
export async function placeBody(nc, { body, sequence }, { prefix, tenant, name, inline }) {
  if (inline ?? sequence.length <= INLINE_BYTES_MAX) return { ...body, inlineFrames: sequence };
  const bucket = `${prefix}-in-${tenant}`;
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

// Subscribes at once; the returned function waits for the Result.
export function expectResult(nc, wire, { prefix = "bellows", tenant, job, generation = 1 }) {
  const subject = `${prefix}.done.${tenant}.${job}.${generation}`;
  const sub = nc.subscribe(subject, { max: 1 });
  return async (waitMs) => {
    const until = Date.now() + waitMs;
    const heard = (async () => { for await (const m of sub) return m.data; })();
    const jsm = await jetstreamManager(nc);
    while (Date.now() < until) {
      const pause = new Promise((done) => setTimeout(done, 500, null));
      const data = await Promise.race([heard, pause]) ??
        (await jsm.streams.getMessage(`${prefix.toUpperCase()}_DONE`, { last_by_subj: subject })
          .catch(() => null))?.data;
      if (data) {
        sub.unsubscribe();
        return wire("Result").decode(data);
      }
    }
    throw new Error(`no result on ${subject} within ${waitMs} ms`);
  };
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
