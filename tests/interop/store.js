// node store.js SERVER obj-put BUCKET NAME FILE | obj-get BUCKET NAME FILE | kv-put BUCKET KEY TEXT | kv-get BUCKET KEY |
//               kv-make BUCKET | obj-make BUCKET
// One operation with the official clients' own key-value and object stores.
import { webcrypto } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "@nats-io/transport-node";
import { Kvm } from "@nats-io/kv";
import { Objm } from "@nats-io/obj";

globalThis.crypto ??= webcrypto; // Debian 12's Node has it under that name only, the object store wants it here

const [server, what, bucket, name, value] = process.argv.slice(2);
const nc = await connect({ servers: server });
const text = new TextDecoder();
const verbs = {
  "obj-make": async () => { await new Objm(nc).create(bucket); },
  "obj-put": async () => {
    const info = await (await new Objm(nc).open(bucket)).putBlob({ name }, readFileSync(value));
    console.log(`${info.nuid} ${info.size} ${info.chunks} ${info.digest}`);
  },
  "obj-get": async () => {
    const bytes = await (await new Objm(nc).open(bucket)).getBlob(name);
    if (bytes === null) throw new Error("no such object");
    writeFileSync(value, bytes);
  },
  "kv-make": async () => { await new Kvm(nc).create(bucket); },
  "kv-put": async () => { console.log(await (await new Kvm(nc).open(bucket)).put(name, value)); },
  "kv-get": async () => {
    const entry = await (await new Kvm(nc).open(bucket)).get(name);
    console.log(entry && entry.operation === "PUT" ? `${entry.revision} ${text.decode(entry.value)}` : "none");
  },
};
try {
  await verbs[what]();
} finally {
  await nc.close();
}
