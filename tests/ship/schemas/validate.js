// Holds objects against the schemas of their kinds: validate.js, with a JSON list of objects on standard input.
// Prints a line for each fault and ends with 1 when there is one; an unknown kind is a fault.
import { readFileSync } from "node:fs";

const PACKAGES = { "keda.sh": "@kubernetes-models/keda", "monitoring.coreos.com": "@kubernetes-models/prometheus-operator" };

/** The class of an object's kind. */
async function modelOf({ apiVersion, kind }) {
    const group = apiVersion.split("/")[0];
    const models = await import(`${PACKAGES[group] ?? "kubernetes-models"}/${apiVersion}/${kind}`);
    return models[kind];
}

let faults = 0;
for (const object of JSON.parse(readFileSync(0, "utf8"))) {
    const name = `${object.kind} ${object.metadata?.name}`;
    try {
        const Model = await modelOf(object);
        new Model(object).validate();
        console.log(`${name} is well`);
    } catch (fault) {
        faults++;
        console.error(`${name}: ${fault.message}`);
    }
}
process.exit(faults ? 1 : 0);
