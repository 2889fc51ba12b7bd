// The page as a whole.
function $(id) { return document.getElementById(id); }

// h makes an element. A string becomes text, never markup.
function h(tag, props = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name in e && name !== "role") e[name] = value;
    else e.setAttribute(name, value);
  }
  e.append(...children);
  return e;
}

function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

function table(rows) {
  return h("table", {}, ...rows.map(([name, value]) => h("tr", {}, h("th", {}, name), h("td", {}, value ?? ""))));
}

function markIcon(kind) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("class", "mark");
  svg.setAttribute("viewBox", "-8 -8 16 16");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", KINDS[kind]);
  path.setAttribute("d", SHAPES[kind]);
  path.setAttribute("fill-rule", "evenodd");
  path.style.fill = `var(--${kind})`;
  svg.append(path);
  return svg;
}

const say = text => setText($("said"), text);

let drawing = false;
function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    timeline.draw();
  });
}

// update shows new data, once a frame.
let due = null;
function update(touched) {
  if (due) {
    for (const id of touched) due.add(id);
    return;
  }
  due = touched;
  requestAnimationFrame(() => {
    const ids = due;
    due = null;
    fill();
    if (detail.again && [...ids].some(id => detail.path === `meetings/${id}`)) detail.again();
  });
}

function fill() {
  timeline.fill();
  requestList.fill();
  requestList.draw();
  fillViolations();
  fillOperations();
  fillCounts();
  timeline.draw();
}

function fillCounts() {
  const shown = timeline.rows.length, all = model.rows.size;
  const meetings = `${shown === all ? "" : `${shown.toLocaleString("en")} of `}${count(all, "meeting")}`;
  const more = model.total > all ? ` (the newest of ${model.total.toLocaleString("en")})` : "";
  const list = requestList.shown.filter(r => !r.action), requests = model.requests.length, rejected = list.filter(isRejected).length;
  setText($("counts"), `${meetings}${more} · ${list.length === requests ? "" : `${list.length.toLocaleString("en")} of `}${count(requests, "request")}${model.ended > requests ? ` (the newest of ${model.ended.toLocaleString("en")})` : ""}${rejected ? `, ${rejected.toLocaleString("en")} rejected or lost` : ""}`);
  setText($("t-requests"), `Requests ${list.length || ""}`);
  const failures = timeline.rows.filter(hasFailedMeeting).length;
  $("failures").hidden = failures === 0;
  setText($("failures"), `✕ ${failures.toLocaleString("en")} failed`);
}

const known = { operations: new Set(), callers: new Set() };
function fillOperations() {
  for (const r of model.requests) {
    if (r.operation && !known.operations.has(r.operation)) {
      known.operations.add(r.operation);
      $("f-operation").append(h("option", {}, r.operation));
    }
    if (r.caller && !known.callers.has(r.caller)) {
      known.callers.add(r.caller);
      $("f-caller").append(h("option", { value: r.caller }, callerName(r.caller)));
    }
  }
}

function filterChanged() {
  filter.meeting = $("f-meeting").value.trim().toLowerCase();
  filter.operation = $("f-operation").value;
  filter.status = $("f-status").value;
  filter.caller = $("f-caller").value;
  $("clear").hidden = !filter.meeting && !filtersRequests();
  refilter();
  $("rows").scrollTop = 0;
  fill();
}

const PANELS = ["requests", "violations", "faults", "world"];
function choosePanel(name) {
  for (const panel of PANELS) {
    $(panel).hidden = panel !== name;
    $("t-" + panel).setAttribute("aria-selected", panel === name);
    $("t-" + panel).tabIndex = panel === name ? 0 : -1;
  }
  if (name === "requests") requestList.draw();
}

// pressed runs after the user has zoomed or moved the time axis.
function pressed() {
  axis.untouched = false;
  showPressed();
}

function showPressed() {
  $("follow").setAttribute("aria-pressed", axis.follow);
  $("fit").setAttribute("aria-pressed", axis.whole && !axis.follow);
  draw();
}

const zoom = factor => { axis.zoom(factor); pressed(); };
function fit() { axis.whole = true; axis.follow = false; pressed(); }
function follow() {
  axis.follow = !axis.follow;
  if (axis.follow) { axis.whole = false; axis.from = axis.to - Math.min(Math.max(axis.to - axis.from, 1000), LATELY); }
  pressed();
}

let nextViolation = 0;
function showViolation() {
  if (!model.violations.length) return;
  choosePanel("violations");
  const v = model.violations[nextViolation++ % model.violations.length];
  if (v.seq) openViolation(v);
  else if (v.meeting_id) openMeeting(v.meeting_id);
}

const SHORTCUTS = [
  [["/"], "filter by meeting", () => $("f-meeting").focus()],
  [["t"], "to the timeline", () => $("rows").focus()],
  [["r"], "to the requests", () => { choosePanel("requests"); $("list").focus(); }],
  [["v"], "the next violation", showViolation],
  [["x"], "the next failed meeting", showFailure],
  [["+", "="], "zoom in", () => zoom(0.5)],
  [["-"], "zoom out", () => zoom(2)],
  [["[", ","], "earlier", () => { axis.pan(-0.25); pressed(); }],
  [["]", "."], "later", () => { axis.pan(0.25); pressed(); }],
  [["f"], "show all", fit],
  [["l"], "follow live", () => model.live && follow()],
  [["Escape"], "close the details", closeDetail],
  [["?"], "this list", () => $("keys").showModal()],
];

function startKeys() {
  $("keylist").append(...SHORTCUTS.flatMap(([keys, what]) => [h("dt", {}, ...keys.flatMap(k => [h("kbd", {}, k), " "])), h("dd", {}, what)]),
    h("dt", {}, h("kbd", {}, "↑"), " ", h("kbd", {}, "↓"), " ", h("kbd", {}, "←"), " ", h("kbd", {}, "→")), h("dd", {}, "in the timeline: meetings, and the requests of a meeting"),
    h("dt", {}, h("kbd", {}, "Enter")), h("dd", {}, "to the details"));
  document.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
    if (e.target.closest("input, textarea, select") && e.key !== "Escape") return;
    const found = SHORTCUTS.find(([keys]) => keys.includes(e.key));
    if (!found) return;
    found[2]();
    e.preventDefault();
  });
}

function start() {
  $("legend").append(...Object.entries(KINDS).map(([kind, name]) => h("span", {}, markIcon(kind), " ", name)));
  timeline.start();
  requestList.start();
  startKeys();
  $("filters").addEventListener("input", filterChanged);
  $("filters").addEventListener("reset", () => setTimeout(filterChanged));
  $("filters").addEventListener("submit", e => e.preventDefault());
  for (const panel of PANELS) $("t-" + panel).onclick = () => choosePanel(panel);
  $("tabs").addEventListener("keydown", e => {
    const i = PANELS.findIndex(p => !$(p).hidden) + ({ ArrowRight: 1, ArrowLeft: -1 }[e.key] ?? 0);
    if (e.key !== "ArrowRight" && e.key !== "ArrowLeft") return;
    const name = PANELS[(i + PANELS.length) % PANELS.length];
    choosePanel(name);
    $("t-" + name).focus();
  });
  $("alarm").onclick = showViolation;
  $("failures").onclick = showFailure;
  $("in").onclick = () => zoom(0.5);
  $("out").onclick = () => zoom(2);
  $("fit").onclick = fit;
  $("follow").onclick = follow;
  $("help").onclick = () => $("keys").showModal();
  $("inject").onclick = () => askFor("faults");
  $("script").onclick = () => askFor("scripts");
  $("clock").onclick = () => askFor("clock");
  $("reset").onclick = () => confirm("Reset the service? This deletes all meetings, scripts, faults and requests.") && act("Reset", "POST", "reset");
  choosePanel("requests");
  const state = $("state");
  model.live = !state;
  if (state) report(JSON.parse(state.textContent));
  else live();
}

function report(state) {
  model.name = state.name ?? "";
  model.failed = !!state.failed;
  setText($("source"), `${model.name ? model.name + ", " : ""}report of ${fullTime(state.now).slice(0, 19)} UTC`);
  document.title = `${model.name || "Report"} – Meeting Minutes Service`;
  take(state);
  fill();
  fillFaults();
  fillWorld();
  pressed();
  performance.mark("shown");
  openCause();
}

function live() {
  $("follow").hidden = false;
  const show = (text, name) => { setText($("source"), `${text}${model.name ? `, ${model.name}` : ""}`); $("source").className = name; };
  show("connecting", "lost");
  findControl();
  const receive = (event, all) => {
    const news = JSON.parse(event.data);
    if (all) {
      forgetAll();
      closeDetail();
      control.faults = null;
    }
    update(take(news));
    show("live", "live");
    if (!news.world) return;
    fillFaults();
    fillWorld();
    fetchWorld().catch(() => {});
  };
  const connect = () => {
    const source = new EventSource("events");
    source.addEventListener("state", e => { receive(e, true); requestAnimationFrame(() => performance.mark("shown")); });
    source.addEventListener("news", e => receive(e, false));
    source.onerror = () => {
      show("not connected", "lost");
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
    };
  };
  connect();
  setInterval(() => { // time passes without news
    if (document.hidden) return;
    axis.add(clockNow());
    draw();
  }, 250);
  showPressed();
}

start();
