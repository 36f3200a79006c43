// Messages as the fleet sends them, made from the same descriptor set that the page is built with.
import { createFileRegistry, fromBinary, fromJson, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { readFileSync } from "node:fs";

// encode("DeviceReport", {node: "a", …}) → bytes. Fields as in proto3 JSON; digests in hex.
export function encoder(descriptorSetPath) {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(descriptorSetPath)));
  return (name, message) => {
    const schema = registry.getMessage(`bellows.v1.${name}`);
    return toBinary(schema, fromJson(schema, tidy(message)));
  };
}

function tidy(value) {
  if (Array.isArray(value)) return value.map(tidy);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, field]) => field !== undefined)
      .map(([name, field]) => {
        if (/digest$/i.test(name)) return [name, Buffer.from(field, "hex").toString("base64")];
        if (typeof field === "number" && !Number.isInteger(field)) return [name, Math.round(field)];
        return [name, tidy(field)];
      }),
  );
}
