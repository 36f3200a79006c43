// The page: settings, connection, one view at a time. Views are functions (root, model, words of the address) → {update}; update() is called once a
// second and after a change of view, and writes only what changed.
import descriptorSet from "fleet.binpb";
import { patterns } from "./chart.js";
import { h, setAttribute, setText } from "./dom.js";
import { clock } from "./format.js";
import { Link } from "./link.js";
import { Model } from "./model.js";
import { deviceView } from "./view_device.js";
import { failuresView } from "./view_failures.js";
import { fleetView } from "./view_fleet.js";
import { jobView } from "./view_job.js";
import { jobsView } from "./view_jobs.js";
import { costView, plotsView } from "./view_plots.js";
import { decoder } from "./wire.js";

const UPDATE_MS = 1000;
const FORGET_MS = 30000;

const VIEWS = {
  fleet: { title: () => "Fleet", make: fleetView, words: 0 },
  jobs: { title: () => "Jobs", make: jobsView, words: 0 },
  plots: { title: () => "Plots", make: plotsView, words: 0 },
  cost: { title: () => "Cost", make: costView, words: 0 },
  failures: { title: () => "Failures", make: failuresView, words: 0 },
  device: { title: ([node, gpu]) => `Device ${node}.${gpu}`, make: deviceView, words: 2, tab: "fleet" },
  find: { title: () => "Jobs", make: jobsView, words: 1, tab: "jobs" },
  job: { title: ([, id]) => `Job ${id}`, make: jobView, words: 2, tab: "jobs" },
};

const model = new Model();
const main = document.getElementById("main");
let view = null,
  link = null,
  lostMs = 0;

// --- Views ---

function wordsOf(hash) {
  try {
    return hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    return [""]; // an address with a broken escape
  }
}

function show(moved) {
  const [name, ...words] = wordsOf(location.hash);
  const found = Object.hasOwn(VIEWS, name) && VIEWS[name].words === words.length ? name : "fleet";
  const { title, make, tab } = VIEWS[found];
  const heading = h("h1", { tabindex: "-1" }, title(words));
  main.replaceChildren(heading);
  document.title = `${title(words)} · Bellows`;
  for (const anchor of document.querySelectorAll("nav a")) {
    setAttribute(anchor, "aria-current", anchor.getAttribute("href") === `#/${tab ?? found}` ? "page" : null);
  }
  view = make(main, model, words);
  update();
  if (moved) {
    heading.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function update() {
  if (!document.hidden) view.update();
}

// --- Connection ---

const status = document.getElementById("status"),
  banner = document.getElementById("banner");

function onStatus(word, detail) {
  if (word === "connected" || word === "reading") lostMs = 0;
  else if (!lostMs) lostMs = Date.now();
  const words = {
    connected: "live",
    reading: "reading the last minutes",
    connecting: "connecting",
    lost: "not connected",
    refused: "refused",
  };
  setText(status, words[word]);
  setAttribute(status, "data-status", word);
  banner.hidden = word === "connected" || word === "reading" || (word === "connecting" && !banner.textContent);
  if (word === "lost")
    setText(
      banner,
      `Not connected since ${clock(lostMs)}. What you see is from before. Trying again${detail ? ` (${detail})` : ""}.`,
    );
  if (word === "refused") {
    setText(banner, `The server does not let this page in: ${detail}.`);
    askWho();
  }
}

function connect(settings) {
  link?.close();
  link = new Link(settings, decoder(descriptorSet), {
    message: (kind, where, m, live) => (kind === "info" ? model.takeInfo(m) : model.take(kind, where, m, live)),
    bad: () => model.bad++,
    status: onStatus,
  });
  link.open();
}

// Asked for only where the server wants it; kept in this page's memory and nowhere else.
function askWho() {
  const form = document.getElementById("who");
  form.hidden = false;
  form.onsubmit = (event) => {
    event.preventDefault();
    form.hidden = true;
    connect({ ...settings, user: form.elements.user.value, password: form.elements.password.value });
    form.elements.password.value = "";
  };
}

let settings = null;

async function start() {
  const answer = await fetch("config.json", { cache: "no-store" });
  if (!answer.ok) throw new Error(`config.json: ${answer.status} ${answer.statusText}`);
  const given = await answer.json();
  settings = { server: String(given.server), prefix: String(given.prefix ?? "bellows"), name: given.name };
  connect(settings);
}

document.body.append(patterns());
document.getElementById("skip").addEventListener("click", () => main.focus());
addEventListener("hashchange", () => show(true));
document.addEventListener("visibilitychange", update);
addEventListener("resize", update);
show(false);
setInterval(update, UPDATE_MS);
setInterval(() => model.forgetOld(), FORGET_MS);
start().catch((error) => {
  banner.hidden = false;
  setText(
    banner,
    `The page does not know its server: ${error.message}. A file config.json beside it says {"server": "wss://HOST:PORT"}.`,
  );
});
