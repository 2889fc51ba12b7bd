// The timeline: labels are elements, the rest is drawn. Only visible rows exist.
const ROW = 24, CHART = 44, REST = 24;

// Each kind of mark has a shape as well as a colour. The centre is 0, 0.
const SHAPES = {
  poll: "M0-4.5A4.5 4.5 0 1 1 0 4.5A4.5 4.5 0 1 1 0-4.5M0-2.2A2.2 2.2 0 1 0 0 2.2A2.2 2.2 0 1 0 0-2.2",
  read: "M0-2.2A2.2 2.2 0 1 1 0 2.2A2.2 2.2 0 1 1 0-2.2",
  change: "M-4-4H4V4H-4Z",
  upload: "M0-5.5L5.5 4.5H-5.5Z",
  action: "M0-6L5 0L0 6L-5 0ZM0-2.8L2.2 0L0 2.8L-2.2 0Z",
  rejected: "M-4.6-3.2L-3.2-4.6L0-1.4L3.2-4.6L4.6-3.2L1.4 0L4.6 3.2L3.2 4.6L0 1.4L-3.2 4.6L-4.6 3.2L-1.4 0Z",
  fault: "M1.5-7L-5 1.2H-.6L-1.5 7L5-1.2H.6Z",
  violation: "M-3.3-8H3.3L8-3.3V3.3L3.3 8H-3.3L-8 3.3V-3.3ZM-1.3-5.5L-.8 1.6H.8L1.3-5.5ZM-1.1 3V5.4H1.1V3Z",
};
const PATHS = Object.fromEntries(Object.entries(SHAPES).map(([kind, d]) => [kind, new Path2D(d)]));
const ORDER = Object.keys(SHAPES); // the most important is drawn last
const STAGES = ["audio_uploaded", "transcribing", "transcribed", "generating_minutes"];

const timeline = {
  rows: [], chosen: null, mark: null, labels: [], colours: {}, width: 0, height: 0,

  start() {
    this.box = $("rows");
    this.bars = $("bars");
    this.head = $("axis");
    this.box.addEventListener("scroll", () => draw());
    new ResizeObserver(() => this.measure()).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.paint(); draw(); });
    this.paint();
    this.measure();
    for (const canvas of [this.bars, this.head]) {
      canvas.addEventListener("pointermove", e => this.hover(e));
      canvas.addEventListener("pointerleave", () => { $("tip").hidden = true; });
      canvas.addEventListener("pointerdown", e => this.drag(e));
      canvas.addEventListener("wheel", e => this.wheel(e), { passive: false });
    }
    this.box.addEventListener("keydown", e => this.key(e));
  },

  paint() {
    const style = getComputedStyle(document.documentElement);
    this.font = getComputedStyle(document.body).fontFamily;
    for (const name of [...ORDER, ...STAGES, "created", "minutes_ready", "failed", "bg", "ink", "soft", "line", "grid", "pick", "chart", "panel"])
      this.colours[name] = style.getPropertyValue("--" + name).trim();
  },

  measure() {
    this.width = Math.max(this.box.clientWidth - $("corner").offsetWidth, 50);
    this.height = this.box.clientHeight;
    for (const [canvas, height] of [[this.bars, this.height], [this.head, $("head").clientHeight]]) {
      const dots = devicePixelRatio || 1;
      canvas.width = this.width * dots;
      canvas.height = height * dots;
      canvas.style.width = this.width + "px";
      canvas.style.height = height + "px";
      canvas.getContext("2d").setTransform(dots, 0, 0, dots, 0, 0);
    }
    this.bars.style.marginBottom = -this.height + "px";
    draw();
  },

  // fill takes new data or another filter.
  fill() {
    this.rows = shownRows();
    this.place = new Map(this.rows.map((row, i) => [row.id, i]));
    $("space").style.height = this.rows.length * ROW + "px";
    $("none").hidden = this.rows.length > 0;
    $("none").textContent = model.rows.size ? "No meeting matches the filters." : "No meetings yet. Each new meeting gets a line here.";
    const times = model.requests.filter(r => r.shown).map(r => r.at).sort((a, b) => a - b);
    this.times = Float64Array.from(times);
  },

  draw() {
    const following = axis.follow;
    axis.lay();
    if (axis.follow !== following) showPressed();
    const first = Math.floor(this.box.scrollTop / ROW), last = Math.min(first + Math.ceil(this.height / ROW) + 1, this.rows.length);
    this.drawLabels(first, last);
    this.drawBars(first, last);
    this.drawHead();
  },

  drawLabels(first, last) {
    while (this.labels.length < last - first) {
      const label = h("div", { className: "row", role: "option" }, h("span", { className: "sign" }), h("span", { className: "name" }), " ", h("span", { className: "state" })); // with a space, or the words run together
      label.addEventListener("click", () => { const row = label.row; this.choose(row); openMeeting(row.id); });
      label.addEventListener("pointermove", e => tip(e, [label.row.meeting?.title, label.row.id, stateOf(label.row), label.row.meeting?.reason].filter(Boolean).join("\n")));
      label.addEventListener("pointerleave", () => { $("tip").hidden = true; });
      $("space").append(label);
      this.labels.push(label);
    }
    this.labels.forEach((label, i) => {
      const row = this.rows[first + i];
      label.hidden = !row || first + i >= last;
      if (label.hidden) return;
      label.row = row;
      label.id = "row-" + (first + i);
      label.style.transform = `translateY(${(first + i) * ROW}px)`;
      const [sign, name, status] = label.children, held = row.meeting?.held && !row.gone, hasFailed = hasFailedMeeting(row);
      const ready = row.meeting?.status === "minutes_ready", state = stateOf(row) + (held ? ", held" : "");
      setText(sign, row.bad ? "!" : held ? "‖" : hasFailed ? "✕" : ready ? "✓" : "");
      setText(name, row.meeting?.title ?? row.id);
      setText(status, stateOf(row));
      label.classList.toggle("bad", row.bad > 0);
      label.classList.toggle("failed", hasFailed);
      label.classList.toggle("ready", ready);
      label.classList.toggle("gone", row.gone);
      label.setAttribute("aria-selected", row.id === this.chosen);
      label.setAttribute("aria-setsize", this.rows.length);
      label.setAttribute("aria-posinset", first + i + 1);
      label.setAttribute("aria-label", `${row.meeting?.title ?? row.id} ${state}, ${count(row.marks.length, "request")}${row.bad ? `, ${count(row.bad, "violation")}` : ""}`);
      if (row.id === this.chosen) this.box.setAttribute("aria-activedescendant", label.id);
    });
  },

  drawBars(first, last) {
    const c = this.bars.getContext("2d"), { width, colours } = this, top = this.box.scrollTop;
    c.clearRect(0, 0, width, this.height);
    c.font = `11px ${this.font}`;
    c.textBaseline = "middle";
    this.drawGrid(c, 0, this.height);
    for (let i = first; i < last; i++) {
      const row = this.rows[i], y = i * ROW - top;
      if (row.id === this.chosen) {
        c.fillStyle = colours.pick;
        c.globalAlpha = 0.6;
        c.fillRect(0, y, width, ROW);
        c.globalAlpha = 1;
      }
      c.fillStyle = colours.grid;
      c.fillRect(0, y + ROW - 1, width, 1);
      if (row.meeting) this.drawStages(c, row, y);
      if (row.bad) this.drawTooSoon(c, row, y);
      this.drawMarks(c, row.marks, y + ROW / 2);
    }
    if (!this.rows.length) c.clearRect(0, 0, width, this.height);
  },

  drawGrid(c, y, height) {
    c.fillStyle = this.colours.grid;
    for (const { t } of axis.ticks(this.width)) c.fillRect(Math.round(axis.x(t, this.width)), y, 1, height);
    c.fillStyle = this.colours.action;
    c.globalAlpha = 0.4;
    for (const a of model.rest) { // an action that concerns no single meeting
      if (!a.action || !a.shown) continue;
      const x = Math.round(axis.x(a.at, this.width));
      for (let d = y; d < y + height; d += 6) c.fillRect(x, d, 1, 3);
    }
    c.globalAlpha = 1;
    for (const s of axis.spans.slice(1)) { // where time was cut out
      const x = axis.x(s.a, this.width) - axis.cut / (axis.to - axis.from) * this.width / 2;
      c.fillStyle = this.colours.line;
      c.fillRect(x - 2, y, 4, height);
    }
  },

  drawStages(c, row, y) {
    const { width, colours } = this, history = row.meeting.history, end = axis.spanOf(history.at(-1).at)?.b ?? 0;
    for (let i = 0; i < history.length; i++) {
      const { status, at } = history[i], until = history[i + 1]?.at ?? Math.max(Math.min(clockNow(), end), at);
      let x = axis.x(at, width), to = axis.x(until, width);
      if (to < -2 || x > width) continue;
      x = Math.max(x, -20);
      to = Math.min(Math.max(to, x + 1.5), width + 20);
      if (status === "created" || final(status)) {
        c.fillStyle = failed(status) ? colours.failed : colours[status];
        if (failed(status)) for (let d = x; d < to; d += 7) c.fillRect(d, y + 11, Math.min(4, to - d), 2);
        else c.fillRect(x, y + 11, to - x, 2);
        if (final(status)) c.fillRect(x - 1, y + 6, 2, 12);
        continue;
      }
      c.fillStyle = colours[status] ?? colours.created;
      c.fillRect(x, y + 4, to - x, 16);
      const held = row.meeting.held && i === history.length - 1 && !row.gone;
      if (held) { // hatched
        c.save();
        c.beginPath();
        c.rect(x, y + 4, to - x, 16);
        c.clip();
        c.strokeStyle = colours.soft;
        c.globalAlpha = 0.45;
        c.beginPath();
        for (let d = x - 16; d < to; d += 9) { c.moveTo(d, y + 20); c.lineTo(d + 16, y + 4); }
        c.stroke();
        c.restore();
      }
      c.fillStyle = colours.soft;
      c.fillRect(x, y + 4, 1, 16);
      if (to - x < 50) continue;
      // The name stands where no mark does.
      const name = status.replaceAll("_", " ") + (held ? " ‖ held" : ""), wide = c.measureText(name).width;
      let left = Math.max(x, 0) + 10;
      for (const r of row.marks) {
        const mark = axis.x(r.at, width);
        if (r.shown && mark > left - 10 && mark < left + wide + 10) left = mark + 12;
      }
      c.fillStyle = colours.ink;
      if (left + wide + 4 < to) c.fillText(name, left, y + ROW / 2 + 0.5);
    }
  },

  // drawTooSoon draws the interval of a poll that came too soon.
  drawTooSoon(c, row, y) {
    for (const r of row.marks) {
      if (!r.seq || !r.violations.some(v => v.kind === "poll")) continue;
      const before = pollBefore(r);
      if (!before) continue;
      const a = axis.x(before.at, this.width), b = axis.x(r.at, this.width), text = span(r.at - before.at);
      c.fillStyle = this.colours.violation;
      c.fillRect(a, y + ROW - 4, b - a, 2);
      c.fillRect(a, y + ROW - 7, 1.5, 5);
      if (b - a > c.measureText(text).width + 26) {
        c.font = `600 11px ${this.font}`;
        const wide = c.measureText(text).width, left = (a + b - wide) / 2;
        c.fillStyle = this.colours.bg;
        c.fillRect(left - 4, y + 4, wide + 8, 14);
        c.fillStyle = this.colours.violation;
        c.fillText(text, left, y + ROW - 12);
        c.font = `11px ${this.font}`;
      }
    }
  },

  drawMarks(c, marks, y) {
    const { width, colours } = this;
    const at = new Map(ORDER.map(kind => [kind, []]));
    for (const r of marks) {
      if (!r.shown) continue;
      const x = axis.x(r.at, width);
      if (x > -10 && x < width + 10) at.get(r.kind).push(x);
    }
    for (const [kind, xs] of at) {
      let last = -100;
      for (const x of xs) {
        if (Math.abs(x - last) < 0.5) continue; // one on the other
        last = x;
        c.save();
        c.translate(x, y);
        c.strokeStyle = colours.bg;
        c.lineWidth = 2;
        c.stroke(PATHS[kind]);
        c.fillStyle = colours[kind];
        c.fill(PATHS[kind], "evenodd");
        c.restore();
      }
    }
    const r = this.mark;
    if (r && marks.includes(r)) {
      c.strokeStyle = colours.ink;
      c.lineWidth = 1.5;
      c.strokeRect(axis.x(r.at, width) - 9.5, y - 10.5, 19, 21);
    }
  },

  drawHead() {
    const c = this.head.getContext("2d"), { width, colours, times } = this, height = $("head").clientHeight;
    c.clearRect(0, 0, width, height);
    c.font = `11px ${this.font}`;
    this.drawGrid(c, 0, height);
    // The minute up to each point of the picture.
    let first = 0, next = 0, most = 1;
    const columns = Math.ceil(width / 2), counts = new Float64Array(columns);
    for (let i = 0; i < columns && times?.length; i++) {
      const u = axis.from + (i * 2 + 1) / width * (axis.to - axis.from);
      const s = axis.spans.findLast(s => u >= s.u) ?? axis.spans[0], t = s.a + u - s.u;
      if (t > s.b + 60000) continue;
      while (next < times.length && times[next] <= t) next++;
      while (first < next && times[first] <= t - 60000) first++;
      counts[i] = next - first;
      most = Math.max(most, counts[i]);
    }
    c.fillStyle = colours.chart;
    counts.forEach((n, i) => { if (n) c.fillRect(i * 2, CHART - n / most * (CHART - 6), 2, n / most * (CHART - 6)); });
    setText($("rate"), times?.length ? `peak ${model.ended > model.requests.length ? "at least " : ""}${most.toLocaleString("en")}/min` : "");
    c.fillStyle = colours.line;
    c.fillRect(0, CHART, width, 1);
    this.drawMarks(c, model.rest, CHART + REST / 2 + 1);
    c.fillStyle = colours.soft;
    c.textBaseline = "alphabetic";
    for (const { t, label } of axis.ticks(width)) c.fillText(label, axis.x(t, width) + 3, height - 8);
  },
};
