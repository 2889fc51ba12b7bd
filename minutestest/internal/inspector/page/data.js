// What there is to show. Everything has bounds, as on the server.
const MAX_MEETINGS = 10000, MAX_REQUESTS = 4096, FLOOR = 30000;

const model = {
  live: true, name: "", total: 0, now: Date.now(), offset: 0,
  rows: new Map(),       // by meeting id
  requests: [],          // by seq
  bySeq: new Map(),
  violations: [],
  violationsOf: new Map(), // by seq of their request
  rest: [],              // requests of no one meeting
  world: { organisations: [] },
};

const clockNow = () => model.live ? Date.now() + model.offset : model.now;

function forgetAll() {
  Object.assign(model, { rows: new Map(), requests: [], bySeq: new Map(), violations: [], violationsOf: new Map(), rest: [], total: 0 });
  axis.clear();
}

// take merges what is new, and returns the ids of the meetings it is about.
function take(news) {
  const touched = new Set();
  model.now = news.now;
  model.offset = news.now - Date.now();
  model.total = news.total;
  for (const m of news.meetings ?? []) {
    const row = rowOf(m.id);
    row.meeting = m;
    row.created = m.history[0].at;
    row.search = null;
    for (const s of m.history) axis.add(s.at);
    touched.add(m.id);
  }
  for (const v of news.violations ?? []) {
    v.time = Date.parse(v.at);
    model.violations.push(v);
    axis.add(v.time);
    if (v.seq) {
      if (!model.violationsOf.has(v.seq)) model.violationsOf.set(v.seq, []);
      model.violationsOf.get(v.seq).push(v);
      if (model.bySeq.has(v.seq)) classify(model.bySeq.get(v.seq));
    }
    if (v.meeting_id) {
      const row = rowOf(v.meeting_id, v.time);
      row.bad++;
      if (!v.seq) row.marks.push({ at: v.time, violation: v, kind: "violation", shown: true });
      touched.add(v.meeting_id);
    }
  }
  for (const r of news.requests ?? []) {
    classify(r);
    addBySeq(model.requests, r);
    model.bySeq.set(r.seq, r);
    axis.add(r.at);
    axis.add(r.at + r.took);
    const row = r.meeting_id ? rowOf(r.meeting_id, r.at) : null;
    addBySeq(row ? row.marks : model.rest, r);
    if (row) touched.add(r.meeting_id);
    if (row && r.operation === "meetings.delete" && r.status === 204) row.gone = true;
  }
  bound();
  if (news.world) model.world = news.world;
  axis.add(news.now);
  return touched;
}

function rowOf(id, at = 0) {
  let row = model.rows.get(id);
  if (!row) {
    row = { id, meeting: null, created: at, marks: [], bad: 0, gone: false, search: null };
    model.rows.set(id, row);
  }
  return row;
}

// addBySeq: nearly all come in order.
function addBySeq(list, r) {
  let i = list.length;
  while (i > 0 && list[i - 1].seq > r.seq) i--;
  list.splice(i, 0, r);
}

function bound() {
  for (const r of model.requests.splice(0, model.requests.length - MAX_REQUESTS)) {
    model.bySeq.delete(r.seq);
    const row = model.rows.get(r.meeting_id), marks = row ? row.marks : model.rest;
    const i = marks.indexOf(r);
    if (i >= 0) marks.splice(i, 1);
    if (row && !row.meeting && !row.marks.length) model.rows.delete(row.id);
  }
  if (model.rows.size > MAX_MEETINGS) {
    const old = [...model.rows.values()].sort((a, b) => a.created - b.created);
    for (const row of old.slice(0, model.rows.size - MAX_MEETINGS)) model.rows.delete(row.id);
  }
}

const KINDS = {
  look: "look at a meeting", read: "other reading", change: "change", upload: "upload",
  refusal: "refused or lost", fault: "fault", violation: "violation",
};

function classify(r) {
  r.violations = model.violationsOf.get(r.seq) ?? [];
  r.kind = r.violations.length ? "violation"
    : r.fault ? "fault"
    : r.status >= 400 || !r.status ? "refusal"
    : r.operation === "storage.put" ? "upload"
    : r.operation === "meetings.get" ? "look"
    : r.method === "GET" || r.method === "HEAD" ? "read" : "change";
  r.shown = passes(r);
}

// Filters.
const filter = { meeting: "", operation: "", status: "", caller: "" };
const filtersRequests = () => filter.operation || filter.status || filter.caller;

function passes(r) {
  if (filter.operation && (r.operation ?? "") !== filter.operation) return false;
  if (filter.caller && r.caller !== filter.caller) return false;
  switch (filter.status) {
    case "": return true;
    case "violation": return r.violations.length > 0;
    case "fault": return !!r.fault;
    default: return String(Math.floor((r.status ?? 0) / 100)) === filter.status;
  }
}

// found reports whether the meeting is one that is asked for by a text.
function found(row) {
  if (!filter.meeting) return true;
  row.search ??= `${row.meeting?.title ?? ""}\n${row.id}\n${row.meeting?.external_id ?? ""}`.toLowerCase();
  return row.search.includes(filter.meeting);
}

function rowShown(row) {
  if (!found(row)) return false;
  return !filtersRequests() || row.marks.some(r => r.shown);
}

// shownRows are the meetings, the newest first.
function shownRows() {
  return [...model.rows.values()].filter(rowShown).sort((a, b) => b.created - a.created);
}

// shownRequests are those of the list, the oldest first.
function shownRequests() {
  return model.requests.filter(r => r.shown && (!filter.meeting || model.rows.has(r.meeting_id) && found(model.rows.get(r.meeting_id))));
}

function refilter() {
  for (const r of model.requests) r.shown = passes(r);
}

// lookBefore is the same key's last look at the meeting before r.
function lookBefore(r) {
  const marks = model.rows.get(r.meeting_id)?.marks ?? [];
  let found = null;
  for (const other of marks) {
    if (other.operation === "meetings.get" && other.method === "GET" && other.caller === r.caller && other.status === 200 && !other.lost &&
      other.seq !== r.seq && other.at <= r.at && (!found || other.at > found.at)) found = other;
  }
  return found;
}

const titleOf = id => model.rows.get(id)?.meeting?.title ?? id ?? "";
const stateOf = row => row.gone ? "deleted" : row.meeting ? row.meeting.status.replaceAll("_", " ") : "not there";
const failed = status => /failed|blocked|rejected/.test(status);
const final = status => failed(status) || status === "minutes_ready";
const callerName = id => {
  for (const o of model.world.organisations) for (const c of o.callers ?? []) if (c.id === id && c.name) return `${c.name} (${id})`;
  return id;
};
