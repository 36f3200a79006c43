// Chromium without a window, from the system's package, with a profile of its own that is gone afterwards.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

export const PROGRAM = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);

// {context, close()}: its pages collect what the console and the page complain of in `complaints`.
export async function openBrowser(profile, { width = 1280, height = 900, scheme = "light", mobile = false, certificate } = {}) {
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: PROGRAM,
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
    viewport: { width, height },
    colorScheme: scheme,
    hasTouch: mobile,
    ...(certificate ? { clientCertificates: [certificate], ignoreHTTPSErrors: true } : {}),
  });
  const complaints = [];
  const page = context.pages()[0] ?? (await context.newPage());
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  return { context, page, complaints, close: () => context.close() };
}
