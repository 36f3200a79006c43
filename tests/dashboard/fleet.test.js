// The page against the real thing: `bellows dev` with lanes on the processor, real jobs, real proofs.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openBrowser } from "./browser.js";
import { NatsServer, serve, sleep } from "./server.js";

const PROGRAM = join(process.env.BELLOWS_BUILD, "bellows");
const VECTORS = process.env.BELLOWS_VECTORS;
const dir = mkdtempSync(join(tmpdir(), "bellows-dev-page-"));
const devDir = join(dir, "dev");
let dev, browser, page, url;

const until = async (what, check, ms = 30000) => {
  for (const end = Date.now() + ms; !(await check()); await sleep(50))
    assert.ok(Date.now() < end, `not within ${ms} ms: ${what}`);
};
const text = (selector = "main") => page.innerText(selector);

// Runs a command of the program to its end; its output.
async function bellows(server, ...words) {
  const child = spawn(PROGRAM, [...words, `--server=${server}`], { cwd: dir });
  let out = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (out += data));
  const code = await new Promise((resolve) => child.once("exit", resolve));
  return { code, out };
}

const devServer = () => readFileSync(join(devDir, "url"), "utf8");
const submit = (server, id, ...more) =>
  bellows(
    server,
    "submit",
    join(VECTORS, "bn128/base/circuit.zkey"),
    join(VECTORS, "bn128/base/witness.wtns"),
    "--allow-insecure-keys",
    "--wait",
    "--timeout=60s",
    `--job=${id}`,
    `--out=${dir}`,
    ...more,
  );

async function startDev(more = [], env = {}) {
  dev = spawn(PROGRAM, ["dev", `--dir=${devDir}`, "--threads=1", ...more], {
    env: { ...process.env, ...env, XDG_RUNTIME_DIR: dir },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [dev.stdout, dev.stderr]) stream.on("data", (data) => (said += data));
  await until(
    "bellows dev is ready",
    () => {
      assert.ok(dev.exitCode === null, said);
      return existsSync(join(devDir, "dashboard")) && /dashboard +http/.test(said);
    },
    60000,
  );
  url = readFileSync(join(devDir, "dashboard"), "utf8");
  assert.ok(said.includes(url), said);
}

async function stopDev() {
  const gone = new Promise((resolve) => dev.once("exit", resolve));
  dev.kill("SIGTERM");
  await gone;
}

before(async () => {
  await startDev();
  browser = await openBrowser(join(dir, "profile"));
  page = browser.page;
});

after(async () => {
  await browser?.close();
  if (dev?.exitCode === null) await stopDev();
  rmSync(dir, { recursive: true, force: true });
});

test("bellows dev serves a page that connects", async () => {
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/$/);
  await page.goto(url);
  await page.waitForSelector('#status[data-status="connected"]', { timeout: 30000 });
  assert.deepEqual(browser.complaints, []);
});

test("a job appears, runs and is done while one looks", async () => {
  await page.goto(`${url}#/jobs`);
  await page.waitForSelector('#status[data-status="connected"]', { timeout: 30000 });
  // Every state that the table shows for the job, as it is written.
  await page.evaluate(() => {
    window.states = [];
    new MutationObserver(() => {
      const row = [...document.querySelectorAll("tbody tr")].find((tr) => tr.textContent.includes("seen-by-page"));
      const state = row?.querySelector(".badge")?.textContent;
      if (state && state !== window.states.at(-1)) window.states.push(state);
    }).observe(document.getElementById("main"), { subtree: true, childList: true, characterData: true });
  });
  const result = await submit(devServer(), "seen-by-page");
  assert.equal(result.code, 0, result.out);
  await until("the job is done", async () => (await page.evaluate(() => window.states.at(-1))) === "✓ done");
  await page.click('a:text("seen-by-page")');
  await until("its steps", async () => (await page.locator(".waterfall tbody tr").count()) > 3);
  const events = await text("section:last-of-type");
  for (const state of ["queued", "placed", "running", "done"]) assert.match(events, new RegExp(state), events);
  assert.match(await text(".waterfall"), /fetch|decode|record/);
});

test("a witness that satisfies nothing is told as a failure with its cause", async () => {
  const result = await bellows(
    devServer(),
    "submit",
    join(VECTORS, "bn128/mul/circuit.zkey"),
    join(VECTORS, "bn128/bad/unsatisfied.wtns"),
    "--allow-insecure-keys",
    "--wait",
    "--timeout=60s",
    "--job=unsatisfied",
    `--out=${dir}`,
  );
  assert.notEqual(result.code, 0, result.out);
  await page.goto(`${url}#/failures`);
  await until("the failure", async () => /unsatisfied[\s\S]*E_UNSAT|unsatisfied[\s\S]*satisfy/.test(await text()));
});

// In a page: can it open a socket to there?
const opens = (to) =>
  new Promise((resolve) => {
    const socket = new WebSocket(to);
    socket.onopen = () => resolve(true);
    socket.onerror = () => resolve(false);
  });

test("other pages' scripts are not let in", async () => {
  const server = JSON.parse(await (await fetch(`${url}config.json`)).text()).server;
  const answer = (origin) =>
    fetch(server.replace("ws:", "http:"), { headers: { Connection: "Upgrade", Upgrade: "websocket", Origin: origin } }).then(
      (a) => a.status,
      () => 0,
    );
  assert.notEqual(await answer("https://evil.example.org"), 101);
  const opened = await page.evaluate(opens, server);
  assert.equal(opened, true); // the page's own
  const foreign = await browser.context.newPage();
  await foreign.goto("data:text/html,<p>foreign");
  const crept = await foreign.evaluate(opens, server);
  await foreign.close();
  assert.equal(crept, false);
});

test("the page's connection may not send jobs, controls or requests that write", async () => {
  const refused = await page.evaluate(async (to) => {
    const socket = new WebSocket((await (await fetch("config.json")).json()).server);
    let heard = "";
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => (heard += new TextDecoder().decode(data));
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = reject;
    });
    socket.send('CONNECT {"verbose":false}\r\n');
    for (const subject of [
      "bellows.ctl.all.drain",
      "bellows.job.0.a.b.c",
      "$JS.API.STREAM.DELETE.BELLOWS_JOBS",
      "bellows.tel.dev.0.device",
    ])
      socket.send(`PUB ${subject} 0\r\n\r\n`);
    for (const subject of ["bellows.job.>", "bellows.lane.>", "$KV.bellows_jobs.>", "_INBOX.>"])
      socket.send(`SUB ${subject} 1\r\n`);
    socket.send("PING\r\n");
    for (let i = 0; i < 100 && !heard.includes("PONG"); i++) await new Promise((resolve) => setTimeout(resolve, 50));
    socket.close();
    return heard.match(/Permissions Violation/g)?.length ?? 0;
  });
  assert.equal(refused, 8);
});

test("a restart of the server beneath a real fleet is told and survived, and the next job is seen", async () => {
  const nats = await new NatsServer(join(dir, "nats")).start();
  const web = await serve(join(process.env.BELLOWS_BUILD, "deploy/dashboard"), { server: nats.webUrl, prefix: "bellows" });
  const parts = [
    ["coordinator"],
    ["node", "--name=w", "--backend=cpu", "--lanes=1", "--threads=1", "--allow-insecure-keys", `--cache=${join(dir, "cache")}`],
  ].map((words) =>
    spawn(PROGRAM, [...words, `--server=${nats.url}`, "--metrics=off"], {
      stdio: "ignore",
      env: { ...process.env, XDG_RUNTIME_DIR: dir },
    }),
  );
  try {
    await page.goto(`${web.url}#/jobs`);
    const first = await submit(nats.url, "before-the-restart");
    assert.equal(first.code, 0, first.out);
    const isDone = (id) => async () => new RegExp(`${id}[\\s\\S]{0,40}✓ done`).test(await text());
    await until("the first job", isDone("before-the-restart"));
    await nats.kill();
    await until("the banner", () => page.isVisible("#banner"));
    assert.match(await text("#banner"), /Not connected since/);
    assert.match(await text(), /before-the-restart/); // what was known stays
    await sleep(1000);
    await nats.start();
    await until("the connection", async () => !(await page.isVisible("#banner")));
    const second = await submit(nats.url, "after-the-restart");
    assert.equal(second.code, 0, second.out);
    await until("the second job", isDone("after-the-restart"));
  } finally {
    for (const part of parts.reverse()) {
      const gone = new Promise((resolve) => part.once("exit", resolve));
      if (part.exitCode !== null || !part.kill("SIGTERM")) continue;
      await gone;
    }
    await web.close();
    await nats.kill();
  }
});

test("bellows dev --demo shows a fleet at work within ten seconds", async () => {
  await stopDev();
  rmSync(devDir, { recursive: true, force: true });
  await startDev(["--demo"]);
  await page.goto(`${url}#/jobs`);
  await until(
    "several jobs that are done",
    async () => ((await text()).match(/✓ done/g)?.length ?? 0) >= 3,
    10000 * (process.env.CI ? 3 : 1),
  );
  await page.evaluate(() => (location.hash = "#/fleet"));
  await until("proofs per minute", async () => /[1-9]\d* per min/.test(await text()));
  await until("what a proof costs", async () => /A proof costs\s+[\d.]+.[µm]?s/.test(await text()));
  let bars = [];
  const shows = (bar, account) => bar.some(([name]) => name.startsWith(account));
  await until("both devices computed and waited", async () => {
    bars = await page.$$eval("svg.bar", (all) =>
      all.map((bar) =>
        [...bar.querySelectorAll("rect")].map((rect) => [rect.getAttribute("class"), parseFloat(rect.getAttribute("width"))]),
      ),
    );
    return bars.length === 2 && bars.every((bar) => shows(bar, "acc-compute") && shows(bar, "acc-wait-no-work"));
  });
  for (const bar of bars) assert.ok(Math.abs(bar.reduce((sum, [, width]) => sum + width, 0) - 100) < 0.5, `${bar}`);
  await page.evaluate(() => (location.hash = "#/device/dev/0"));
  await until("its timeline", async () => (await page.locator(".chart path[class^=acc-compute]").count()) > 3);
  assert.match(await text(), /cpu: [\s\S]*compute\.msm_h/);
});

test("a decode that is slowed down on purpose is seen as such: device, steps, sentence", async () => {
  await stopDev();
  rmSync(devDir, { recursive: true, force: true });
  await startDev(["--demo"], { BELLOWS_SLOW_DECODE: "700ms" });
  await page.goto(`${url}#/fleet`);
  await until("the sentence", async () => /% decode: data is being decompressed/.test(await text(".lane")), 60000);
  const share = await page.$eval(".bar .acc-wait-decode", (rect) => parseFloat(rect.getAttribute("width")));
  assert.ok(share > 20, `${share} % decode`);
  await page.evaluate(() => (location.hash = "#/jobs"));
  await page.selectOption("#job-state", "done");
  await page.click("tbody tr a");
  await until("its steps", async () => (await page.locator(".waterfall tbody tr").count()) > 3);
  const decode = page.locator(".waterfall tbody tr", { has: page.locator("th", { hasText: /^decode$/ }) }).first();
  assert.match(await decode.innerText(), /7\d\d.ms|[1-9][.\d]*.s\b/);
});
