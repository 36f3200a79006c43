// The page in production's setting: the shipped server configuration, TLS on both sides, roles and accounts as `bellows certs` writes them.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect } from "@nats-io/transport-node";
import { openBrowser } from "./browser.js";
import { encoder } from "./encode.js";
import { freePort, natsProgram, serve, sleep } from "./server.js";

const BUILD = process.env.BELLOWS_BUILD;
const dir = mkdtempSync(join(tmpdir(), "bellows-site-"));
const encode = encoder(join(BUILD, "deploy/dashboard/fleet.binpb"));
const children = [];
let web, browser, page, port, webPort;

const until = async (what, check, ms = 30000) => {
  for (const end = Date.now() + ms; !(await check()); await sleep(100))
    assert.ok(Date.now() < end, `not within ${ms} ms: ${what}`);
};

function bellows(...words) {
  const done = spawnSync(join(BUILD, "bellows"), words, { cwd: dir, encoding: "utf8" });
  assert.equal(done.status, 0, done.stdout + done.stderr);
}

function start(program, ...words) {
  const child = spawn(program, words, { cwd: dir, stdio: "ignore" });
  children.push(child);
  return child;
}

const tls = (holder) => ({
  caFile: join(dir, "certs/ca.pem"),
  certFile: join(dir, `certs/${holder}.pem`),
  keyFile: join(dir, `certs/${holder}.key`),
});

before(async () => {
  bellows("certs", "ca", "certs");
  bellows("certs", "server", "certs", "localhost", "127.0.0.1");
  for (const holder of ["coordinator.c1", "worker.w0", "dashboard.wall"]) bellows("certs", "issue", "certs", holder);
  bellows("certs", "accounts", "certs");
  web = await serve(join(BUILD, "deploy/dashboard"), () => ({
    server: `wss://127.0.0.1:${webPort}`,
    prefix: "bellows",
    name: "wall",
  }));
  [port, webPort] = [await freePort(), await freePort()];
  // The shipped files, but for addresses of this machine.
  cpSync(join(process.env.BELLOWS_ROOT, "deploy/nats"), dir, { recursive: true });
  const change = (name, ...pairs) => {
    let text = readFileSync(join(dir, name), "utf8");
    for (const [from, to] of pairs) {
      assert.ok(text.includes(from), `${name} has no ${from}`);
      text = text.replace(from, to);
    }
    writeFileSync(join(dir, name), text);
  };
  change("server.conf", ["0.0.0.0:4222", `127.0.0.1:${port}`], ["/var/lib/bellows/nats", join(dir, "store")]);
  change(
    "websocket.conf",
    ["0.0.0.0:8443", `127.0.0.1:${webPort}`],
    ["https://dashboard.example.org", web.url.replace(/\/$/, "")],
  );
  start(natsProgram(), "-c", join(dir, "dashboard.conf"), "-l", join(dir, "nats.log"));
  await until("the server", () =>
    connect({ servers: `tls://127.0.0.1:${port}`, tls: tls("worker.w0"), inboxPrefix: "_INBOX.worker.w0" }).then(
      (c) => c.close().then(() => true),
      () => false,
    ),
  );
  const { caFile, certFile, keyFile } = tls("coordinator.c1");
  start(
    join(BUILD, "bellows"),
    "coordinator",
    `--server=tls://127.0.0.1:${port}`,
    `--tls-ca=${caFile}`,
    `--tls-cert=${certFile}`,
    `--tls-key=${keyFile}`,
    "--metrics=off",
  );
  browser = await openBrowser(join(dir, "profile"), {
    certificate: {
      origin: `https://127.0.0.1:${webPort}`,
      certPath: tls("dashboard.wall").certFile,
      keyPath: tls("dashboard.wall").keyFile,
    },
  });
  page = browser.page;
});

after(async () => {
  await browser?.close();
  await web?.close();
  for (const child of children) {
    const gone = new Promise((resolve) =>
      child.exitCode === null && child.signalCode === null ? child.once("exit", resolve) : resolve(),
    );
    child.kill("SIGKILL");
    await gone;
  }
  rmSync(dir, { recursive: true, force: true });
});

test("a dashboard's certificate lets the page in, live and with its past", async () => {
  const worker = await connect({ servers: `tls://127.0.0.1:${port}`, tls: tls("worker.w0"), inboxPrefix: "_INBOX.worker.w0" });
  const report = (at, state) =>
    worker.publish(
      "bellows.tel.w0.0.lane",
      encode("LaneReport", { version: 1, node: "w0", gpu: 0, session: "a", atUnixMs: at, state, depthMax: 4 }),
    );
  const span = (id) =>
    worker.publish(
      "bellows.tel.w0.0.span",
      encode("SpanReport", {
        version: 1,
        node: "w0",
        gpu: 0,
        session: "a",
        tenant: "acme",
        jobId: id,
        generation: 1,
        atUnixMs: Date.now(),
        totalNs: 5,
        outcome: "done",
        keyDigest: "ab",
        device: "cpu",
      }),
    );
  // The coordinator makes the stream; until it has, nothing is kept.
  await until(
    "the past is kept and read",
    async () => {
      report(Date.now(), 2);
      span("before-the-page");
      await page.goto("about:blank");
      await page.goto(`${web.url}#/jobs`);
      await page.waitForSelector('#status[data-status="connected"]', { timeout: 30000 });
      await sleep(1200);
      return (await page.innerText("main")).includes("before-the-page");
    },
    60000,
  );
  span("while-looking");
  await until("what comes live", async () => (await page.innerText("main")).includes("while-looking"));
  await page.evaluate(() => (location.hash = "#/fleet"));
  await until("the coordinator's report", async () => /Led by/.test(await page.innerText("main")));
  assert.equal(await page.isVisible("#banner"), false);
  assert.deepEqual(browser.complaints, []);
  await worker.close();
});
