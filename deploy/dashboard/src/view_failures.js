// What failed in the last quarter of an hour, with its cause; alarms first to the eye.
import { causeOf } from "./causes.js";
import { h, setAttribute, setText, table } from "./dom.js";
import { failures } from "./figures.js";
import { clock } from "./format.js";
import { link, section } from "./parts.js";

const SHOWN_MAX = 100;

export function failuresView(root, model) {
  const jobCell = (cell, f) => {
    const anchor = cell.firstChild;
    anchor.hidden = !f.jobId;
    setAttribute(anchor, "href", f.jobId ? link.job({ tenant: f.tenant, id: f.jobId }) : null);
    setText(anchor, f.jobId);
  };
  const list = table(
    "Failures",
    [
      { title: "Time", class: "time", text: (f) => clock(f.at) },
      {
        title: "What",
        make: () => h("span"),
        update: (cell, f) => {
          setText(cell.firstChild, f.alarm ? `⚠ alarm: ${f.what}` : f.what);
          setAttribute(cell.firstChild, "class", f.alarm ? "badge state-failed" : "");
        },
      },
      { title: "Code", class: "code", text: (f) => f.name || "–" },
      { title: "Job", class: "code", make: () => h("a"), update: jobCell },
      { title: "Device", text: (f) => f.place || "–" },
      { title: "Cause", class: "wide", text: (f) => [f.detail, causeOf(f.name)].filter(Boolean).join(" — ") || "–" },
    ],
    (f) => f.key,
    "Nothing failed in the last quarter of an hour.",
  );
  root.append(section("Failures, newest first", list.node));
  return { update: () => list.update(failures(model.errors.items, model.spans.items, model.jobs.values(), SHOWN_MAX)) };
}
