// Making and changing elements. Text is always set as text: nothing that came in a message is ever read as HTML.

export const NOTHING = "–"; // in a cell: a narrow screen leaves it out
const SVG = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// h("td", {class: "number"}, "12"): an element with attributes, listeners (onclick: f) and children.
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

// Only what changes is written, so that a selection or a screen reader is not disturbed each second.
export function setText(node, text) {
  const value = String(text);
  if (node.textContent !== value) node.textContent = value;
}

export function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

// Makes the children of `parent` follow `items`: one node for each, made once by make(item) → {node, update(item)}, found again by keyOf(item).
export function keyed(parent, make, keyOf) {
  const rows = new Map();
  return (items) => {
    const wanted = new Map();
    for (const item of items) if (!wanted.has(keyOf(item))) wanted.set(keyOf(item), item);
    for (const [key, row] of rows) {
      if (wanted.has(key)) continue;
      row.node.remove();
      rows.delete(key);
    }
    let next = parent.firstChild;
    for (const [key, item] of wanted) {
      let row = rows.get(key);
      if (!row) rows.set(key, (row = make(item)));
      row.update?.(item);
      // A node that stands where it belongs is not touched: moving it would take its focus away.
      if (row.node === next) next = next.nextSibling;
      else parent.insertBefore(row.node, next);
    }
  };
}

// A table of columns [{title, class, text(item)}], or with make(item) → node and update(cell, item) where a cell is more than a text.
// It gives {node, update(items)}; without items it says `empty`. On a narrow screen each row becomes a paragraph ("rows"), or the table leaves
// out its columns of class "roomy" ("compact").
export function table(caption, columns, keyOf, empty, narrow = "rows") {
  // Roles are said aloud, as the narrow layout of app.css would hide them.
  const body = h("tbody", { role: "rowgroup" });
  const note = h("p", { class: "empty" }, empty);
  const head = h(
    "tr",
    { role: "row" },
    columns.map((c) => h("th", { scope: "col", role: "columnheader", class: c.class }, c.title)),
  );
  const frame = h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      { class: narrow, role: "table" },
      h("caption", { class: "hidden" }, caption),
      h("thead", { role: "rowgroup" }, head),
      body,
    ),
  );
  const sync = keyed(
    body,
    (item) => {
      const cells = columns.map((c) => h("td", { role: "cell", class: c.class, "data-title": c.title }, c.make?.(item)));
      return {
        node: h("tr", { role: "row" }, cells),
        update: (now) =>
          columns.forEach((c, i) => {
            if (c.update) return c.update(cells[i], now);
            if (!c.text) return;
            const text = c.text(now);
            setText(cells[i], text);
            setAttribute(cells[i], "data-empty", text === NOTHING);
          }),
      };
    },
    keyOf,
  );
  return {
    node: h("div", null, frame, note),
    update(items) {
      sync(items);
      frame.hidden = items.length === 0;
      note.hidden = items.length !== 0;
    },
  };
}
