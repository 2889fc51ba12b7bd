// What there is to show. Everything has bounds, as on the server.
const MAX_MEETINGS = 10000, MAX_REQUESTS = 4096, MAX_ACTIONS = 1000, MIN_POLL_INTERVAL = 30000;

const model = {
  live: true, name: "", failed: false, total: 0, now: Date.now(), offset: 0,
  rows: new Map(),       // by meeting id
  requests: [],          // by seq
  ended: 0,              // how many requests there were
  bySeq: new Map(),
  violations: [],
  violationsOf: new Map(), // by seq of their request
  actions: [],           // calls of Script, Update, Advance and Release
  acted: 0,              // how many there were
  rest: [],              // requests and actions that belong to no meeting
  world: { organisations: [] },
};

const clockNow = () => model.live ? Date.now() + model.offset : model.now;

function forgetAll() {
  Object.assign(model, { rows: new Map(), requests: [], bySeq: new Map(), violations: [], violationsOf: new Map(), actions: [], acted: 0, rest: [], total: 0, ended: 0 });
  axis.clear();
}

// take merges news, and returns the ids of the meetings that it touches.
function take(news) {
  const touched = new Set();
  model.now = Date.parse(news.now);
  model.offset = model.now - Date.now();
  model.total = news.total;
  model.ended = news.ended;
  for (const m of news.meetings ?? []) {
    const row = rowOf(m.id);
    for (const s of m.history) s.at = Date.parse(s.at);
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
    r.at = Date.parse(r.at);
    r.took /= 1e6; // from nanoseconds
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
  for (const a of news.actions ?? []) {
    a.at = Date.parse(a.at);
    addAction(a);
    if (a.meeting_id) touched.add(a.meeting_id);
  }
  bound();
  if (news.world) {
    model.world = news.world;
    model.world.organisations ??= [];
  }
  axis.add(model.now);
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

// addAction gives an action a place between two requests, and makes it a mark
// of the timeline like them.
function addAction(a) {
  Object.assign(a, { seq: a.after + ++model.acted / 1e9, action: true, kind: "action", took: 0, violations: [], operation: a.name });
  a.shown = passes(a);
  addBySeq(model.actions, a);
  axis.add(a.at);
  addBySeq(a.meeting_id ? rowOf(a.meeting_id, a.at).marks : model.rest, a);
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
    const row = removeMark(r);
    if (row && !row.meeting && !row.marks.length) model.rows.delete(row.id);
  }
  for (const a of model.actions.splice(0, model.actions.length - MAX_ACTIONS)) removeMark(a);
  if (model.rows.size > MAX_MEETINGS) {
    const old = [...model.rows.values()].sort((a, b) => a.created - b.created);
    for (const row of old.slice(0, model.rows.size - MAX_MEETINGS)) model.rows.delete(row.id);
  }
}

// removeMark takes a request or an action off its row, and returns the row.
function removeMark(r) {
  const row = model.rows.get(r.meeting_id), marks = row ? row.marks : model.rest;
  const i = marks.indexOf(r);
  if (i >= 0) marks.splice(i, 1);
  return row;
}

const KINDS = {
  poll: "poll", read: "other read", change: "change", upload: "upload",
  action: "Script, Update, Advance", rejected: "rejected or lost", fault: "fault", violation: "violation",
};

function classify(r) {
  r.violations = model.violationsOf.get(r.seq) ?? [];
  r.kind = r.violations.length ? "violation"
    : r.fault ? "fault"
    : r.status >= 400 || !r.status ? "rejected"
    : r.operation === "storage.put" ? "upload"
    : r.operation === "meetings.get" ? "poll"
    : r.method === "GET" || r.method === "HEAD" ? "read" : "change";
  r.shown = passes(r);
}

// Filters.
const filter = { meeting: "", operation: "", status: "", caller: "" };
const filtersRequests = () => filter.operation || filter.status || filter.caller;

function passes(r) {
  if (r.action) return !filtersRequests();
  if (filter.operation && (r.operation ?? "") !== filter.operation) return false;
  if (filter.caller && r.caller !== filter.caller) return false;
  switch (filter.status) {
    case "": return true;
    case "violation": return r.violations.length > 0;
    case "fault": return !!r.fault;
    default: return String(Math.floor((r.status ?? 0) / 100)) === filter.status;
  }
}

// found reports whether a meeting passes the text filter.
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

// shownRequests are the requests and actions of the list, the oldest first.
function shownRequests() {
  const shown = r => r.shown && (!filter.meeting || model.rows.has(r.meeting_id) && found(model.rows.get(r.meeting_id)));
  const list = model.requests.filter(shown), actions = model.actions.filter(shown);
  return actions.length ? list.concat(actions).sort((a, b) => a.seq - b.seq) : list;
}

function refilter() {
  for (const r of model.requests) r.shown = passes(r);
  for (const a of model.actions) a.shown = passes(a);
}

// pollBefore is the previous poll of r's meeting with the same key.
function pollBefore(r) {
  const marks = model.rows.get(r.meeting_id)?.marks ?? [];
  let found = null;
  for (const other of marks) {
    if (other.operation === "meetings.get" && other.method === "GET" && other.caller === r.caller && other.status === 200 && !other.lost &&
      other.seq !== r.seq && other.at <= r.at && (!found || other.at > found.at)) found = other;
  }
  return found;
}

const titleOf = id => model.rows.get(id)?.meeting?.title ?? id ?? "";
const isRejected = r => !r.action && (r.status >= 400 || !r.status);
const count = (n, one, many = one + "s") => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
const hasFailedMeeting = row => !!row.meeting && !row.gone && failed(row.meeting.status);
const stateOf = row => row.gone ? "deleted" : row.meeting ? row.meeting.status.replaceAll("_", " ") : "not there";
const failed = status => /failed|blocked|rejected/.test(status);
const final = status => failed(status) || status === "minutes_ready";
const holderOf = key => key.integration_id || key.member_id;
const nameIn = (o, id) => [...o.integrations ?? [], ...o.members ?? []].find(who => who.id === id)?.name;
const callerName = id => {
  const name = model.world.organisations.map(o => nameIn(o, id)).find(name => name);
  return name ? `${name} (${id})` : id;
};
// rejectionOf says why all keys of an organisation are rejected.
const rejectionOf = o => o.suspended ? " (suspended)" : o.expired ? " (expired)" : o.api_disabled ? " (no API access)" : "";
