// The lists beside the timeline.
const ITEM = 44;

const requestList = {
  shown: [], items: [],

  start() {
    this.box = $("list");
    this.space = h("div");
    this.box.append(this.space);
    this.box.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.box.addEventListener("keydown", e => {
      const at = this.shown.indexOf(timeline.mark), page = Math.floor(this.box.clientHeight / ITEM) - 1;
      const steps = { ArrowDown: -1, ArrowUp: 1, PageDown: -page, PageUp: page, Home: this.shown.length, End: -this.shown.length };
      if (e.key in steps && this.shown.length) {
        const from = at < 0 ? this.shown.length : at;
        openMark(this.shown[Math.min(Math.max(from + steps[e.key], 0), this.shown.length - 1)]);
      } else if (e.key === "Enter") {
        $("detail").focus();
      } else {
        return;
      }
      e.preventDefault();
    });
  },

  fill() {
    const top = this.shown.at(-1)?.seq;
    this.shown = shownRequests();
    this.space.style.height = this.shown.length * ITEM + "px";
    if (this.box.scrollTop > 0 && top !== undefined) { // the visible items stay in place
      const before = this.shown.length - 1 - this.shown.findLastIndex(r => r.seq <= top);
      if (before > 0 && before < this.shown.length) this.box.scrollTop += before * ITEM;
    }
  },

  draw() {
    const first = Math.floor(this.box.scrollTop / ITEM), number = Math.ceil(this.box.clientHeight / ITEM) + 1;
    while (this.items.length < number) this.items.push(this.newItem());
    this.items.forEach((item, i) => {
      const r = this.shown[this.shown.length - 1 - first - i];
      item.hidden = !r || i >= number;
      if (item.hidden) return;
      if (item.request !== r || item.kind !== r.kind) this.fillItem(item, r);
      setText(item.what, r.action ? actionText(r) : r.meeting_id ? titleOf(r.meeting_id) : "");
      item.style.transform = `translateY(${(first + i) * ITEM}px)`;
      item.setAttribute("aria-selected", r === timeline.mark);
      if (r === timeline.mark) this.box.setAttribute("aria-activedescendant", item.id);
    });
  },

  // newItem has two lines: operation and status; number, time and meeting.
  newItem() {
    const parts = ["icon", "op", "status", "seq", "at", "what"].map(name => h("span", { className: name }));
    const item = h("div", { className: "item", role: "option" }, ...parts);
    item.what = parts[5];
    item.addEventListener("click", () => openMark(item.request));
    this.box.append(item);
    return item;
  },

  fillItem(item, r) {
    const [icon, op, status, seq, at] = item.children;
    item.request = r;
    item.kind = r.kind;
    item.id = "request-" + r.seq;
    icon.replaceChildren(markIcon(r.kind));
    setText(op, r.operation || r.method + " " + r.path);
    setText(status, r.action ? "" : result(r) + (r.fault ? " ⚡" : ""));
    setText(seq, r.action ? "" : "#" + r.seq);
    setText(at, timeText(r.at));
    item.classList.toggle("bad", r.kind === "violation");
    item.classList.toggle("rejected", isRejected(r));
    item.title = describe(r);
  },

  see(r) {
    const i = this.shown.length - 1 - this.shown.indexOf(r), y = i * ITEM;
    if (i >= this.shown.length) return;
    if (y < this.box.scrollTop || y + ITEM > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = Math.max(y - this.box.clientHeight / 2, 0);
    this.draw();
  },
};

const actionText = a => [a.meeting_id && titleOf(a.meeting_id), (a.changes ?? []).join("; ")].filter(Boolean).join(": ");

const VIOLATIONS = {
  poll: "The client polled a meeting again after less than thirty seconds.",
  credential: "The client sent its API key to storage.",
  repeat: "The client sent a create again that may have taken effect the first time.",
  upload_url: "The client asked for an upload URL for a meeting that has its audio.",
  open_body: "The client neither read a response to its end nor closed it.",
};

function fillViolations() {
  const n = model.violations.length;
  $("alarm").hidden = n === 0;
  setText($("alarm"), count(n, "violation"));
  setText($("t-violations"), `Violations ${n || ""}`);
  if ($("violations").count === n && n) return;
  $("violations").count = n;
  $("violations").replaceChildren(...(n ? model.violations.slice(-200).map(violationCard) : [h("p", { className: "soft" }, "No violations.")]));
  if (n > 200) $("violations").prepend(h("p", { className: "soft" }, `The last 200 of ${n}.`));
}

function violationCard(v) {
  const card = h("div", { className: "card bad" },
    h("p", {}, markIcon("violation"), " ", h("b", {}, VIOLATIONS[v.kind] ?? v.kind)),
    h("p", {}, v.text),
    h("p", { className: "soft" }, `${timeText(v.time)}${v.meeting_id ? `, meeting “${titleOf(v.meeting_id)}”` : ""}`));
  if (v.seq) card.append(h("button", { className: "link", onclick: () => openViolation(v) }, `Show request #${v.seq}${v.operation ? `, ${v.operation}` : ""}`));
  else if (v.meeting_id) card.append(h("button", { className: "link", onclick: () => openMeeting(v.meeting_id) }, "Show the meeting"));
  return card;
}

// openViolation opens the request of a violation, with the minute around it.
function openViolation(v) {
  const r = model.bySeq.get(v.seq);
  if (!r) return note(`Request #${v.seq} is no longer kept.`);
  const before = v.kind === "poll" && pollBefore(r);
  axis.around(r.at, before ? before.at : r.at);
  if (before && before.at < r.at && axis.x(r.at, timeline.width) - axis.x(before.at, timeline.width) < 30) axis.show(before.at, r.at);
  pressed();
  openMark(r);
}
