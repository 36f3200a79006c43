// Search for a job, by any part of its name, tenant, key or state.
import { h, table } from "./dom.js";
import { ago, duration, key } from "./format.js";
import { JOB_STATES } from "./model.js";
import { badgeCell, link, linkCell, section } from "./parts.js";

const SHOWN_MAX = 100;

// `word`: what is looked for at first.
export function jobsView(root, model, [word = ""] = []) {
  const search = h("input", {
    type: "search",
    id: "job-search",
    autocomplete: "off",
    spellcheck: "false",
    value: word,
    placeholder: "job, tenant, label, key, node",
  });
  const state = h(
    "select",
    { id: "job-state" },
    h("option", { value: "" }, "any"),
    JOB_STATES.slice(1).map((word) => h("option", { value: word }, word)),
  );
  const note = h("p", { class: "remark", role: "status" });
  const list = table(
    "Jobs",
    [
      { title: "Job", class: "code", ...linkCell(link.job, (j) => j.id) },
      { title: "State", ...badgeCell((j) => model.stateOf(j)) },
      { title: "Tenant", text: (j) => j.tenant },
      { title: "Label", text: (j) => j.told?.label || "–" },
      { title: "Key", class: "code", text: (j) => key(j.keyDigest) },
      { title: "Where", text: (j) => placesOf(j).join(", ") || "–" },
      { title: "Device time", class: "number", text: (j) => (j.cost.deviceNs ? duration(j.cost.deviceNs) : "–") },
      { title: "In the fleet", class: "number", text: (j) => duration((j.lastMs - j.firstMs) * 1e6) },
      { title: "Changed", class: "number", text: (j) => ago(j.lastMs, model.now()) },
    ],
    (j) => j.name,
    "No job like that in the last quarter of an hour. `bellows status JOB` knows older ones.",
  );
  root.append(
    h(
      "form",
      { class: "search", role: "search", onsubmit: (e) => e.preventDefault() },
      h("label", { for: "job-search" }, "Find ", search),
      h("label", { for: "job-state" }, "State ", state),
    ),
    section("Jobs, last changed first", note, list.node),
  );
  const update = () => {
    const found = findJobs(model, search.value, state.value);
    note.textContent = found.length > SHOWN_MAX ? `${SHOWN_MAX} of ${found.length} shown` : `${found.length} found`;
    list.update(found.slice(0, SHOWN_MAX));
  };
  search.addEventListener("input", update);
  state.addEventListener("change", update);
  return { update };
}

function placesOf(job) {
  const places = new Set();
  for (const r of job.reports) places.add(`${r.node}.${r.gpu}`);
  for (const e of job.events) if (e.node) places.add(`${e.node}.${e.gpu}`);
  return [...places];
}

export function findJobs(model, words, state) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const out = [];
  for (const job of model.jobs.values()) {
    if (state && model.stateOf(job) !== state) continue;
    const text = [job.name, job.told?.label, job.keyDigest, model.stateOf(job), ...placesOf(job)].join(" ").toLowerCase();
    if (wanted.every((word) => text.includes(word))) out.push(job);
  }
  return out.sort((a, b) => b.lastMs - a.lastMs);
}
