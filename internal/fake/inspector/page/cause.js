// What a report opens with: the likely cause of the test's failure.
function openCause() {
  if (model.violations.length) return showViolation();
  if ((model.world.faults ?? []).some(f => f.unused)) {
    choosePanel("faults");
    if (NARROW.matches) $("tabs").scrollIntoView();
    return;
  }
  if (model.failed) openEnd();
}

const LAST_REQUESTS = 8;

// openEnd shows what the service saw last. The test's own message is not here.
function openEnd() {
  const last = model.requests.at(-1), meetings = [...model.rows.values()].filter(hasFailedMeeting);
  const unfinished = [...model.rows.values()].filter(row => row.meeting && !row.gone && row.meeting.status !== "created" && !final(row.meeting.status));
  const parts = [h("h2", {}, "The test failed without a violation"), h("p", {}, "The test's own message is in the output of go test.")];
  parts.push(h("p", {}, h("b", {}, last ? `The test's last request was ${last.operation || `${last.method} ${last.path}`}${ofMeeting(last)}: ${result(last)}, ${span(Math.max(model.now - last.at, 0))} before the end.` : "The test made no request.")));
  for (const row of meetings.slice(0, 10)) parts.push(failureCard(row, h("button", { className: "link", onclick: () => openMeeting(row.id) }, row.meeting.title)));
  if (unfinished.length) parts.push(h("h3", {}, "Meetings that had not ended"), table(unfinished.slice(0, 10).map(row => [stateOf(row), h("button", { className: "link", onclick: () => openMeeting(row.id) }, row.meeting.title)])));
  if (last) parts.push(h("h3", {}, "Last requests"), table(model.requests.slice(-LAST_REQUESTS).reverse().map(r => [timeText(r.at), lastRequest(r)])));
  present("end", parts);
}

const ofMeeting = r => r.meeting_id ? ` of “${titleOf(r.meeting_id)}”` : "";

function lastRequest(r) {
  return h("span", { className: isRejected(r) ? "rejected" : "" }, markIcon(r.kind), " ",
    h("button", { className: "link", onclick: () => openMark(r) }, `#${r.seq} ${r.operation || `${r.method} ${r.path}`}`), " ", result(r), ofMeeting(r));
}

// failureCard says why a meeting failed.
function failureCard(row, title = "") {
  return h("div", { className: "card bad" }, h("p", {}, title, title ? " " : "", h("b", {}, `✕ ${row.meeting.status}`)), h("p", {}, row.meeting.reason ?? ""));
}

let nextFailure = 0;
function showFailure() {
  const failures = timeline.rows.filter(hasFailedMeeting);
  if (!failures.length) return;
  const row = failures[nextFailure++ % failures.length];
  timeline.choose(row);
  openMeeting(row.id);
}
