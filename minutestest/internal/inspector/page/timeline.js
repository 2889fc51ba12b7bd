// The timeline: labels are elements, the rest is drawn. Only what is in sight.
const ROW = 24, CHART = 44, REST = 24;

// Shapes, so that colour is not alone in telling marks apart; around 0, 0.
const SHAPES = {
  look: "M0-4.5A4.5 4.5 0 1 1 0 4.5A4.5 4.5 0 1 1 0-4.5M0-2.2A2.2 2.2 0 1 0 0 2.2A2.2 2.2 0 1 0 0-2.2",
  read: "M0-2.2A2.2 2.2 0 1 1 0 2.2A2.2 2.2 0 1 1 0-2.2",
  change: "M-4-4H4V4H-4Z",
  upload: "M0-5.5L5.5 4.5H-5.5Z",
  refusal: "M-4.6-3.2L-3.2-4.6L0-1.4L3.2-4.6L4.6-3.2L1.4 0L4.6 3.2L3.2 4.6L0 1.4L-3.2 4.6L-4.6 3.2L-1.4 0Z",
  fault: "M1.5-7L-5 1.2H-.6L-1.5 7L5-1.2H.6Z",
  violation: "M-3.3-8H3.3L8-3.3V3.3L3.3 8H-3.3L-8 3.3V-3.3ZM-1.3-5.5L-.8 1.6H.8L1.3-5.5ZM-1.1 3V5.4H1.1V3Z",
};
const PATHS = Object.fromEntries(Object.entries(SHAPES).map(([kind, d]) => [kind, new Path2D(d)]));
const ORDER = Object.keys(SHAPES); // what matters more is drawn later
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
    $("none").textContent = model.rows.size ? "No meeting passes the filters." : "No meeting yet. A line appears here for each one that is created.";
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
      const label = h("div", { className: "row", role: "option" }, h("span", { className: "name" }), h("span", { className: "state" }));
      label.addEventListener("click", () => { const row = label.row; this.choose(row); openMeeting(row.id); });
      label.addEventListener("pointermove", e => tip(e, [label.row.meeting?.title, label.row.id].filter(Boolean).join("\n")));
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
      const held = row.meeting?.held && !row.gone, state = stateOf(row) + (held ? ", held" : "");
      setText(label.firstChild, row.meeting?.title ?? row.id);
      const sign = held ? "‖ " : row.meeting && failed(row.meeting.status) ? "✕ " : row.meeting?.status === "minutes_ready" ? "✓ " : "";
      setText(label.lastChild, sign + stateOf(row));
      label.classList.toggle("bad", row.bad > 0);
      label.classList.toggle("gone", row.gone);
      label.setAttribute("aria-selected", row.id === this.chosen);
      label.setAttribute("aria-setsize", this.rows.length);
      label.setAttribute("aria-posinset", first + i + 1);
      label.setAttribute("aria-label", `${row.meeting?.title ?? row.id}, ${state}, ${row.marks.length} requests${row.bad ? `, ${row.bad} violations` : ""}`);
      if (row.id === this.chosen) this.box.setAttribute("aria-activedescendant", label.id);
    });
  },

  drawBars(first, last) {
    const c = this.bars.getContext("2d"), { width, colours } = this, top = this.box.scrollTop;
    c.clearRect(0, 0, width, this.height);
    c.font = "11px system-ui, sans-serif";
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

  // drawTooSoon measures what a violation of the thirty seconds is about.
  drawTooSoon(c, row, y) {
    for (const r of row.marks) {
      if (!r.seq || !r.violations.some(v => v.kind === "poll")) continue;
      const before = lookBefore(r);
      if (!before) continue;
      const a = axis.x(before.at, this.width), b = axis.x(r.at, this.width), text = span(r.at - before.at);
      c.fillStyle = this.colours.violation;
      c.fillRect(a, y + ROW - 4, b - a, 2);
      c.fillRect(a, y + ROW - 7, 1.5, 5);
      if (b - a > c.measureText(text).width + 26) {
        c.font = "600 11px system-ui, sans-serif";
        const wide = c.measureText(text).width, left = (a + b - wide) / 2;
        c.fillStyle = this.colours.bg;
        c.fillRect(left - 4, y + 4, wide + 8, 14);
        c.fillStyle = this.colours.violation;
        c.fillText(text, left, y + ROW - 12);
        c.font = "11px system-ui, sans-serif";
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
    c.font = "11px system-ui, sans-serif";
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
    setText($("rate"), times?.length ? `${most.toLocaleString("en")} at most` : "");
    c.fillStyle = colours.line;
    c.fillRect(0, CHART, width, 1);
    this.drawMarks(c, model.rest, CHART + REST / 2 + 1);
    c.fillStyle = colours.soft;
    c.textBaseline = "alphabetic";
    for (const { t, label } of axis.ticks(width)) c.fillText(label, axis.x(t, width) + 3, height - 8);
  },

  // near is the mark at a point of a canvas.
  near(e) {
    const y = e.offsetY;
    let marks = [], row = null;
    if (e.target === this.bars) {
      row = this.rows[Math.floor((y + this.box.scrollTop) / ROW)];
      marks = row?.marks ?? [];
    } else if (y > CHART && y < CHART + REST) {
      marks = model.rest;
    }
    let best = null, least = 9;
    for (const r of marks) {
      if (!r.shown) continue;
      const d = Math.abs(axis.x(r.at, this.width) - e.offsetX) - ORDER.indexOf(r.kind) * 0.5; // of several, what matters more
      if (d < least) [best, least] = [r, d];
    }
    return { row, mark: best };
  },

  hover(e) {
    if (e.buttons) return;
    const { row, mark } = this.near(e);
    this.bars.style.cursor = mark ? "pointer" : "crosshair";
    if (mark) return tip(e, describe(mark));
    if (row?.meeting) {
      const u = axis.from + e.offsetX / this.width * (axis.to - axis.from);
      const state = row.meeting.history.findLast(s => axis.u(s.at) <= u);
      if (state) return tip(e, `${row.meeting.title}\n${state.status} since ${timeText(state.at)}`);
    }
    $("tip").hidden = true;
  },

  drag(e) {
    const canvas = e.target, start = e.clientX;
    let moved = false, last = start;
    $("tip").hidden = true;
    canvas.setPointerCapture(e.pointerId);
    const move = m => {
      if (!moved && Math.abs(m.clientX - start) < 4) return;
      moved = true;
      axis.pan((last - m.clientX) / this.width);
      last = m.clientX;
      pressed();
    };
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("pointerup", () => {
      canvas.removeEventListener("pointermove", move);
      if (moved) return;
      const { row, mark } = this.near(e);
      if (row) this.choose(row);
      if (mark) openMark(mark);
      else if (row) openMeeting(row.id);
    }, { once: true });
  },

  wheel(e) {
    if (!e.ctrlKey && !e.shiftKey && Math.abs(e.deltaX) <= Math.abs(e.deltaY) && e.target === this.bars) return; // rows scroll
    e.preventDefault();
    if (e.ctrlKey || e.target === this.head && !e.shiftKey) axis.zoom(Math.exp(e.deltaY * 0.002), e.offsetX / this.width);
    else axis.pan((e.deltaX || e.deltaY) / this.width);
    pressed();
  },

  choose(row) {
    this.chosen = row.id;
    const i = this.place.get(row.id);
    if (i === undefined) return;
    if (i * ROW < this.box.scrollTop) this.box.scrollTop = i * ROW;
    if ((i + 1) * ROW > this.box.scrollTop + this.height) this.box.scrollTop = (i + 1) * ROW - this.height;
    draw();
  },

  // see brings an instant into view.
  see(t) {
    const x = axis.x(t, this.width);
    if (x < 10 || x > this.width - 10) {
      const width = axis.to - axis.from;
      axis.from = axis.u(t) - width / 2;
      axis.to = axis.from + width;
      axis.whole = axis.follow = false;
      pressed();
    }
  },

  key(e) {
    const at = this.place.get(this.chosen) ?? -1, page = Math.floor(this.height / ROW) - 1;
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.rows.length, End: this.rows.length };
    if (e.key in steps && this.rows.length) {
      const row = this.rows[Math.min(Math.max(at + steps[e.key], 0), this.rows.length - 1)];
      this.mark = null;
      this.choose(row);
      openMeeting(row.id);
      say(`${row.meeting?.title ?? row.id}, ${stateOf(row)}`);
    } else if ((e.key === "ArrowRight" || e.key === "ArrowLeft") && at >= 0) {
      const marks = this.rows[at].marks.filter(r => r.shown), i = marks.indexOf(this.mark);
      const r = e.key === "ArrowRight" ? marks[Math.min(i + 1, marks.length - 1)] : marks[Math.max(i - 1, 0)];
      if (r) openMark(r);
    } else if (e.key === "Enter") {
      $("detail").focus();
    } else {
      return;
    }
    e.preventDefault();
  },
};

function describe(r) {
  if (!r.seq) return `violation: ${r.violation.text}`;
  const lines = [`#${r.seq}  ${r.operation || r.method + " " + r.path}  ${answer(r)}`, `${timeText(r.at)}, took ${span(r.took)}${r.caller ? `, by ${callerName(r.caller)}` : ""}`];
  if (r.fault) lines.push(`fault: ${r.fault}`);
  for (const v of r.violations) lines.push(`violation (${v.kind}): ${v.text}`);
  return lines.join("\n");
}

const answer = r => (r.status ? String(r.status) : "no reply") + (r.code ? " " + r.code : "");

function tip(e, text) {
  const box = $("tip"), area = $("timeline").getBoundingClientRect();
  setText(box, text);
  box.hidden = false;
  box.style.left = Math.min(e.clientX - area.left + 14, area.width - box.offsetWidth - 4) + "px";
  const y = e.clientY - area.top + 16;
  box.style.top = (y + box.offsetHeight > area.height ? y - box.offsetHeight - 26 : y) + "px";
}
