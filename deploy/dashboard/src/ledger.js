// The ledger: what a device's time went to. A report holds totals since the session's start; what happened between two
// reports is their difference, and that always sums to the time between them.
//
// What a device computes just now is booked when it ends. Until then it is `open_ns` of the report and shown as "running". When
// it ends, its steps enter the accounts with all of their time, also the part that an earlier difference has shown as
// running; that part is taken off again, from all compute accounts in proportion.

const COMPUTE = "compute.";
const GAP_COLUMNS = 4; // beyond that a difference says too little about any one column
export const RUNNING = "running";

// Every account in the order in which bars stack, with a word for the legend and what an operator should make of it.
export const ACCOUNTS = [
  ["compute.witness", "witness", "expanding the witness"],
  ["compute.evaluate", "evaluate", "sparse products with the witness"],
  ["compute.quotient", "quotient", "transforms and quotient"],
  ["compute.msm_a", "msm a", "the sum over A"],
  ["compute.msm_b1", "msm b1", "the sum over B in G1"],
  ["compute.msm_b2", "msm b2", "the sum over B in G2"],
  ["compute.msm_l", "msm l", "the sum over L"],
  ["compute.msm_h", "msm h", "the sum over H"],
  ["compute.other", "other compute", "computing, with no finer measurement"],
  [RUNNING, "computing now", "a proof that is not booked yet"],
  ["upload", "upload", "the job's data is being copied to the device"],
  ["wait.fetch", "fetch", "data is on the way from the server: look at the network and the server's disk"],
  ["wait.decode", "decode", "data is being decompressed: the node has too few processor cores for this load"],
  ["wait.pinned", "memory", "waits for memory to decode into: give the lane more, or smaller jobs"],
  ["wait.key", "key", "waits for its proving key: jobs of many keys share too little memory"],
  ["wait.record", "record", "waits for the job's record: the server answers slowly"],
  ["wait.finish", "finish", "the last job is still being assembled and checked on the host"],
  ["wait.lock", "pick-up", "a job is ready and not picked up yet"],
  ["wait.no_work", "no work", "no job in hand"],
  ["fenced", "fenced", "takes no jobs: too many device errors, or it is draining"],
].map(([name, label, meaning]) => ({ name, label, meaning, group: groupOf(name) }));

const BY_NAME = new Map(ACCOUNTS.map((account, order) => [account.name, { ...account, order }]));

// What shares a colour family: all computing is one.
export function groupOf(name) {
  if (name === RUNNING || !name.startsWith(COMPUTE)) return name;
  return "compute";
}

// The account of that name, or one made up for a name that this page is too old to know.
export function accountOf(name) {
  return BY_NAME.get(name) ?? { name, label: name, meaning: "unknown to this page", group: "unknown", order: ACCOUNTS.length };
}

// The account whose colour a step of a partition's story has: what a device that waited for it would be booked to.
const WAITED_FOR = {
  record: "wait.record",
  key_fetch: "wait.key",
  key_open: "wait.key",
  key_load: "wait.key",
  memory: "wait.pinned",
  fetch: "wait.fetch",
  decode: "wait.decode",
  unpack: "wait.decode",
  upload: "upload",
  queue: "wait.lock",
  assemble: "wait.finish",
  verify: "wait.finish",
  settle: "wait.finish",
  store: "wait.record",
};
export const accountOfStep = (step) => WAITED_FOR[step] ?? COMPUTE + step;

// What a report says, in the form that the rings keep: {at, session, wall, open, accounts: Map name → ns}.
export function sampleOf(report) {
  const accounts = new Map();
  for (const { name, ns } of report.accounts) accounts.set(name, (accounts.get(name) ?? 0) + ns);
  return { at: report.atUnixMs, session: report.session, wall: report.wallNs, open: report.openNs, accounts };
}

// Between two samples: {wall, accounts: Map name → ns}; the accounts sum to wall. Without `from`, or where the session began anew
// in between: all of `to`.
export function difference(from, to) {
  const known = from && from.session === to.session && from.wall <= to.wall;
  const accounts = new Map();
  for (const [name, ns] of to.accounts) {
    const spent = ns - (known ? (from.accounts.get(name) ?? 0) : 0);
    if (spent > 0) accounts.set(name, spent);
  }
  const open = to.open - (known ? from.open : 0);
  if (open > 0) accounts.set(RUNNING, open);
  else if (open < 0) takeOff(accounts, -open);
  return { wall: to.wall - (known ? from.wall : 0), accounts };
}

function takeOff(accounts, ns) {
  const computed = [...accounts].filter(([name]) => name.startsWith(COMPUTE));
  const sum = computed.reduce((total, [, spent]) => total + spent, 0);
  const kept = sum > ns ? (sum - ns) / sum : 0;
  for (const [name, spent] of computed) {
    if (kept > 0) accounts.set(name, spent * kept);
    else accounts.delete(name);
  }
}

// Sum of differences, as of several devices.
export function sum(differences) {
  const total = { wall: 0, accounts: new Map() };
  for (const { wall, accounts } of differences) {
    total.wall += wall;
    for (const [name, ns] of accounts) total.accounts.set(name, (total.accounts.get(name) ?? 0) + ns);
  }
  return total;
}

// Shares for a bar, in stacking order: [{account, ns, share}]; the shares sum to 1, or there are none.
export function shares({ accounts }) {
  let all = 0;
  for (const ns of accounts.values()) all += ns;
  if (!(all > 0)) return [];
  return [...accounts]
    .map(([name, ns]) => ({ account: accountOf(name), ns, share: ns / all }))
    .sort((a, b) => a.account.order - b.account.order || (a.account.name < b.account.name ? -1 : 1));
}

// The part of the time that the device computed, 0 to 1.
export function busy(spent) {
  return shares(spent).reduce(
    (part, { account, share }) => part + (account.group === "compute" || account.name === RUNNING ? share : 0),
    0,
  );
}

// Why a device does not compute all the time, in a sentence: the largest account of the others. `waiting` is the number of partitions
// that the fleet has in its queues.
export function why(spent, waiting = 0) {
  const all = shares(spent);
  if (!all.length) return "nothing heard yet";
  const part = busy(spent);
  if (part >= 0.95) return "computes without a pause";
  const idle = all.filter(({ account }) => account.group !== "compute" && account.name !== RUNNING);
  const worst = idle.reduce((a, b) => (b.share > a.share ? b : a));
  const percent = `${Math.round(worst.share * 100)} %`;
  if (worst.account.name === "wait.no_work") {
    return waiting > 0
      ? `${percent} no job in hand although ${waiting} wait in the queues: see whether the keys fit this device`
      : `${percent} no job in hand, and none waits: the fleet is larger than its load`;
  }
  return `${percent} ${worst.account.label}: ${worst.account.meaning}`;
}

// Columns of a timeline: the time from `from` to `to` (ms) cut into `step` ms, each {at, accounts} with shares of 0 to 1 per account, or
// accounts = null where nothing was heard. Columns between two samples that are not far apart all show the mean of that time.
export function columns(samples, from, to, step) {
  const out = [];
  let at = 0,
    previous;
  for (let start = from; start < to; start += step) {
    let last;
    while (at < samples.length && samples[at].at < start + step) {
      if (samples[at].at >= start) last = samples[at];
      else previous = samples[at];
      at++;
    }
    let accounts = null;
    if (last && previous && last.at - previous.at <= GAP_COLUMNS * step) {
      accounts = new Map(shares(difference(previous, last)).map(({ account, share }) => [account.name, share]));
      for (let i = out.length - 1; i >= 0 && out[i].at > previous.at; i--) out[i].accounts = accounts;
    }
    previous = last ?? previous;
    out.push({ at: start, accounts });
  }
  return out;
}
