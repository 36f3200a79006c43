// Numbers as people read them: three digits, a unit, a thin space between. Pure functions; nothing here touches the page.

const THIN = "\u202f";

// Three significant digits, no exponent.
export function digits(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 100 || size === 0) return String(Math.round(value));
  const fixed = value.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 2 : 3);
  return fixed.replace(/\.?0+$/, "") || "0";
}

// 1234567 → 1 234 567
export function count(value) {
  if (!Number.isFinite(value)) return "–";
  return String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, THIN);
}

function scaled(value, units, base) {
  let at = 0;
  let size = value;
  // 999.7 rounds to 1000: that is 1 of the next unit.
  while (at + 1 < units.length && Math.abs(size) >= base - 0.5) {
    size /= base;
    at++;
  }
  return `${digits(size)}${THIN}${units[at]}`;
}

export function bytes(value) {
  return Number.isFinite(value) ? scaled(value, ["B", "kB", "MB", "GB", "TB", "PB"], 1000) : "–";
}

// Bytes moved in that time; nothing moved or no time: a dash.
export function rate(moved, ns) {
  return moved > 0 && ns > 0 ? `${bytes((moved * 1e9) / ns)}/s` : "–";
}

export function duration(ns) {
  if (!Number.isFinite(ns) || ns < 0) return "–";
  if (ns === 0) return `0${THIN}s`;
  if (ns < 59.95e9) return scaled(ns, ["ns", "µs", "ms", "s"], 1000);
  const seconds = Math.round(ns / 1e9);
  const [d, h, m, s] = [
    Math.floor(seconds / 86400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
    seconds % 60,
  ];
  const two = (n) => String(n).padStart(2, "0");
  if (d) return `${d}${THIN}d ${two(h)}${THIN}h`;
  if (h) return `${h}${THIN}h ${two(m)}${THIN}min`;
  return `${m}${THIN}min ${two(s)}${THIN}s`;
}

export function percent(share) {
  if (!Number.isFinite(share)) return "–";
  const value = share * 100;
  // What is there must not read as nothing, nor what is missing as all.
  if (value > 0 && value < 1) return `<1${THIN}%`;
  if (value < 100 && value > 99) return `>99${THIN}%`;
  return `${Math.round(value)}${THIN}%`;
}

export function energy(millijoule) {
  return millijoule > 0 ? scaled(millijoule / 1000, ["J", "kJ", "MJ", "GJ"], 1000) : "–";
}

export function power(milliwatt) {
  return Number.isFinite(milliwatt) ? `${digits(milliwatt / 1000)}${THIN}W` : "–";
}

export function clock(unixMs) {
  if (!(unixMs > 0)) return "–";
  const date = new Date(unixMs);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((n) => String(n).padStart(2, "0")).join(":");
}

// With thousandths, for what follows each other closely.
export function clockFine(unixMs) {
  return unixMs > 0 ? `${clock(unixMs)}.${String(Math.floor(unixMs % 1000)).padStart(3, "0")}` : "–";
}

export function ago(fromMs, nowMs) {
  if (!(fromMs > 0)) return "–";
  const ms = Math.max(0, nowMs - fromMs);
  return ms < 1500 ? "now" : `${duration(Math.round(ms / 1000) * 1e9)} ago`;
}

// The first digits of a key's name: enough to tell a fleet's keys apart, and what the subjects use.
export function key(digestHex) {
  return digestHex ? digestHex.slice(0, 12) : "–";
}

// Whole ticks for an axis from 0 to at least `max`: about `wanted` of them.
export function ticks(max, wanted = 4) {
  if (!(max > 0) || !Number.isFinite(max)) return [0, 1];
  const rough = max / wanted;
  const power10 = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power10).find((n) => n >= rough * 0.999);
  const out = [];
  for (let i = 0; ; i++) {
    out.push(Number((i * step).toPrecision(6)));
    if (i * step >= max * 0.999) return out;
  }
}

// The value below which that part of the sorted numbers lies.
export function quantile(sorted, part) {
  if (!sorted.length) return NaN;
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
}
