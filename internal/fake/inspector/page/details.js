// The details that a click opens.
const detail = { path: "", again: null };

// get fetches a path beside the page, or finds it in the report.
async function get(path) {
  if (model.live) {
    const [list, ...rest] = path.split("/"); // an id is whatever a client has sent
    const item = encodeURIComponent(rest.join("/"));
    const response = await fetch(item ? `${list}/${item}` : list);
    if (!response.ok) throw new Error(response.status === 404 ? "no longer kept" : `status ${response.status}`);
    return response.json();
  }
  const start = JSON.stringify(path).slice(0, -1).replaceAll("<", "\\u003c");
  const text = $("details").textContent, at = text.indexOf(`\n[${start}"`);
  if (at < 0) throw new Error("not kept in this report");
  const end = text.indexOf("\n", at + 1);
  return JSON.parse(text.slice(at + 1, end < 0 ? undefined : end))[1];
}

async function open(path, show) {
  const other = detail.path !== path;
  detail.path = path;
  detail.again = () => open(path, show);
  let content;
  try {
    content = show(await get(path));
  } catch (err) {
    content = [h("h2", {}, path), h("p", { className: "soft" }, String(err.message ?? err))];
  }
  if (detail.path === path) fillDetail(content, other); // else the user has opened another one meanwhile
}

// present opens details that need no request.
function present(path, content) {
  detail.path = path;
  detail.again = null;
  fillDetail(content, true);
}

function fillDetail(content, other) {
  const box = $("detail");
  box.hidden = false;
  box.replaceChildren(h("button", { className: "close", title: "Close (Esc)", ariaLabel: "Close", onclick: closeDetail }, "✕"), ...content);
  if (!other) return;
  box.scrollTop = 0;
  if (NARROW.matches) box.scrollIntoView({ block: "nearest" });
}

const NARROW = matchMedia("(max-width: 900px)");

function closeDetail() {
  if ($("detail").contains(document.activeElement)) $("rows").focus();
  detail.path = "";
  detail.again = null;
  timeline.mark = null;
  $("detail").hidden = true;
  requestList.draw();
  draw();
}

function note(text) {
  $("detail").hidden = false;
  $("detail").replaceChildren(h("p", {}, text));
}

// openMark opens a request or an action, and shows it in both lists.
function openMark(r) {
  if (!r.seq) return openMeeting(r.violation.meeting_id);
  timeline.mark = r;
  const row = model.rows.get(r.meeting_id);
  if (row) timeline.choose(row);
  timeline.see(r.at);
  requestList.see(r);
  say(describe(r));
  draw();
  present(`marks/${r.seq}`, r.action ? actionDetail(r) : requestDetail(r));
}

const openMeeting = id => open(`meetings/${id}`, meetingDetail);

function actionDetail(a) {
  const parts = [h("h2", {}, markIcon("action"), ` ${a.name}`), h("p", {}, "A call of the test or program changed the service.")];
  parts.push(h("ul", {}, ...(a.changes ?? []).map(text => h("li", {}, text))));
  const rows = [["At", `${timeText(a.at)}  (${fullTime(a.at)})`]];
  if (a.meeting_id) rows.push(["Meeting", h("button", { className: "link", onclick: () => openMeeting(a.meeting_id) }, titleOf(a.meeting_id))]);
  return [...parts, table(rows)];
}

function requestDetail(r) {
  const parts = [h("h2", {}, markIcon(r.kind), ` #${r.seq} `, r.operation || "unknown operation")];
  parts.push(h("p", {}, h("code", {}, `${r.method} ${r.path}`), "  →  ", h("b", { className: isRejected(r) ? "rejected" : "" }, result(r))));
  for (const v of r.violations) parts.push(h("div", { className: "card bad" }, h("p", {}, h("b", {}, VIOLATIONS[v.kind] ?? v.kind)), h("p", {}, v.text)));
  const rows = [["Arrived", `${timeText(r.at)}  (${fullTime(r.at)})`], ["Took", span(r.took)]];
  const before = r.operation === "meetings.get" && r.meeting_id ? pollBefore(r) : null;
  if (before) rows.push(["Previous poll, same key", h("span", {}, h("button", { className: "link", onclick: () => openMark(before) }, `#${before.seq}`), `, ${span(r.at - before.at)} before`, r.violations.length ? ` (the minimum is ${MIN_POLL_INTERVAL / 1000} s)` : "")]);
  if (r.meeting_id) rows.push(["Meeting", model.rows.get(r.meeting_id)?.meeting ? h("button", { className: "link", onclick: () => openMeeting(r.meeting_id) }, titleOf(r.meeting_id)) : r.meeting_id]);
  rows.push(["Key of", r.caller ? callerName(r.caller) : "unknown"]);
  if (r.fault) rows.push(["Fault applied", r.fault]);
  if (r.lost) rows.push(["Response", "the client did not get all of it"]);
  if (r.request_id) rows.push(["Request id", r.request_id]);
  if (r.bytes) rows.push(["Audio", `${r.bytes.toLocaleString("en")} bytes`]);
  rows.push(["Host", r.host]);
  parts.push(table(rows));
  const query = Object.entries(r.query ?? {}).flatMap(([name, values]) => values.map(v => [name, v]));
  if (query.length) parts.push(h("h3", {}, "Query"), table(query));
  parts.push(h("h3", {}, "Headers"), table(Object.entries(r.header ?? {}).flatMap(([name, values]) => values.map(v => [name, v]))));
  if (r.body !== undefined) parts.push(h("h3", {}, "Body"), h("pre", {}, typeof r.body === "string" ? r.body : JSON.stringify(r.body, null, 2)));
  return parts;
}

function meetingDetail(m) {
  const row = rowOf(m.id), parts = [h("h2", {}, m.title)];
  if (failed(m.status)) parts.push(failureCard(row));
  if (m.held) parts.push(h("div", { className: "card" }, h("p", {}, h("b", {}, `‖ held in ${m.status}`)), h("p", {}, "The meeting stays in this status until Release or Advance.")));
  if (control.on) parts.push(meetingButtons(m));
  for (const v of model.violations.filter(v => v.meeting_id === m.id).slice(0, 20)) {
    parts.push(h("div", { className: "card bad" }, h("p", {}, v.text), v.seq ? h("button", { className: "link", onclick: () => openViolation(v) }, `Show request #${v.seq}`) : ""));
  }
  const facts = [["Status", m.status], ["Id", m.id]];
  if (m.external_id) facts.push(["External id", m.external_id]);
  facts.push(["Date", [m.date, m.time].filter(Boolean).join(" ")], ["Organisation", m.organisation], ["Created by", callerName(m.creator)], ["Visibility", m.visibility]);
  if (m.participant_ids?.length) facts.push(["Participants", m.participant_ids.join(", ")]);
  if (m.shared_with?.length) facts.push(["Shared with", m.shared_with.join(", ")]);
  if (m.project_id) facts.push(["Project", m.project_id]);
  facts.push(["Template", m.template_id]);
  if (m.duration_seconds) facts.push(["Duration", `${m.duration_seconds} s`]);
  parts.push(table(facts), h("p", {},
    h("button", { className: "link", onclick: () => { axis.show(row.created, Math.max(row.marks.at(-1)?.at ?? 0, row.meeting?.history.at(-1).at ?? 0)); pressed(); draw(); } }, "Zoom to this meeting"), "   ",
    h("button", { className: "link", onclick: () => { $("f-meeting").value = m.id; filterChanged(); } }, `Show only its ${count(row.marks.length, "event")}`)));
  parts.push(h("h3", {}, "History"), table((m.history ?? []).map((s, i) => {
    const at = Date.parse(s.at), next = m.history[i + 1];
    return [s.status, timeText(at) + (next ? `, for ${span(Date.parse(next.at) - at)}` : "")];
  })));
  if (m.audio) parts.push(h("h3", {}, "Audio"), table([["Type", m.audio.content_type], ["Size", `${m.audio.size.toLocaleString("en")} bytes`], ["SHA-256", m.audio.sha256], ["Arrived", timeText(Date.parse(m.audio.received_at))]]));
  if (m.transcript) parts.push(h("h3", {}, "Transcript"), h("pre", {}, m.transcript));
  if (m.markdown) parts.push(h("h3", {}, "Minutes"), markdown(m.markdown));
  return parts;
}

// markdown renders the part of Markdown that minutes use: headings, lists,
// quotes, bold and italic words. The rest stays text.
function markdown(text) {
  const box = h("div", { className: "minutes" });
  let list = null;
  for (const line of text.split("\n")) {
    const [, sign, rest] = line.match(/^(#{1,6} |- |\* |> )?(.*)$/);
    if (sign === "- " || sign === "* ") {
      if (!list) box.append(list = h("ul"));
      list.append(h("li", {}, ...words(rest)));
      continue;
    }
    list = null;
    if (!rest.trim()) continue;
    box.append(h(sign === "> " ? "blockquote" : sign ? "h4" : "p", {}, ...words(rest)));
  }
  return box;
}

function words(text) {
  return text.split(/(\*\*[^*]+\*\*|\*[^*]+\*)/).map(part =>
    part.startsWith("**") && part.length > 4 ? h("b", {}, part.slice(2, -2)) : part.startsWith("*") && part.length > 2 ? h("i", {}, part.slice(1, -1)) : part);
}
