// node discover.js SERVER NAME…: asks on $SRV with the official client, all, by name and by instance; one JSON line for each of the names
// that is there, after at most 20 s of waiting for all of them. Throws when two answers of one instance do not fit together.
import { connect } from "@nats-io/transport-node";
import { Svcm } from "@nats-io/services";

const [server, ...names] = process.argv.slice(2);
const nc = await connect({ servers: server });
const client = new Svcm(nc).client({ strategy: "stall", maxWait: 2000 });

async function gather(answers) {
  const list = [];
  for await (const one of await answers) list.push(one);
  return list;
}
function must(fine, what, value) {
  if (!fine) throw new Error(`${what}: ${JSON.stringify(value)}`);
}
function onlyOf(list, kind, id) {
  must(list.length === 1 && list[0].type === `io.nats.micro.v1.${kind}_response` && list[0].id === id, kind, list);
  return list[0];
}
try {
  let all = [];
  for (const until = Date.now() + 20000; Date.now() < until;) {
    all = await gather(client.ping());
    if (names.every((name) => all.some((one) => one.name === name))) break;
  }
  for (const name of names) {
    const named = await gather(client.ping(name));
    must(named.length > 0 && named.every((one) => one.name === name), "ping by name", named);
    must(named.every((one) => all.some((other) => other.id === one.id)), "ping of all", all);
    const { id } = named[0];
    const ping = onlyOf(await gather(client.ping(name, id)), "ping", id);
    const info = onlyOf(await gather(client.info(name, id)), "info", id);
    const stats = onlyOf(await gather(client.stats(name, id)), "stats", id);
    must(info.version === ping.version && stats.version === ping.version, "version", info);
    must(!Number.isNaN(Date.parse(stats.started)), "started", stats);
    must(info.endpoints.length === stats.endpoints.length, "endpoints", stats);
    must((await gather(client.info(name))).length >= 1 && (await gather(client.stats())).length >= 1, "others", name);
    console.log(JSON.stringify({ name, instances: named.length, version: info.version, metadata: info.metadata,
      description: info.description, subjects: info.endpoints.map((e) => e.subject),
      requests: stats.endpoints.map((e) => e.num_requests), data: stats.endpoints[0]?.data }));
  }
} finally {
  await nc.close();
}
