// judge.js verify LIST    LIST has lines "NAME VKEY PUBLIC PROOF"; prints "NAME true" or "NAME false" for each
// judge.js prove LIST     LIST has lines "NAME ZKEY WTNS PROOF PUBLIC"; writes proof and public signals, prints "NAME true"
//
// One process for all lines, since loading snarkjs takes longer than most proofs.
import fs from "node:fs";
import * as snarkjs from "snarkjs";

const read = (path) => JSON.parse(fs.readFileSync(path, "utf8"));
const [what, list] = process.argv.slice(2);
for (const line of fs.readFileSync(list, "utf8").trim().split("\n")) {
    const [name, ...files] = line.split(" ");
    let good;
    try {
        if (what === "verify") {
            const [vkey, publics, proof] = files.map(read);
            good = await snarkjs.groth16.verify(vkey, publics, proof);
        } else {
            const [zkey, wtns, proofFile, publicFile] = files;
            const { proof, publicSignals } = await snarkjs.groth16.prove(zkey, wtns);
            fs.writeFileSync(proofFile, JSON.stringify(proof, null, 1));
            fs.writeFileSync(publicFile, JSON.stringify(publicSignals, null, 1));
            good = true;
        }
    } catch (e) {
        good = `error: ${e.message}`;
    }
    console.log(`${name} ${good}`);
}
process.exit(0);
