// Fails unless Prism gives a 429 for each operation that is asked for one, whatever the client accepts.
import assert from "node:assert/strict";
import fs from "node:fs";
import yaml from "yaml";

const document = yaml.parse(fs.readFileSync(process.argv[2], "utf8"));
let count = 0;
for (const [path, item] of Object.entries(document.paths)) {
  for (const [method, operation] of Object.entries(item)) {
    if (method === "parameters") continue;
    for (const accept of ["application/json", "*/*"]) {
      const response = await fetch("http://127.0.0.1:4010" + path.replace("{meeting_id}", "mtg_4k1r7s9x"), {
        method: method.toUpperCase(),
        headers: { Authorization: "Bearer key", Prefer: "code=429", Accept: accept, "Content-Type": "application/json" },
        body: operation.requestBody && JSON.stringify(operation.requestBody.content["application/json"].example),
      });
      assert.equal(response.status, 429, `${method} ${path}`);
      assert.equal(response.headers.get("Retry-After"), "5");
      await response.text();
    }
    count++;
  }
}
console.log(`Prism gives 429 for ${count} operations`);
