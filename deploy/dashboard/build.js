// Makes the page: node build.js PACKAGES DESCRIPTOR_SET OUT. PACKAGES is a folder with node_modules, DESCRIPTOR_SET what protoc-c makes of the
// .proto files. OUT gets index.html, app.js, app.css and icon.svg; nothing else is needed to serve it but a config.json.
import { copyFileSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [packages, descriptorSet, out] = process.argv.slice(2).map((word) => resolve(word));
if (!out) {
  console.error("usage: node build.js PACKAGES DESCRIPTOR_SET OUT");
  process.exit(2);
}
const here = dirname(fileURLToPath(import.meta.url));
const esbuild = createRequire(join(packages, "package.json"))("esbuild");
mkdirSync(out, { recursive: true });
await esbuild.build({
  entryPoints: [join(here, "src/main.js")],
  outfile: join(out, "app.js"),
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "eof",
  nodePaths: [join(packages, "node_modules")],
  alias: { "fleet.binpb": descriptorSet },
  loader: { ".binpb": "binary" },
  logLevel: "warning",
});
for (const name of ["index.html", "app.css", "icon.svg"]) copyFileSync(join(here, "page", name), join(out, name));
