// node prove.js SERVER KEY WITNESS VERIFICATION_KEY [PROTO_FOLDER]
// One proof from the fleet, verified with snarkjs, on standard output. The fleet must know the key: `bellows key push KEY`.
// A server with TLS wants BELLOWS_TLS_CA, BELLOWS_TLS_CERT and BELLOWS_TLS_KEY, as `bellows submit` does.
import { createHash } from "node:crypto";
import { createReadStream, readFileSync } from "node:fs";
import * as snarkjs from "snarkjs";
import { connectAs, expectResult, freshJob, loadWire, makeBody, placeBody, readWtns, snarkjsOf, submit } from "./bellows.js";

const [server, key, witness, vkeyFile, proto = "../../../proto"] = process.argv.slice(2);
const vkey = JSON.parse(readFileSync(vkeyFile, "utf8"));
const curve = vkey.curve === "bn128" ? 1 : 2;

async function digestOf(file) {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk);
  return hash.digest();
}

const { BELLOWS_TLS_CA: ca, BELLOWS_TLS_CERT: cert, BELLOWS_TLS_KEY: tlsKey } = process.env;
const { nc, tenant, inboxPrefix } = await connectAs(server, { ca, cert, key: tlsKey });
try {
  const wire = await loadWire(proto), name = { tenant, inboxPrefix, job: freshJob() };
  const result = expectResult(nc, wire, name); // listens before the job is sent
  const made = await makeBody(wire, readWtns(witness), curve);
  const body = await placeBody(nc, made, { prefix: "bellows", ...name, name: name.job });
  await submit(nc, wire, { ...name, keyDigest: await digestOf(key), curve, bodies: [body], replySubject: result.inbox });
  console.error(`job ${name.job}: ${made.sequence.length} bytes for ${body.sections[0].valuesCount} values`);
  const got = await result(60000);
  if (got.status !== 1) throw new Error(`${got.error?.name}: ${got.error?.detail}`);
  const { proof, publics } = snarkjsOf(got.partitions[0].proof, curve);
  if (!(await snarkjs.groth16.verify(vkey, publics, proof))) throw new Error("snarkjs does not verify the proof");
  console.log(JSON.stringify({ proof, publicSignals: publics }, null, 1));
} catch (e) {
  console.error(`prove.js: ${e.message}`);
  process.exitCode = 1;
} finally {
  await nc.close();
  process.exit(); // snarkjs keeps threads
}
