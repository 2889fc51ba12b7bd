// The mouse, the keyboard and the tip of the timeline.
Object.assign(timeline, {
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
      const d = Math.abs(axis.x(r.at, this.width) - e.offsetX) - ORDER.indexOf(r.kind) * 0.5; // the most important of several
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
      if (state) return tip(e, [row.meeting.title, `${state.status} since ${timeText(state.at)}`, failed(state.status) && row.meeting.reason].filter(Boolean).join("\n"));
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

  // see scrolls to an instant.
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
});

function describe(r) {
  if (!r.seq) return `violation: ${r.violation.text}`;
  if (r.action) return [`${r.name}, ${timeText(r.at)}`, ...r.changes ?? []].join("\n");
  const lines = [`#${r.seq}  ${r.operation || r.method + " " + r.path}  ${result(r)}`, `${timeText(r.at)}, took ${span(r.took)}${r.caller ? `, by ${callerName(r.caller)}` : ""}`];
  if (r.fault) lines.push(`fault: ${r.fault}`);
  for (const v of r.violations) lines.push(`violation (${v.kind}): ${v.text}`);
  return lines.join("\n");
}

const result = r => (r.status ? String(r.status) : "no response") + (r.code ? " " + r.code : "");

function tip(e, text) {
  const box = $("tip"), area = $("timeline").getBoundingClientRect();
  setText(box, text);
  box.hidden = false;
  box.style.left = Math.min(e.clientX - area.left + 14, area.width - box.offsetWidth - 4) + "px";
  const y = e.clientY - area.top + 16;
  box.style.top = (y + box.offsetHeight > area.height ? y - box.offsetHeight - 26 : y) + "px";
}
