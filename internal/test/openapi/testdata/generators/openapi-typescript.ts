import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Status = components["schemas"]["Status"];

const api = createClient<paths>({
  baseUrl: process.env.MINUTES_BASE_URL!,
  headers: { Authorization: "Bearer " + process.env.MINUTES_API_KEY },
});
const created = await api.POST("/v1/meetings", { body: { title: "Weekly", date: "2026-11-21" } });
const params = { path: { meeting_id: created.data!.id } };
const target = await api.POST("/v1/meetings/{meeting_id}/upload-url", { params, body: { content_type: "audio/mpeg" } });
const put = await fetch(target.data!.upload_url, {
  method: "PUT",
  body: new Uint8Array(32_000),
  headers: { "Content-Type": "audio/mpeg" },
});
assert.equal(put.status, 200);
const meeting = await api.GET("/v1/meetings/{meeting_id}", { params });
const ready: Status = "minutes_ready";
assert.equal(meeting.data!.status, ready);
const minutes = await api.GET("/v1/meetings/{meeting_id}/minutes", { params: { ...params, query: { format: "markdown" } } });
assert.match(minutes.data!.content, /^# Weekly/);

const unknown: Status = "archiving"; // the service may add it
assert.notEqual(meeting.data!.status, unknown);

await fetch(process.env.MINUTES_CONTROL_URL + "/faults", {
  method: "POST",
  body: JSON.stringify({ match: { operation: "usage.get" }, faults: [{ kind: "rate_limit", retry_after: "1" }] }),
  headers: { "Content-Type": "application/json" },
});
const limited = await api.GET("/v1/usage");
assert.equal(limited.response.status, 429);
assert.equal(limited.response.headers.get("Retry-After"), "1");
console.log("openapi-typescript: the main job is done");
