// node submit.js --server URL --proto DIR --key-digest HEX --curve 1|2 --tenant T [--job J] [--object] [--frame-bytes N]
//                [--plain] [--proof FILE --public FILE] [--wait-ms N] WITNESS.wtns...
// Submits one job, one partition for each witness, waits for its result and prints it as one line of JSON.
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { connect, expectResult, freshJob, loadWire, makeBody, placeBody, readWtns, snarkjsOf,
  submit } from "./bellows.js";

const { values: o, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    server: { type: "string" }, proto: { type: "string" }, prefix: { type: "string", default: "bellows" },
    "key-digest": { type: "string" }, curve: { type: "string", default: "1" },
    tenant: { type: "string", default: "default" }, job: { type: "string" },
    object: { type: "boolean", default: false }, plain: { type: "boolean", default: false },
    "frame-bytes": { type: "string", default: "4194304" },
    proof: { type: "string" }, public: { type: "string" }, "wait-ms": { type: "string", default: "60000" },
  },
});

const nc = await connect({ servers: o.server });
try {
  const wire = await loadWire(o.proto);
  const name = { prefix: o.prefix, tenant: o.tenant, job: o.job ?? freshJob() };
  const curve = Number(o.curve);
  const result = expectResult(nc, wire, name);
  const bodies = [];
  for (const [i, file] of positionals.entries()) {
    const made = await makeBody(wire, readWtns(file), curve,
      { frameBytes: Number(o["frame-bytes"]), packed: !o.plain });
    bodies.push(await placeBody(nc, made, {
      ...name, name: `${name.job}/${i}`, inline: o.object ? false : undefined,
    }));
  }
  const ack = await submit(nc, wire, {
    ...name, keyDigest: Buffer.from(o["key-digest"], "hex"), curve, bodies,
  });
  const got = await result(Number(o["wait-ms"]));
  const proofs = got.partitions.filter((p) => p.proof).map((p) => snarkjsOf(p.proof, curve));
  if (o.proof && proofs.length) writeFileSync(o.proof, JSON.stringify(proofs[0].proof, null, 1));
  if (o.public && proofs.length) writeFileSync(o.public, JSON.stringify(proofs[0].publics, null, 1));
  console.log(JSON.stringify({
    job: name.job, sequence: ack.seq, duplicate: ack.duplicate, status: got.status,
    error: got.error ? `${got.error.name}: ${got.error.detail}` : "",
    places: bodies.map((b) => (b.object ? "object" : "inline")),
    frames: bodies.map((b) => b.framesCount), kinds: bodies.map((b) => b.sections[0].kind), proofs,
  }));
  process.exitCode = got.status === 1 ? 0 : 1;
} finally {
  await nc.close();
}
