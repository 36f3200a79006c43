// Runs test files one after the other with Node's own runner and says what came of it as all test programs here do: node count.js FILE...
import { resolve } from "node:path";
import { run } from "node:test";

const counts = { passed: 0, failed: 0, skipped: 0 };
const files = process.argv.slice(2).map((name) => resolve(name));
const isFile = (name) => files.some((file) => name === file || file.endsWith(`/${name}`));
let finished = 0;

run({ files, concurrency: 1, timeout: 400000 })
  .on("test:pass", ({ name, skip, details }) => {
    if (isFile(name)) return;
    finished++;
    if (skip !== undefined) {
      counts.skipped++;
      console.log(`skipped  ${name}: ${skip}`);
    } else {
      counts.passed++;
      console.log(`ok       ${name} (${Math.round(details.duration_ms)} ms)`);
    }
  })
  .on("test:fail", ({ name, details }) => {
    counts.failed++;
    console.log(`FAILED   ${name}\n${details.error?.cause?.stack ?? details.error?.stack ?? details.error}`);
  })
  .on("test:stderr", ({ message }) => process.stderr.write(message))
  .on("end", () => {
    if (!finished && !counts.failed) counts.failed++;
    const { passed, failed, skipped } = counts;
    console.log(`${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ""}`);
    process.exitCode = failed ? 1 : passed ? 0 : 77;
  })
  .resume();
