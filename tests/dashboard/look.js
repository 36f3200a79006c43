// Screenshots of every view for the eye: node look.js PAGE DESCRIPTOR_SET OUT. Light and dark, phone and wide.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { openBrowser } from "./browser.js";
import { encoder } from "./encode.js";
import { NatsServer, serve, sleep } from "./server.js";
import { play } from "./synthetic.js";

const [page, descriptorSet, out] = process.argv.slice(2).map((word) => resolve(word));
const dir = mkdtempSync(join(tmpdir(), "bellows-look-"));
mkdirSync(out, { recursive: true });
const nats = await new NatsServer(dir).start();
const fleet = await play(nats.url, encoder(descriptorSet));
const web = await serve(page, { server: nats.webUrl, prefix: "bellows" });
try {
  for (const [name, options] of Object.entries({
    "wide-light": { width: 1600, height: 1000 },
    "phone-dark": { width: 375, height: 812, scheme: "dark", mobile: true },
    "phone-light": { width: 375, height: 812, mobile: true },
    "wide-dark": { width: 1600, height: 1000, scheme: "dark" },
  })) {
    const browser = await openBrowser(join(dir, name), options);
    await browser.page.goto(web.url);
    await browser.page.waitForSelector('#status[data-status="connected"]', { timeout: 20000 });
    await sleep(1500);
    await browser.page.evaluate(() => (location.hash = "#/jobs"));
    await browser.page.waitForSelector("td a");
    await sleep(1200);
    const href = await browser.page.$$eval("tbody tr", (rows) =>
      rows
        .find((row) => /done/.test(row.textContent))
        .querySelector("a")
        .getAttribute("href"),
    );
    for (const view of ["#/fleet", "#/device/gpu-host-1/1", "#/jobs", href, "#/plots", "#/cost", "#/failures"]) {
      await browser.page.evaluate((hash) => (location.hash = hash), view);
      await sleep(1300);
      const wide = await browser.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) console.log(`${name} ${view}: ${wide} pixels too wide`);
      await browser.page.screenshot({ path: join(out, `${name}-${view.split("/")[1]}.png`), fullPage: true });
    }
    if (browser.complaints.length) console.log(name, browser.complaints);
    await browser.close();
  }
} finally {
  await web.close();
  await fleet.stop();
  await nats.kill();
  rmSync(dir, { recursive: true, force: true });
}
