// Messages and subjects of the fleet. The messages are described by the .proto files themselves: the build packs them into one descriptor
// set (fleet.binpb), and this reads it. Reflection needs no generated code and no `eval`, which the page's policy forbids.
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const MESSAGE_BYTES_MAX = 1 << 20;
const MESSAGES = {
  device: "DeviceReport",
  lane: "LaneReport",
  keys: "KeysReport",
  span: "SpanReport",
  error: "ErrorReport",
  fleet: "FleetReport",
  event: "Event",
  info: "LaneInfo",
};

// descriptorSet: bytes of fleet.binpb. Gives decode(kind, bytes) → a plain object: 64-bit integers as numbers (durations, sizes and times
// stay far below 2^53), bytes as hex, all else as it is. Throws on what is no such message.
export function decoder(descriptorSet) {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptorSet));
  const schemas = Object.fromEntries(
    Object.entries(MESSAGES).map(([kind, name]) => [kind, registry.getMessage(`bellows.v1.${name}`)]),
  );
  return (kind, bytes) => {
    if (bytes.length > MESSAGE_BYTES_MAX) throw new Error(`${bytes.length} bytes are too many for a message`);
    return plain(fromBinary(schemas[kind], bytes, { readUnknownFields: false }));
  };
}

function plain(value) {
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Uint8Array) return Array.from(value, (b) => b.toString(16).padStart(2, "0")).join("");
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  const out = {};
  for (const [name, field] of Object.entries(value)) if (!name.startsWith("$")) out[name] = plain(field);
  return out;
}

// What a subject names: {kind, node, gpu} or {kind: "event", tenant, job} or {kind: "fleet"}; null: not one of ours.
export function parseSubject(prefix, subject) {
  if (!subject.startsWith(`${prefix}.`)) return null;
  const words = subject.slice(prefix.length + 1).split(".");
  if (words[0] === "evt" && words.length === 4) return { kind: "event", tenant: words[1], job: words[2] };
  if (words[0] !== "tel") return null;
  if (words.length === 2 && words[1] === "fleet") return { kind: "fleet" };
  if (words.length !== 4 || !/^\d{1,9}$/.test(words[2]) || !(words[3] in MESSAGES)) return null;
  return { kind: words[3], node: words[1], gpu: Number(words[2]) };
}

// Names of the server's side: the prefix in upper case for streams, as it is for buckets.
export function names(prefix) {
  return {
    telemetry: `${prefix}.tel.>`,
    events: `${prefix}.evt.>`,
    stream: `${prefix.toUpperCase()}_TEL`,
    lanesStream: `KV_${prefix}_lanes`,
    lanesSubjects: `$KV.${prefix}_lanes.>`,
  };
}
