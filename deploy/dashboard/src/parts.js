// Pieces that several views show.
import { h, setAttribute, setText } from "./dom.js";

export const link = {
  lane: (lane) => `#/device/${encodeURIComponent(lane.node)}/${lane.gpu}`,
  find: (word) => `#/find/${encodeURIComponent(word)}`,
  job: ({ tenant, id }) => `#/job/${encodeURIComponent(tenant)}/${encodeURIComponent(id)}`,
};

// A figure with a name, and a remark below it: {node, update(value, remark, tone)}; tone "bad" or "warn" colours it.
export function tile(name) {
  const value = h("dd"),
    remark = h("dd", { class: "remark" });
  const node = h("div", { class: "tile" }, h("dt", null, name), value, remark);
  return {
    node,
    update(text, more = "", tone = "") {
      setText(value, text);
      setText(remark, more);
      setAttribute(node, "data-tone", tone);
    },
  };
}

export function tiles(names) {
  const made = Object.fromEntries(Object.entries(names).map(([name, title]) => [name, tile(title)]));
  return {
    node: h(
      "dl",
      { class: "tiles" },
      Object.values(made).map((t) => t.node),
    ),
    ...made,
  };
}

// A state as a word with a sign before it, so that colour is not needed to read it.
const SIGNS = {
  done: "✓",
  ready: "✓",
  running: "▶",
  placed: "◷",
  queued: "◷",
  starting: "◷",
  failed: "✕",
  dead: "✕",
  fenced: "✕",
  cancelled: "–",
  expired: "–",
  draining: "–",
  stopped: "–",
  silent: "?",
};
export function badge(node, state) {
  setText(node, `${SIGNS[state] ?? "·"} ${state}`);
  setAttribute(node, "class", `badge state-${state}`);
}

export function section(title, ...children) {
  return h("section", null, h("h2", null, title), ...children);
}

// A link in a table's cell: the cell gets it once, update() changes it.
export function linkCell(hrefOf, textOf) {
  return {
    make: () => h("a"),
    update(cell, item) {
      const href = hrefOf(item);
      setAttribute(cell.firstChild, "href", href);
      setText(cell.firstChild, textOf(item));
    },
  };
}

export function badgeCell(stateOf) {
  return { make: () => h("span"), update: (cell, item) => badge(cell.firstChild, stateOf(item)) };
}
