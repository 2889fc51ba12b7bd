// The buttons and dialogs of a page that is served beside a control API.
const control = { on: false, faults: null, keys: [] };

// findControl looks for the control API, which also has the keys.
async function findControl() {
  try {
    const index = await fetch(".", { headers: { Accept: "application/json" } });
    control.on = index.headers.get("Minutes-Fake") === "control";
    if (!control.on) return;
    model.name = (await index.json()).control_api_of;
    $("orders").hidden = false;
    await fetchWorld();
  } catch { /* a page without a control API */ }
}

async function fetchWorld() {
  if (!control.on) return;
  const [world, faults] = await Promise.all([get("world"), get("faults")]);
  control.keys = (world.organisations ?? []).flatMap(o => (o.keys ?? []).map(k => ({ organisation: o.id, ...k })));
  control.faults = faults.faults;
  fillWorld();
  fillFaults();
}

async function order(method, path, body) {
  const response = await fetch(path, { method, headers: body === undefined ? {} : { "Content-Type": "application/json" }, body });
  if (response.ok) return;
  let text = `status ${response.status}`;
  try {
    const { problem } = await response.json();
    text = [problem.field, problem.message].filter(Boolean).join(": ");
  } catch { /* only the status */ }
  throw new Error(text);
}

// act sends a request to the control API, and shows the result.
async function act(what, method, path, body) {
  try {
    await order(method, path, body);
    say(`${what}: done`);
    detail.again?.();
  } catch (err) {
    say(`${what}: ${err.message}`);
    const old = $("detail").querySelector(".rejection");
    old?.remove();
    if (!$("detail").hidden) $("detail").prepend(h("div", { className: "card bad rejection" }, `${what}: ${err.message}`));
  }
}

function meetingButtons(m) {
  const path = `meetings/${encodeURIComponent(m.id)}`, buttons = [];
  if (m.audio && !final(m.status)) {
    buttons.push(h("button", { onclick: () => act("Advance", "POST", `${path}/advance`) }, "Advance"), " ",
      h("button", { onclick: () => act("Advance", "POST", `${path}/advance`, '{"until":"minutes_ready"}') }, "Advance to the end"), " ");
  }
  buttons.push(h("button", { onclick: () => act("Delete", "DELETE", path) }, "Delete"));
  return h("p", {}, ...buttons);
}

const SAMPLES = {
  faults: {
    title: "Inject a fault", hint: "The fault applies to requests that match, from the nth on, as many times as given (-1: always).",
    list: {
      "too many requests (429)": { match: { operation: "meetings.get", nth: 1 }, faults: [{ kind: "rate_limit", retry_after: "2" }] },
      "a service error (500)": { match: { operation: "meetings.create" }, faults: [{ kind: "refuse", code: "INTERNAL_ERROR" }] },
      "a proxy’s page (502)": { match: { operation: "meetings.list" }, faults: [{ kind: "respond", status: 502, content_type: "text/html", body: "<h1>Bad Gateway</h1>" }] },
      "a reset connection": { match: { operation: "meetings.get" }, faults: [{ kind: "reset" }] },
      "a lost response": { match: { operation: "meetings.create" }, faults: [{ kind: "reset", after_effect: true }] },
      "an upload that breaks off": { match: { operation: "storage.put" }, faults: [{ kind: "reset_upload", bytes: 65536 }] },
      "storage is busy (503)": { match: { operation: "storage.put" }, faults: [{ kind: "refuse_upload", status: 503, code: "SlowDown" }] },
      "a truncated response": { match: { operation: "meetings.list" }, faults: [{ kind: "truncate", bytes: 10 }] },
      "a slow response": { match: { operation: "meetings.get" }, faults: [{ kind: "drip", over: "5s" }] },
      "a delay": { match: { path: "/v1/*", times: 3 }, faults: [{ kind: "delay", delay: "2s" }] },
    },
  },
  scripts: {
    title: "Script", hint: "Sets how meetings go on from now: those with a title, external_id or meeting_id, or all of them.",
    list: {
      "hold while transcribing": { title: "Weekly", hold: "transcribing" },
      "the minutes fail": { title: "Weekly", outcome: "minutes_failed" },
      "the transcription fails": { title: "Weekly", outcome: "transcription_failed" },
      "a transcript": { title: "Weekly", transcript: "spk_0: We decided to ship on Monday.\nspk_1: I will write the notes." },
      "slow stages": { stages: { prepare: "5s", transcribe: "20s", write: "10s" } },
      "remove the script for all meetings": {},
    },
  },
  clock: {
    title: "Move the clock", hint: "The service's time moves on: upload URLs and keys expire, quotas are topped up, meetings progress.",
    list: { "a minute": { advance: "1m" }, "an hour": { advance: "1h" }, "a week": { advance: "168h" } },
  },
};

function askFor(path) {
  const { title, hint, list } = SAMPLES[path], box = $("sending");
  setText($("sendname"), title);
  setText($("sendhint"), hint);
  setText($("rejection"), "");
  $("samples").replaceChildren(...Object.keys(list).map(name => h("option", {}, name)));
  const choose = () => { $("body").value = JSON.stringify(list[$("samples").value], null, 2); };
  $("samples").onchange = choose;
  choose();
  $("send").onclick = async () => {
    const problem = jsonProblem($("body"));
    setText($("rejection"), problem);
    if (problem) return;
    try {
      await order("POST", path, $("body").value);
      box.close();
      await fetchWorld();
      if (path !== "clock") choosePanel(path === "faults" ? "faults" : "world");
    } catch (err) {
      setText($("rejection"), err.message);
    }
  };
  box.showModal();
}

// jsonProblem says why a field's text is not a JSON object, and selects the
// place. It returns "" if the text is one.
function jsonProblem(field) {
  const text = field.value.trimEnd();
  if (!text.trim()) return "The field is empty. Enter a JSON object, such as {}.";
  try {
    const value = JSON.parse(text);
    return value && typeof value === "object" && !Array.isArray(value) ? "" : "This is not a JSON object. It must start with { and end with }.";
  } catch (err) {
    const message = String(err.message).replace(/^JSON\.parse: /, ""), place = /position (\d+)/.exec(message);
    if (/end of (JSON|data)|Unterminated/i.test(message) || place && Number(place[1]) >= text.length)
      return "This is not valid JSON: the text ends too early. A bracket, a brace or a quotation mark is not closed.";
    if (place) {
      field.focus();
      field.setSelectionRange(Number(place[1]), Number(place[1]) + 1);
    }
    const line = place ? text.slice(0, Number(place[1])).split("\n").length : 0;
    const reason = message.replace(/ in JSON.*$/, "").replace(/,? ?(\.\.\.)?".*" ?(\.\.\.)?( is not valid JSON)$/s, "");
    return `This is not valid JSON${line ? ` (line ${line})` : ""}${reason ? `: ${reason}` : "."}`;
  }
}

function fillFaults() {
  const list = control.on ? control.faults ?? [] : model.world.faults ?? [];
  const applied = f => f.applied, sum = list.reduce((sum, f) => sum + applied(f), 0);
  const missing = f => !model.live && f.unused; // in a live page, the test goes on
  setText($("t-faults"), list.length ? `Faults ${list.length}, applied ${count(sum, "time")}` : "Faults");
  $("faults").replaceChildren(...(list.length ? [...list].sort((a, b) => !!missing(b) - !!missing(a)).map(f => {
    const match = Object.entries(f.match ?? {}).map(([name, value]) => `${name} ${value}`).join(", ") || "every request";
    const card = h("div", { className: missing(f) ? "card bad" : "card" },
      missing(f) ? h("p", {}, h("b", {}, applied(f) ? "This fault was not applied as often as injected, so the test fails." : "This fault was never applied, so the test fails.")) : "",
      h("p", {}, markIcon("fault"), " ", h("b", {}, f.faults.map(one => one.kind + (one.after_effect ? " after effect" : "")).join(", then ")), " on ", match),
      h("p", {}, `applied ${count(applied(f), "time")}; ${count(f.seen, "request")} matched`),
      h("pre", {}, f.faults.map(one => JSON.stringify(one)).join("\n")));
    return card;
  }) : [h("p", { className: "soft" }, "No faults injected.")]));
  if (list.length && control.on) $("faults").append(removal("faults"));
}

// removal is the button that removes all faults, or all scripts.
function removal(path) {
  return h("p", {}, h("button", { onclick: () => act(`Remove all ${path}`, "DELETE", path).then(fetchWorld) }, "Remove all"));
}

// patchKey is the change of the world that changes one key.
function patchKey(organisation, secret, change) {
  return JSON.stringify({ organisations: [{ id: organisation, keys: [{ secret, ...change }] }] });
}

function fillWorld() {
  const parts = [];
  for (const o of model.world.organisations) {
    parts.push(h("h2", {}, o.name || o.id, rejectionOf(o)));
    parts.push(table([["Credits left", o.credits.toLocaleString("en")], ["Transcription left", `${o.transcribe_seconds.toLocaleString("en")} s`], ["Next top-up", o.next_reset_at || "none"]]));
    parts.push(h("h3", {}, "Keys"));
    const secrets = control.keys.filter(k => k.organisation === o.id);
    parts.push(table((o.keys ?? []).map((k, i) => {
      const key = secrets[i], cell = h("span", {}, k.revoked ? "revoked" : "in use");
      if (control.on && key) {
        const change = patchKey(o.id, key.secret, { revoked: !k.revoked });
        cell.append("  ", h("button", { onclick: () => act("Change the key", "PATCH", "world", change) }, k.revoked ? "Restore" : "Revoke"));
      }
      return [nameIn(o, holderOf(k)) || holderOf(k), cell];
    })));
  }
  parts.push(h("h3", {}, "Scripts"));
  const scripts = model.world.scripts ?? [];
  if (!scripts.length) parts.push(h("p", { className: "soft" }, "No scripts. Meetings run through all stages."));
  for (const s of scripts) parts.push(h("pre", { className: "card" }, JSON.stringify(s, null, 2)));
  if (scripts.length && control.on) parts.push(removal("scripts"));
  $("world").replaceChildren(...parts);
}
