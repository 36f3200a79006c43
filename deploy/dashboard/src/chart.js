// Charts: stacked bars, stacked columns over time, lines over time. Drawn in pixels of the page as SVG, so that colours and patterns
// come from the style sheet and follow the theme. Each can be read with the keyboard: the arrow keys move the cursor, and
// what it stands on is said in words below.
import { h, keyed, s, setAttribute, setText } from "./dom.js";
import { clock, percent, ticks } from "./format.js";
import { ACCOUNTS, accountOf, shares } from "./ledger.js";

const HEIGHT = 180;
const PAD = { top: 8, right: 4, bottom: 20, left: 48 };

// The class that colours an account, as in app.css.
export const accountClass = (name) => "acc-" + (accountOf(name).group === "unknown" ? "unknown" : name.replace(/[._]/g, "-"));

// The patterns that tell accounts apart without colour; one set for the whole page.
export function patterns() {
  const stripes = (id, turn, width) =>
    s(
      "pattern",
      { id, patternUnits: "userSpaceOnUse", width: 6, height: 6, patternTransform: `rotate(${turn})` },
      s("rect", { width: 6, height: 6, class: "ground" }),
      s("rect", { width, height: 6, class: "stripe" }),
    );
  const dots = (id) =>
    s(
      "pattern",
      { id, patternUnits: "userSpaceOnUse", width: 5, height: 5 },
      s("rect", { width: 5, height: 5, class: "ground" }),
      s("circle", { cx: 2.5, cy: 2.5, r: 1.2, class: "stripe" }),
    );
  return s(
    "svg",
    { class: "patterns", width: 0, height: 0, "aria-hidden": "true" },
    s(
      "defs",
      null,
      stripes("p-running", 45, 2.5),
      stripes("p-decode", 45, 2.5),
      stripes("p-pinned", 0, 2),
      stripes("p-key", -45, 2.5),
      stripes("p-finish", 90, 2),
      dots("p-lock"),
      stripes("p-fenced", 45, 3),
      dots("p-unknown"),
    ),
  );
}

export function swatch(name) {
  return s(
    "svg",
    { class: "swatch", width: 14, height: 14, "aria-hidden": "true" },
    s("rect", { width: "100%", height: "100%", rx: 2, class: accountClass(name) }),
  );
}

// What the colours mean. `names` (an update's argument): only these.
export function legend() {
  const list = h("ul", { class: "legend" });
  const sync = keyed(
    list,
    (account) => ({ node: h("li", { title: account.meaning }, swatch(account.name), account.label) }),
    (a) => a.name,
  );
  return { node: list, update: (names) => sync(ACCOUNTS.filter((a) => names.has(a.name))) };
}

// One bar of a ledger.
export function ledgerBar() {
  const svg = s("svg", { class: "bar", width: "100%", height: 22, role: "img" });
  const sync = keyed(
    svg,
    ({ account }) => {
      const title = s("title");
      const rect = s("rect", { class: accountClass(account.name), height: "100%" }, title);
      return {
        node: rect,
        update({ account: { label }, share, start }) {
          setAttribute(rect, "x", `${(start * 100).toFixed(2)}%`);
          setAttribute(rect, "width", `${(share * 100).toFixed(2)}%`);
          setText(title, `${label}: ${percent(share)}`);
        },
      };
    },
    (part) => part.account.name,
  );
  return {
    node: svg,
    update(spent) {
      let start = 0;
      const parts = shares(spent).map((part) => ({ ...part, start: (start += part.share) - part.share }));
      sync(parts);
      const words = parts.filter((p) => p.share >= 0.005).map((p) => `${p.account.label} ${percent(p.share)}`);
      setAttribute(svg, "aria-label", words.length ? `Last minute: ${words.join(", ")}` : "Nothing heard yet");
    },
  };
}

// What both charts over time share: frame, axes, cursor. draw(area, plot) makes the content, at(share of the width) → text of the readout.
function timeChart(label, { height = HEIGHT } = {}) {
  const shapes = s("g"),
    axes = s("g", { class: "axes" });
  const cursor = s("line", { class: "cursor", y1: PAD.top, visibility: "hidden" });
  const svg = s(
    "svg",
    { class: "chart", height, width: "100%", role: "img", tabindex: 0, "aria-label": label },
    shapes,
    axes,
    cursor,
  );
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const chart = {
    node: h("figure", null, h("figcaption", null, label), svg, readout),
    svg,
    shapes,
    axes,
    height,
    share: null,
    say: () => "",
  };
  const point = (share) => {
    chart.share = share === null ? null : Math.min(1, Math.max(0, share));
    chart.showCursor();
  };
  chart.showCursor = () => {
    const shown = chart.share !== null;
    setAttribute(cursor, "visibility", shown ? "visible" : "hidden");
    if (shown) {
      const x = PAD.left + chart.share * chart.width;
      for (const name of ["x1", "x2"]) setAttribute(cursor, name, x.toFixed(1));
      setAttribute(cursor, "y2", height - PAD.bottom);
    }
    setText(readout, shown ? chart.say(chart.share) : "");
  };
  svg.addEventListener("pointermove", (event) => point((event.offsetX - PAD.left) / chart.width));
  svg.addEventListener("pointerleave", () => point(null));
  svg.addEventListener("blur", () => point(null));
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -0.02, ArrowRight: 0.02, Home: -1, End: 1 }[event.key];
    if (event.key === "Escape") point(null);
    if (!step) return;
    event.preventDefault();
    point((chart.share ?? 1) + step);
  });
  chart.measure = () => {
    chart.width = Math.max(50, svg.clientWidth - PAD.left - PAD.right);
    chart.tall = height - PAD.top - PAD.bottom;
  };
  return chart;
}

// Axes: values from 0 up to `marks`' last, times from `from` to `to`.
function drawAxes(chart, { from, to, marks, format }) {
  const nodes = [];
  const top = marks[marks.length - 1];
  for (const mark of marks) {
    const y = PAD.top + chart.tall * (1 - mark / top);
    nodes.push(s("line", { x1: PAD.left, x2: PAD.left + chart.width, y1: y, y2: y }));
    if (mark > 0) nodes.push(s("text", { x: PAD.left - 6, y: y + 4, "text-anchor": "end" }, format(mark)));
  }
  const count = chart.width > 700 ? 5 : chart.width > 260 ? 3 : 2;
  for (let i = 0; i <= count; i++) {
    const x = PAD.left + (chart.width * i) / count;
    const anchor = i === 0 ? "start" : i === count ? "end" : "middle";
    nodes.push(s("text", { x, y: chart.height - 5, "text-anchor": anchor }, clock(from + ((to - from) * i) / count)));
  }
  chart.axes.replaceChildren(...nodes);
}

// Columns of shares per account (ledger.js: columns): where a device's time went, over time.
export function ledgerChart(label) {
  const chart = timeChart(label);
  const paths = new Map();
  let shown = [];
  chart.say = (share) => {
    const column = shown[Math.min(shown.length - 1, Math.floor(share * shown.length))];
    if (!column) return "";
    if (!column.accounts) return `${clock(column.at)}: nothing heard`;
    const parts = [...column.accounts].sort((a, b) => b[1] - a[1]).slice(0, 5);
    return `${clock(column.at)}: ${parts.map(([name, part]) => `${accountOf(name).label} ${percent(part)}`).join(", ")}`;
  };
  return {
    node: chart.node,
    update({ columns, from, to }) {
      chart.measure();
      shown = columns;
      const names = new Set(columns.flatMap((c) => (c.accounts ? [...c.accounts.keys()] : [])));
      const order = [...names].map(accountOf).sort((a, b) => a.order - b.order);
      const outlines = stack(columns, order, chart);
      for (const [name, path] of paths) if (!names.has(name)) (path.remove(), paths.delete(name));
      for (const { name } of order) {
        if (!paths.has(name)) paths.set(name, s("path", { class: accountClass(name) }));
        setAttribute(paths.get(name), "d", outlines.get(name));
      }
      for (const { name } of order) chart.shapes.append(paths.get(name));
      drawAxes(chart, { from, to, marks: [0, 0.5, 1], format: percent });
      chart.showCursor();
    },
  };
}

// One outline per account: a rectangle for each column, on top of those below.
function stack(columns, order, { width, tall }) {
  const parts = new Map(order.map(({ name }) => [name, []]));
  const step = width / columns.length;
  columns.forEach(({ accounts }, i) => {
    let below = 0;
    for (const { name } of accounts ? order : []) {
      const share = accounts.get(name) ?? 0;
      if (share <= 0) continue;
      const y = PAD.top + tall * (1 - below - share);
      parts
        .get(name)
        .push(
          `M${(PAD.left + i * step).toFixed(1)} ${y.toFixed(1)}h${step.toFixed(2)}v${(tall * share).toFixed(1)}h-${step.toFixed(2)}z`,
        );
      below += share;
    }
  });
  return new Map([...parts].map(([name, shapes]) => [name, shapes.join("")]));
}

// Lines over time. series: [{name, points: [[ms, value]]}], drawn in the classes line-0, line-1, …; a gap of more than `gap` ms
// is left open; bars: true draws columns of `gap` ms instead.
export function lineChart(label, { format, bars = false }) {
  const chart = timeChart(label, { height: 150 });
  const key = h("ul", { class: "legend" });
  const syncKey = keyed(
    key,
    ({ name, index }) => ({
      node: h(
        "li",
        null,
        s(
          "svg",
          { class: "swatch", width: 18, height: 12, "aria-hidden": "true" },
          s("line", { x1: 0, x2: 18, y1: 6, y2: 6, class: `line line-${index}` }),
        ),
        name,
      ),
    }),
    (one) => one.name,
  );
  chart.node.insertBefore(key, chart.svg);
  let shown = { series: [], from: 0, to: 1, gap: 0 };
  chart.say = (share) => {
    const at = shown.from + share * (shown.to - shown.from);
    const values = shown.series.map(({ name, points }) => {
      const near = points.findLast(([ms]) => ms <= at);
      return near && at - near[0] <= shown.gap ? `${name} ${format(near[1])}` : null;
    });
    return `${clock(at)}: ${values.filter(Boolean).join(", ") || "nothing heard"}`;
  };
  return {
    node: chart.node,
    update(now) {
      const inside = ([ms]) => ms >= now.from && ms <= now.to;
      now = { ...now, series: now.series.map((one) => ({ ...one, points: one.points.filter(inside) })) };
      shown = now;
      chart.measure();
      const max = Math.max(0, ...now.series.flatMap(({ points }) => points.map(([, value]) => value)));
      const marks = ticks(max, 3);
      const x = (ms) => PAD.left + (chart.width * (ms - now.from)) / (now.to - now.from);
      const y = (value) => PAD.top + chart.tall * (1 - value / marks[marks.length - 1]);
      const draw = bars ? columnPath : linePath;
      chart.shapes.replaceChildren(
        ...now.series.map(({ points }, i) =>
          s("path", { class: `${bars ? "column" : "line"} line-${i}`, d: draw(points, x, y, now.gap) }),
        ),
      );
      drawAxes(chart, { ...now, marks, format });
      syncKey(now.series.length > 1 ? now.series.map((one, index) => ({ ...one, index })) : []);
      chart.showCursor();
    },
  };
}

function linePath(points, x, y, gap) {
  let previous = -Infinity;
  return points
    .map(([ms, value]) => {
      const verb = ms - previous > gap ? "M" : "L";
      previous = ms;
      // A point of its own is drawn as a dot: a line of no length with round ends.
      return `${verb}${x(ms).toFixed(1)} ${y(value).toFixed(1)}${verb === "M" ? "h0" : ""}`;
    })
    .join("");
}

function columnPath(points, x, y, width) {
  return points
    .filter(([, value]) => value > 0)
    .map(([ms, value]) => {
      const [left, right] = [x(ms) + 0.5, x(ms + width) - 0.5];
      return `M${left.toFixed(1)} ${y(value).toFixed(1)}H${right.toFixed(1)}V${y(0).toFixed(1)}H${left.toFixed(1)}z`;
    })
    .join("");
}
