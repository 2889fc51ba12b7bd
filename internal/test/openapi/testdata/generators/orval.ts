import assert from "node:assert/strict";
import axios from "axios";
import { createMeeting, createUploadURL, getMeeting, getMinutes, getUsage, KnownStatus } from "./orval/api.js";
import type { Status } from "./orval/api.js";

axios.defaults.baseURL = process.env.MINUTES_BASE_URL;
axios.defaults.headers.common.Authorization = "Bearer " + process.env.MINUTES_API_KEY;
const { data: created } = await createMeeting({ title: "Weekly", date: "2026-11-21" });
const { data: target } = await createUploadURL(created.id, { content_type: "audio/mpeg" });
const put = await fetch(target.upload_url, { // not the shared axios, which would send the key
  method: "PUT",
  body: new Uint8Array(32_000),
  headers: { "Content-Type": "audio/mpeg" },
});
assert.equal(put.status, 200);
const { data: meeting } = await getMeeting(created.id);
const ready: Status = "minutes_ready";
assert.equal(meeting.status, ready);
assert.equal(meeting.status, KnownStatus.minutes_ready);
const { data: minutes } = await getMinutes(created.id, { format: "markdown" });
assert.match(minutes.content, /^# Weekly/);

const unknown: Status = "archiving"; // the service may add it
assert.notEqual(meeting.status, unknown);

await fetch(process.env.MINUTES_CONTROL_URL + "/faults", {
  method: "POST",
  body: JSON.stringify({ match: { operation: "usage.get" }, faults: [{ kind: "rate_limit", retry_after: "1" }] }),
  headers: { "Content-Type": "application/json" },
});
const limited = await getUsage({ validateStatus: () => true });
assert.equal(limited.status, 429);
assert.equal(limited.headers["retry-after"], "1");
console.log("orval: the main job is done");
