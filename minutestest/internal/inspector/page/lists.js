// The lists beside the timeline.
const ITEM = 24;

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
    if (this.box.scrollTop > 0 && top !== undefined) { // what is read stays where it is
      const before = this.shown.length - 1 - this.shown.findLastIndex(r => r.seq <= top);
      if (before > 0 && before < this.shown.length) this.box.scrollTop += before * ITEM;
    }
  },

  draw() {
    const first = Math.floor(this.box.scrollTop / ITEM), count = Math.ceil(this.box.clientHeight / ITEM) + 1;
    while (this.items.length < count) {
      const item = h("div", { className: "item", role: "option" },
        h("span", { className: "seq" }), h("span", { className: "at" }), h("span", { className: "icon" }), h("span", { className: "op" }), h("span", { className: "what" }), h("span", { className: "status" }));
      item.addEventListener("click", () => openMark(item.request));
      this.box.append(item);
      this.items.push(item);
    }
    this.items.forEach((item, i) => {
      const r = this.shown[this.shown.length - 1 - first - i];
      item.hidden = !r || i >= count;
      if (item.hidden) return;
      const [seq, at, icon, op, what, status] = item.children;
      if (item.request !== r || item.kind !== r.kind) {
        item.request = r;
        item.kind = r.kind;
        item.id = "request-" + r.seq;
        setText(seq, "#" + r.seq);
        setText(at, timeText(r.at));
        icon.replaceChildren(markIcon(r.kind));
        setText(op, r.operation || r.method + " " + r.path);
        setText(status, answer(r) + (r.fault ? " ⚡" : ""));
        item.classList.toggle("bad", r.kind === "violation");
        item.title = describe(r);
      }
      setText(what, r.meeting_id ? titleOf(r.meeting_id) : "");
      item.style.transform = `translateY(${(first + i) * ITEM}px)`;
      item.setAttribute("aria-selected", r === timeline.mark);
      if (r === timeline.mark) this.box.setAttribute("aria-activedescendant", item.id);
    });
  },

  see(r) {
    const i = this.shown.length - 1 - this.shown.indexOf(r), y = i * ITEM;
    if (i >= this.shown.length) return;
    if (y < this.box.scrollTop || y + ITEM > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = Math.max(y - this.box.clientHeight / 2, 0);
    this.draw();
  },
};

const VIOLATIONS = {
  poll: "A meeting was looked at again before thirty seconds were over.",
  credential: "The API key was sent to storage.",
  repeat: "A request was sent again that may have taken effect the first time.",
  upload_url: "An upload URL was asked for a meeting that has its audio.",
  open_body: "A reply was neither read to its end nor closed.",
};

function fillViolations() {
  const n = model.violations.length;
  $("alarm").hidden = n === 0;
  setText($("alarm"), n === 1 ? "1 violation" : `${n} violations`);
  setText($("t-violations"), `Violations ${n || ""}`);
  if ($("violations").count === n && n) return;
  $("violations").count = n;
  $("violations").replaceChildren(...(n ? model.violations.slice(-200).map(v => {
    const card = h("div", { className: "card bad" },
      h("p", {}, markIcon("violation"), " ", h("b", {}, VIOLATIONS[v.kind] ?? v.kind)),
      h("p", {}, v.text),
      h("p", { className: "soft" }, `${timeText(v.time)}${v.meeting_id ? `, meeting “${titleOf(v.meeting_id)}”` : ""}`));
    if (v.seq) card.append(h("button", { className: "link", onclick: () => openViolation(v) }, `Show request #${v.seq}${v.operation ? `, ${v.operation}` : ""}`));
    else if (v.meeting_id) card.append(h("button", { className: "link", onclick: () => openMeeting(v.meeting_id) }, "Show the meeting"));
    return card;
  }) : [h("p", { className: "soft" }, "None: no client has done what the service asks clients not to do.")]));
  if (n > 200) $("violations").prepend(h("p", { className: "soft" }, `The last 200 of ${n}.`));
}

function openViolation(v) {
  const r = model.bySeq.get(v.seq);
  if (!r) return note(`Request #${v.seq} is not kept any more.`);
  const before = v.kind === "poll" && lookBefore(r);
  if (before && axis.x(r.at, timeline.width) - axis.x(before.at, timeline.width) < 30) axis.show(before.at, r.at);
  pressed();
  openMark(r);
}
