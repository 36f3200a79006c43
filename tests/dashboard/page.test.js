// The page in Chromium, fed by a fleet that is played over a real server, with no more rights than a dashboard has in production.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect } from "@nats-io/transport-node";
import { openBrowser } from "./browser.js";
import { encoder } from "./encode.js";
import { NatsServer, serve, sleep } from "./server.js";
import { makeStreams, play } from "./synthetic.js";

const PAGE = join(process.env.BELLOWS_BUILD, "deploy/dashboard");
const encode = encoder(join(PAGE, "fleet.binpb"));
const dir = mkdtempSync(join(tmpdir(), "bellows-page-"));
// The page's own user may listen and read, and nothing else.
const RIGHTS = `, no_auth_user: dashboard }
authorization { users: [
  { user: fleet, password: fleet }
  { user: dashboard, password: dashboard, permissions: {
    publish: ["$JS.API.DIRECT.GET.BELLOWS_TEL", "$JS.API.DIRECT.GET.KV_bellows_lanes"], subscribe: ["bellows.tel.>", "bellows.evt.>", "_INBOX.dashboard.>"] } }
] }
no_auth_user: fleet
# `;
const nats = new NatsServer(join(dir, "nats"), RIGHTS);
let fleet, web, browser, page;

const open = async (hash = "#/fleet") => {
  await page.goto("about:blank");
  await page.goto(web.url + hash);
  await page.waitForSelector('#status[data-status="connected"]', { timeout: 30000 });
  await sleep(1200);
};
const show = async (hash) => {
  await page.evaluate((to) => (location.hash = to), hash);
  await sleep(300);
};
const text = (selector = "main") => page.innerText(selector);
const until = async (what, check, ms = 20000) => {
  for (const end = Date.now() + ms; !(await check()); await sleep(100))
    assert.ok(Date.now() < end, `not within ${ms} ms: ${what}`);
};

before(async () => {
  await nats.start();
  fleet = await play(nats.url, encode, { seconds: 600 });
  web = await serve(PAGE, { server: nats.webUrl, prefix: "bellows" });
  browser = await openBrowser(join(dir, "profile"));
  page = browser.page;
});

after(async () => {
  await browser?.close();
  await web?.close();
  await fleet?.stop();
  await nats.kill();
  rmSync(dir, { recursive: true, force: true });
});

test("a page that comes late shows every lane and its past, with a dashboard's rights only", async () => {
  await open();
  for (const name of ["gpu-host-1", "gpu-host-2", "small-box-with-a-long-name"]) assert.ok((await text()).includes(name), name);
  assert.equal(await page.locator(".lane").count(), 5);
  assert.match(await text(), /fenced/);
  assert.match(await text(), /decode: data is being decompressed/);
  await show("#/device/gpu-host-1/1");
  const columns = await page.locator("path.acc-wait-decode").getAttribute("d");
  assert.ok(columns.split("M").length > 50, `${columns.split("M").length} columns of ten minutes`);
  await show("#/plots");
  await until("bars of proofs", async () => ((await page.locator("path.column").getAttribute("d")) ?? "").split("M").length > 30);
  assert.deepEqual(browser.complaints, []);
});

test("the bar of the last minute sums to the whole", async () => {
  await open();
  const sums = await page.$$eval("svg.bar", (bars) =>
    bars.map((bar) => [...bar.querySelectorAll("rect")].reduce((sum, rect) => sum + parseFloat(rect.getAttribute("width")), 0)),
  );
  assert.equal(sums.length, 5);
  for (const sum of sums) assert.ok(Math.abs(sum - 100) < 0.5, `${sum} %`);
});

test("a job is found, and its page has its steps with bytes and rates", async () => {
  await open("#/jobs");
  await page.fill("#job-search", "order-00100");
  await until("the one job", async () => (await page.locator("tbody tr").count()) === 1);
  await page.click("tbody tr a");
  await until("its waterfall", async () => (await page.locator(".waterfall tbody tr").count()) >= 12);
  const fetch = await text(".waterfall tbody tr:nth-child(2)");
  assert.match(fetch, /fetch[\s\S]*810.MB[\s\S]*GB\/s[\s\S]*network/);
  assert.match(await text(), /Device time/);
  const inside = await page.$$eval(".fill", (fills) =>
    fills.every((fill) => fill.getBoundingClientRect().right <= fill.parentElement.getBoundingClientRect().right + 2),
  );
  assert.ok(inside);
});

test("a queue leads to the jobs of its key", async () => {
  await open();
  const link = page.locator("section", { has: page.locator("h2", { hasText: "Queues" }) }).locator("tbody a").first();
  const key = await link.innerText();
  await link.click();
  await until("its jobs", async () => (await page.locator("tbody tr").count()) > 3);
  assert.equal(await page.inputValue("#job-search"), key);
  const keys = await page.$$eval("tbody td[data-title=Key]", (cells) => cells.map((cell) => cell.textContent));
  assert.deepEqual([...new Set(keys)], [key]);
});

test("cost and failures are told with their cause", async () => {
  await open("#/cost");
  assert.match(await text(), /cuda: NVIDIA H200[\s\S]*J/);
  await show("#/failures");
  assert.match(await text(), /E_UNSAT/);
  assert.match(await text(), /⚠ alarm[\s\S]*E_DEVICE[\s\S]*self-check/);
});

test("text from messages is text, never a part of the page", async () => {
  await open("#/failures");
  const trap = '<img src=x onerror="window.trapped=1"><script>window.trapped=1</script>';
  fleet.fleet.send("tel.gpu-host-1.0.error", "ErrorReport", {
    version: 1,
    node: "gpu-host-1",
    gpu: 0,
    session: "s1",
    atUnixMs: Date.now(),
    name: trap,
    detail: trap,
    alarm: true,
  });
  await until("the report", async () => (await text()).includes("onerror"));
  assert.equal(await page.locator("main img, main script").count(), 0);
  assert.equal(await page.evaluate(() => window.trapped), undefined);
  await show("#/job/%3Cb%3E/%3Cimg%20src=x%3E");
  assert.ok((await text("h1")).includes("<img src=x>"));
});

test("messages that are none are left out, the rest goes on", async () => {
  await open();
  for (const bytes of [[255, 255, 255], [8], Array(2000).fill(7)])
    fleet.connection.publish("bellows.tel.gpu-host-1.0.device", new Uint8Array(bytes));
  fleet.connection.publish("bellows.tel.x", new Uint8Array([1]));
  fleet.connection.publish("bellows.tel.a.b.device", new Uint8Array([1]));
  await sleep(2500);
  assert.equal(await page.locator(".lane").count(), 5);
  assert.match(await text("#status"), /live/);
});

test("an address that leads nowhere shows the fleet", async () => {
  await open("#/%E0%A4%A/x");
  assert.equal(await text("h1"), "Fleet");
  await show("#/constructor");
  assert.equal(await text("h1"), "Fleet");
});

test("every view fits a phone and a wide screen, in light and dark", async () => {
  await open();
  for (const [width, scheme] of [
    [375, "dark"],
    [375, "light"],
    [768, "light"],
    [1600, "dark"],
  ]) {
    await page.setViewportSize({ width, height: 812 });
    await page.emulateMedia({ colorScheme: scheme });
    for (const view of [
      "#/fleet",
      "#/device/small-box-with-a-long-name/0",
      "#/jobs",
      "#/job/acme/order-00102",
      "#/plots",
      "#/cost",
      "#/failures",
    ]) {
      await show(view);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${view} at ${width}: ${over} pixels too wide`);
    }
    const [ground, ink] = await page.evaluate(() =>
      [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color].map((c) =>
        c
          .match(/\d+/g)
          .slice(0, 3)
          .reduce((a, b) => a + Number(b), 0),
      ),
    );
    assert.ok(scheme === "dark" ? ground < 150 && ink > 600 : ground > 600 && ink < 150, `${scheme}: ${ground} ${ink}`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
});

test("everything is reached with the keyboard", async () => {
  await open();
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
  await page.keyboard.press("Tab");
  assert.match(await focused(), /Skip/);
  for (let i = 0; i < 4; i++) await page.keyboard.press("Tab");
  assert.equal(await focused(), "Plots");
  await page.keyboard.press("Enter");
  await until("the plots", async () => (await text("h1")) === "Plots");
  assert.equal(await focused(), "Plots"); // the heading
  for (let i = 0; i < 3 && (await page.evaluate(() => document.activeElement.tagName)) !== "svg"; i++)
    await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowLeft");
  assert.match(await text("figure .readout"), /^\d\d:\d\d:\d\d: /);
});

test("a restart of the server is told, survived and caught up", async () => {
  await open();
  await fleet.stop();
  await nats.kill();
  await until("the banner", () => page.isVisible("#banner"));
  assert.match(await text("#banner"), /^Not connected since \d\d:\d\d:\d\d/);
  assert.match(await text("#status"), /not connected/);
  await nats.start();
  fleet = await play(nats.url, encode, { seconds: 30 });
  await until("the connection", async () => (await text("#status")) === "live", 30000);
  assert.equal(await page.isVisible("#banner"), false);
  await show("#/jobs");
  await page.fill("#job-search", "order-00003"); // from the half minute that was played before the page was back
  await until("what was missed", async () => (await page.locator("tbody tr").count()) >= 1);
});

test("lanes that are silent are shown as such, also to a page that comes late", async () => {
  await fleet.stop();
  await sleep(6500);
  await open();
  await until("five silent lanes", async () => (await page.locator(".lane[data-silent]").count()) === 5);
  assert.match(await text(), /Not heard for/);
});

test("where the server asks for a user and a password, so does the page", async () => {
  const asking = new NatsServer(join(dir, "asking"), RIGHTS.replace(", no_auth_user: dashboard", "").replace("\nno_auth_user: fleet", ""));
  await asking.start();
  const site = await serve(PAGE, { server: asking.webUrl, prefix: "bellows" });
  const login = async (password) => {
    await page.fill("#who input[name=user]", "dashboard");
    await page.fill("#who input[name=password]", password);
    await page.click("#who button");
  };
  try {
    await page.goto("about:blank");
    await page.goto(site.url);
    await until("the question", () => page.isVisible("#who"));
    assert.match(await text("#banner"), /does not let this page in/);
    await login("guessed");
    await until("the question again", () => page.isVisible("#who"));
    await login("dashboard");
    await until("the connection", async () => (await text("#status")) === "live");
    assert.equal(await page.isVisible("#who"), false);
    assert.equal(await page.isVisible("#banner"), false);
    assert.equal(await page.inputValue("#who input[name=password]"), "");
    const worker = await connect({ servers: asking.url, user: "fleet", pass: "fleet" });
    worker.publish(
      "bellows.tel.behind-a-login.0.lane",
      encode("LaneReport", { version: 1, node: "behind-a-login", gpu: 0, session: "a", atUnixMs: Date.now(), state: 2, depthMax: 4 }),
    );
    await until("what it hears", async () => /behind-a-login/.test(await text()));
    await worker.close();
  } finally {
    await site.close();
    await asking.kill();
  }
});

test("a fleet that is not there yet is waited for", async () => {
  await nats.kill();
  rmSync(join(dir, "nats", "store"), { recursive: true, force: true });
  await nats.start();
  await page.goto("about:blank");
  await page.goto(web.url);
  await until("words for an empty fleet", async () => /No device has been heard of yet/.test(await text()));
  const connection = await connect({ servers: nats.url });
  await makeStreams(connection);
  connection.publish(
    "bellows.tel.new-host.0.lane",
    encode("LaneReport", { version: 1, node: "new-host", gpu: 0, session: "a", atUnixMs: Date.now(), state: 1, depthMax: 4 }),
  );
  await until("its first lane", async () => /new-host[\s\S]*starting/.test(await text()));
  await connection.close();
});
