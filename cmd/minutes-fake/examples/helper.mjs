// Import this file in each test file, with minutes-fake in your PATH: import { control } from "./helper.mjs";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const { afterEach, beforeEach } = await import(process.env.VITEST ? "vitest" : "node:test");
if (!process.env.MINUTES_CONTROL_URL) await start(); // otherwise all test files share one program

async function start() {
  const args = ["-addr", "127.0.0.1:0", "-exit-on-eof", "-print-env", "-log", "none"]; // it ends with this program, even if that is killed
  // If your client polls more often than every thirty seconds, add -min-poll-interval.
  const fake = spawn("minutes-fake", args, { stdio: ["pipe", "pipe", "inherit"] }); // in vitest, add: afterAll(() => fake.kill());
  let variables = 0;
  for await (const line of createInterface(fake.stdout)) {
    const [name, value] = line.split("=");
    process.env[name] = value;
    if (++variables === 3) break;
  }
  assert.equal(variables, 3, "minutes-fake did not start, and its message says why");
  fake.unref(); // because Node would wait for the program
  fake.stdout.destroy(); // and for its pipe
}

export async function control(what, body) {
  const [method, path] = what.split(" ");
  const response = await fetch(process.env.MINUTES_CONTROL_URL + path, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return JSON.parse(text || "null");
}

const program = process.env.MINUTES_CONTROL_URL;
let made;
beforeEach(async () => { // each test has an organisation of its own; only the tests of one file must not run at the same time
  made = await control("POST /organisations");
  Object.assign(process.env, { MINUTES_API_KEY: made.keys[0], MINUTES_CONTROL_URL: made.control_url });
});
afterEach(async () => {
  const found = await control("GET /violations");
  process.env.MINUTES_CONTROL_URL = program;
  await control("DELETE /organisations/" + made.id);
  assert.deepEqual(found, { violations: [], unused_faults: [], unmatched_scripts: [] });
});
