// The last quarter of an hour, read from the fleet's telemetry stream by direct gets and nothing else: the one kind of request that a dashboard's
// role may send. A direct get answers with one message: the last of a subject, or the first of a subject from a sequence on.
//
//   1  the directory of lanes (a key-value bucket is a stream, too): every lane, also one that is silent
//   2  the last report of each kind of each lane, and of the fleet
//   3  events, spans and errors: ranges of the stream's sequences, read from the newest back until enough are read
//   4  for the timelines: of each lane a device report at each of SAMPLES places of the stream
//
// So the number of requests is bounded by the limits here, however much the stream holds.
const PARALLEL = 16;
const WALK = 16; // reports of a short walk
const SAMPLES = 90;
const SAMPLED_LANES_MAX = 64;
const LANES_MAX = 512;
const RANGE_LEAST = 64;
const MESSAGES_MAX = { span: 1500, event: 4000, error: 300 };

// get(stream, request) → {subject, sequence, data} or null; take(message) is called with each. Gives up quietly where something
// is missing (a fleet without a stream yet); `stop()` true: ends early.
export async function readHistory({ get, take, prefix, names, stop = () => false }) {
  const tel = (request) => get(names.stream, request);
  const last = (subject) => tel({ last_by_subj: subject });
  // A server that has no such bucket does not answer at all.
  const lanes = await readDirectory(get, take, names, stop).catch(() => new Set());
  const newest = await last(">");
  const oldest = newest && (await tel({ seq: 1, next_by_subj: ">" }));
  if (!oldest) return;
  const bounds = { from: oldest.sequence, to: newest.sequence };
  for (const name of await silentLanes(tel, prefix, bounds)) lanes.add(name);
  const subjects = [`${prefix}.tel.fleet`];
  for (const name of lanes) for (const kind of ["device", "lane", "keys"]) subjects.push(`${prefix}.tel.${name}.${kind}`);
  await each(subjects, async (subject) => deliver(take, await last(subject)), stop);
  const kinds = [
    ["event", `${prefix}.evt.>`],
    ["span", `${prefix}.tel.*.*.span`],
    ["error", `${prefix}.tel.*.*.error`],
  ];
  for (const [kind, filter] of kinds) await readBack(tel, take, filter, bounds, MESSAGES_MAX[kind], stop);
  const sampled = [...lanes].slice(0, SAMPLED_LANES_MAX).map((name) => `${prefix}.tel.${name}.device`);
  await readSamples(tel, take, [`${prefix}.tel.fleet`, ...sampled], bounds, stop);
}

function deliver(take, message) {
  if (message) take(message);
}

// Runs `work` on all items, at most PARALLEL at a time.
async function each(items, work, stop) {
  let at = 0;
  const worker = async () => {
    while (at < items.length && !stop()) await work(items[at++]);
  };
  await Promise.all(Array.from({ length: Math.min(PARALLEL, items.length) }, worker));
}

async function readDirectory(get, take, names, stop) {
  const found = new Set();
  for (let seq = 1; found.size < LANES_MAX && !stop();) {
    const message = await get(names.lanesStream, { seq, next_by_subj: names.lanesSubjects });
    if (!message) break;
    take({ ...message, kind: "info" });
    found.add(message.subject.split(".").slice(2).join("."));
    seq = message.sequence + 1;
  }
  return found;
}

// Lanes that the directory has dropped still have reports in the stream: whoever is met in short walks from a few places of it.
async function silentLanes(tel, prefix, { from, to }) {
  const found = new Set();
  const places = Array.from({ length: PARALLEL }, (_, i) => from + Math.floor(((to - from) * i) / PARALLEL));
  await each(
    places,
    async (place) => {
      for (let seq = place, met = 0; met < WALK; met++) {
        const message = await tel({ seq, next_by_subj: `${prefix}.tel.*.*.device` });
        if (!message) break;
        found.add(message.subject.split(".").slice(-3, -1).join("."));
        seq = message.sequence + 1;
      }
    },
    () => false,
  );
  return found;
}

// Messages of the filter, newest first as far as that goes forward only: a wave of narrow ranges at the end of the stream, then one of ranges
// twice as wide before it, and so on until a wave has brought the number to `max`.
async function readBack(tel, take, filter, { from, to }, max, stop) {
  let read = 0;
  for (let width = RANGE_LEAST, end = to; end >= from && read < max && !stop(); width *= 2) {
    const ranges = [];
    for (; ranges.length < PARALLEL && end >= from; end -= width) ranges.push({ start: Math.max(from, end - width + 1), end });
    await each(
      ranges,
      async (range) => {
        for (let seq = range.start; seq <= range.end && read < 2 * max && !stop();) {
          const message = await tel({ seq, next_by_subj: filter });
          if (!message || message.sequence > range.end) break;
          take(message);
          read++;
          seq = message.sequence + 1;
        }
      },
      stop,
    );
  }
}

async function readSamples(tel, take, subjects, { from, to }, stop) {
  const wanted = [];
  for (let i = 0; i < SAMPLES; i++) {
    const seq = from + Math.floor(((to - from) * i) / SAMPLES);
    for (const subject of subjects) wanted.push({ seq, next_by_subj: subject });
  }
  await each(wanted, async (request) => deliver(take, await tel(request)), stop);
}
