// What can be done by hand, where the page is served beside a control API.
const control = { on: false, faults: null, keys: [] };

// find looks for the control API, and for what only it tells.
async function findControl() {
  try {
    const index = await fetch(".", { headers: { Accept: "application/json" } });
    control.on = index.headers.get("Minutes-Fake") === "control";
    if (!control.on) return;
    model.name = (await index.json()).control_api_of;
    $("orders").hidden = false;
    await fetchWorld();
  } catch { /* a page without orders */ }
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
  const reply = await fetch(path, { method, headers: body === undefined ? {} : { "Content-Type": "application/json" }, body: body === undefined ? undefined : body });
  if (reply.ok) return;
  let text = `status ${reply.status}`;
  try {
    const { problem } = await reply.json();
    text = [problem.field, problem.message].filter(Boolean).join(": ");
  } catch { /* the status alone */ }
  throw new Error(text);
}

// act gives an order, and tells what came of it.
async function act(what, method, path, body) {
  try {
    await order(method, path, body);
    say(`${what}: done`);
    detail.again?.();
  } catch (err) {
    say(`${what}: ${err.message}`);
    const old = $("detail").querySelector(".refused");
    old?.remove();
    if (!$("detail").hidden) $("detail").prepend(h("div", { className: "card bad refused" }, `${what}: ${err.message}`));
  }
}

function meetingButtons(m) {
  const path = `meetings/${encodeURIComponent(m.id)}`, buttons = [];
  if (m.audio && !final(m.status)) {
    buttons.push(h("button", { onclick: () => act("Advance", "POST", `${path}/advance`) }, "Advance"), " ",
      h("button", { onclick: () => act("Advance", "POST", `${path}/advance`, '{"until":"minutes_ready"}') }, "Advance to the end"), " ");
    if (m.held) buttons.push(h("button", { onclick: () => act("Release", "POST", `${path}/release`) }, "Release"));
  }
  return h("p", {}, ...buttons);
}

const SAMPLES = {
  faults: {
    title: "Inject a fault", hint: "The requests that match go wrong: the nth of them, so many times (-1: always).",
    list: {
      "too many requests (429)": { match: { operation: "meetings.get", nth: 1 }, faults: [{ kind: "rate_limit", retry_after: "2" }] },
      "an error of the service (500)": { match: { operation: "meetings.create" }, faults: [{ kind: "refuse", code: "INTERNAL_ERROR" }] },
      "a proxy’s page (502)": { match: { operation: "meetings.list" }, faults: [{ kind: "respond", status: 502, content_type: "text/html", body: "<h1>Bad Gateway</h1>" }] },
      "a reset connection": { match: { operation: "meetings.get" }, faults: [{ kind: "reset" }] },
      "a lost reply": { match: { operation: "meetings.create" }, faults: [{ kind: "reset", after_effect: true }] },
      "an upload cut short": { match: { operation: "storage.put" }, faults: [{ kind: "reset_upload", bytes: 65536 }] },
      "storage is busy (503)": { match: { operation: "storage.put" }, faults: [{ kind: "refuse_upload", status: 503, code: "SlowDown" }] },
      "a reply cut short": { match: { operation: "meetings.list" }, faults: [{ kind: "truncate", bytes: 10 }] },
      "a slow reply": { match: { operation: "meetings.get" }, faults: [{ kind: "drip", over: "5s" }] },
      "a wait": { match: { path: "/v1/*", times: 3 }, faults: [{ kind: "delay", delay: "2s" }] },
    },
  },
  scripts: {
    title: "Script", hint: "What becomes of meetings from now on: of one title, external_id or meeting_id, or of all.",
    list: {
      "hold while transcribing": { title: "Weekly", hold: "transcribing" },
      "the minutes fail": { title: "Weekly", outcome: "minutes_failed" },
      "the transcription fails": { title: "Weekly", outcome: "transcription_failed" },
      "what is said": { title: "Weekly", transcript: "spk_0: We decided to ship on Monday.\nspk_1: I will write the notes." },
      "slowly": { stages: { prepare: "5s", transcribe: "20s", write: "10s" } },
      "nothing any more, for all meetings": {},
    },
  },
};

function askFor(path) {
  const { title, hint, list } = SAMPLES[path], box = $("sending");
  setText($("sendname"), title);
  setText($("sendhint"), hint);
  setText($("refusal"), "");
  $("samples").replaceChildren(...Object.keys(list).map(name => h("option", {}, name)));
  const choose = () => { $("body").value = JSON.stringify(list[$("samples").value], null, 2); };
  $("samples").onchange = choose;
  choose();
  $("send").onclick = async () => {
    try {
      await order("POST", path, $("body").value);
      box.close();
      await fetchWorld();
      choosePanel(path === "faults" ? "faults" : "world");
    } catch (err) {
      setText($("refusal"), err.message);
    }
  };
  box.showModal();
}

function fillFaults() {
  const list = control.on ? control.faults ?? [] : model.world.faults ?? [];
  const struck = list.reduce((sum, f) => sum + f.struck, 0);
  setText($("t-faults"), `Faults ${list.length ? `${struck}/${list.length}` : ""}`);
  $("t-faults").title = `${list.length} injected, struck ${struck} times`;
  $("faults").replaceChildren(...(list.length ? list.map(f => {
    const match = Object.entries(f.match ?? {}).map(([name, value]) => `${name} ${value}`).join(", ") || "every request";
    const card = h("div", { className: f.unused ? "card bad" : "card" },
      h("p", {}, markIcon("fault"), " ", h("b", {}, f.faults.map(one => one.kind + (one.after_effect ? " after effect" : "")).join(", then ")), " on ", match),
      h("p", {}, `struck ${f.struck} times; ${f.seen} requests matched`),
      h("pre", {}, f.faults.map(one => JSON.stringify(one)).join("\n")));
    if (f.unused) card.append(h("p", {}, f.unused));
    if (f.id && control.on) card.append(h("p", {}, h("button", { onclick: () => act("End the fault", "DELETE", `faults/${f.id}`).then(fetchWorld) }, "End it")));
    return card;
  }) : [h("p", { className: "soft" }, "None was injected.")]));
}

function fillWorld() {
  const parts = [];
  for (const o of model.world.organisations) {
    parts.push(h("h2", {}, o.name || o.id, o.refused ? ` (${o.refused})` : ""));
    parts.push(table([["Credits left", o.credits.toLocaleString("en")], ["Transcription left", `${o.transcribe_seconds.toLocaleString("en")} s`], ["Next top-up", o.next_reset_at || "none"]]));
    parts.push(h("h3", {}, "Keys"));
    const secrets = control.keys.filter(k => k.organisation === o.id);
    parts.push(table((o.callers ?? []).map((c, i) => {
      const key = secrets[i], cell = h("span", {}, c.revoked ? "revoked" : "in use");
      if (control.on && key) {
        const path = `organisations/${encodeURIComponent(o.id)}/keys/${encodeURIComponent(key.secret)}`;
        cell.append("  ", h("button", { onclick: () => act("Change the key", "PATCH", path, JSON.stringify({ revoked: !c.revoked })) }, c.revoked ? "Let in again" : "Revoke"));
      }
      return [`${c.name || c.id}`, cell];
    })));
  }
  parts.push(h("h3", {}, "Scripts"));
  const scripts = model.world.scripts ?? [];
  if (!scripts.length) parts.push(h("p", { className: "soft" }, "None: meetings take their natural course."));
  for (const s of scripts) parts.push(h("pre", { className: "card" }, JSON.stringify(s, null, 2)));
  $("world").replaceChildren(...parts);
}
