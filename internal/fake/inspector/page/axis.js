// Time. A stretch of more than BREAK without an event is cut out: each bubble of
// a test has its own clock, and nights are long.
const BREAK = 6 * 3600e3;

// LATELY is what a live page shows until the user zooms.
const LATELY = 180e3;

const axis = {
  spans: [],     // [{a, b, u}]: from a to b, beginning at u of the cut time
  from: 0, to: 60000, // what is in view, in cut time
  follow: false, whole: true,
  untouched: true, // the user has not zoomed yet

  clear() { this.spans = []; },

  add(t) {
    if (!Number.isFinite(t)) return;
    const last = this.spans[this.spans.length - 1];
    if (last && t <= last.b + BREAK && t >= last.a - (this.spans.length === 1 ? BREAK : 0)) { // nearly always
      last.a = Math.min(last.a, t);
      last.b = Math.max(last.b, t);
      return;
    }
    const near = this.spans.filter(s => t >= s.a - BREAK && t <= s.b + BREAK);
    const joined = { a: Math.min(t, ...near.map(s => s.a)), b: Math.max(t, ...near.map(s => s.b)), u: 0 };
    this.spans = [...this.spans.filter(s => !near.includes(s)), joined].sort((x, y) => x.a - y.a);
  },

  // lay gives each span its place.
  lay() {
    const length = this.spans.reduce((sum, s) => sum + s.b - s.a, 0);
    this.cut = Math.max(200, length * 0.04);
    let u = 0;
    for (const s of this.spans) {
      s.u = u;
      u += s.b - s.a + this.cut;
    }
    this.end = Math.max(u - this.cut, 1);
    if (model.live && this.untouched && this.end > LATELY) Object.assign(this, { whole: false, follow: true, from: 0, to: LATELY });
    if (this.follow) {
      const width = this.to - this.from;
      this.to = this.end + width * 0.04;
      this.from = this.to - width;
    } else if (this.whole) {
      const pad = Math.max(this.end * 0.03, 5);
      this.from = -pad;
      this.to = this.end + pad;
    }
  },

  // u is the cut time of an instant.
  u(t) {
    for (let i = this.spans.length - 1; i >= 0; i--) {
      const s = this.spans[i];
      if (t >= s.a || i === 0) return s.u + Math.min(t - s.a, s.b - s.a + this.cut);
    }
    return 0;
  },

  x(t, width) { return (this.u(t) - this.from) / (this.to - this.from) * width; },

  zoom(factor, at = 0.5) {
    const width = this.to - this.from, wide = Math.min(Math.max(width * factor, 2), Math.max(this.end * 1.5, 1000));
    if (this.follow) at = 1;
    this.from += (width - wide) * at;
    this.to = this.from + wide;
    this.whole = false;
  },

  pan(share) {
    const width = this.to - this.from;
    this.from = Math.min(Math.max(this.from + share * width, -width * 0.9), this.end - width * 0.1);
    this.to = this.from + width;
    this.whole = this.follow = false;
  },

  show(a, b) { // instants
    const pad = Math.max((this.u(b) - this.u(a)) * 0.5, 20);
    this.from = this.u(a) - pad;
    this.to = this.u(b) + pad;
    this.whole = this.follow = false;
  },

  // around shows the minute around t, and the time from before to t.
  around(t, before) {
    const pad = Math.max(this.end * 0.03, 5), last = this.end + pad, minute = 60e3;
    this.from = Math.min(this.u(t) - minute / 2, last - minute, this.u(before) - minute / 20);
    if (this.from < pad) this.from = -pad;
    this.to = Math.min(last, Math.max(this.from + minute, this.u(t) + minute / 20));
    this.whole = this.follow = false;
  },

  // ticks are the instants to be labelled, with their labels.
  ticks(width) {
    const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3, 7200e3, 14400e3, 43200e3, 86400e3];
    const least = (this.to - this.from) / width * 95;
    const step = steps.find(s => s >= least) ?? 7 * 86400e3;
    const list = [];
    for (const s of this.spans) {
      const a = Math.max(s.a, s.a + this.from - s.u), b = Math.min(s.b + this.cut * 0.7, s.a + this.to - s.u);
      const zero = model.live ? new Date(s.a).setHours(0, 0, 0, 0) : s.a;
      for (let t = zero + Math.ceil((a - zero) / step) * step; t <= b; t += step) list.push({ t, label: tickLabel(t, step, s) });
    }
    return list;
  },

  spanOf(t) { return this.spans.findLast(s => t >= s.a) ?? this.spans[0]; },
};

const two = n => String(n).padStart(2, "0");

function elapsed(ms, digits) {
  const sign = ms < 0 ? "−" : "+", whole = Math.abs(ms);
  const h = Math.floor(whole / 3600e3), m = Math.floor(whole / 60e3) % 60, s = (whole % 60e3) / 1000;
  const seconds = s.toFixed(digits).padStart(digits ? 3 + digits : 2, "0");
  return sign + (h ? `${h}:${two(m)}:` : `${m}:`) + seconds;
}

// Live, times are those of the wall; in a report, since the beginning.
function tickLabel(t, step, span) {
  if (!model.live) return elapsed(t - span.a, step < 1000 ? 3 : 0);
  const d = new Date(t), text = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
  return step < 1000 ? `${text}.${String(d.getMilliseconds()).padStart(3, "0")}` : step < 60e3 ? text : text.slice(0, 5);
}

function timeText(t) {
  if (!model.live) return elapsed(t - (axis.spanOf(t)?.a ?? t), 3);
  const d = new Date(t);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${String(d.getMilliseconds()).padStart(3, "0")}`;
}

const fullTime = t => new Date(t).toISOString().replace("T", " ").replace("Z", " UTC");

function span(ms) {
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${+ms.toPrecision(3)} ms`;
  if (ms < 60e3) return `${(ms / 1000).toFixed(ms < 10e3 ? 2 : 1)} s`;
  if (ms < 3600e3) return `${Math.floor(ms / 60e3)} min ${Math.round(ms % 60e3 / 1000)} s`;
  return `${Math.floor(ms / 3600e3)} h ${Math.round(ms % 3600e3 / 60e3)} min`;
}
