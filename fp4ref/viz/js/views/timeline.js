// timeline: a lane for each warp and unit; what runs, flies and waits around a step.
// Work in flight is stacked by `row`; commits are thin lines under the lane, and hide nothing.
// A trace with times is drawn along clocks, another one along steps: `axisOf` says which.

const UNITS = ["tma", "tma.read", "tcgen05", "tmem", "clc"];
// Warps by number, then units in order, then what else there is.
const laneOrder = (agent) => (agent.startsWith("warp") ? +agent.slice(4) : 1000 + ((UNITS.indexOf(agent) + 99) % 99));

const LANE = 16, STACK = 48; // heights of a plain lane, and of a band of bars that are stacked
const BANDS = ["mma", "other", "commit"]; // of a lane, from the top

// Where an event begins and ends, and where the machine stands after it.
function axisOf(m) {
  const { start, end, issued } = m.columns;
  m.axis ??= end
    ? { timed: true, from: (i) => (issued[i] >= 0 && m.columns.kind[i] === 2 ? end[issued[i]] : start[i]), work: (i) => start[i], to: (i) => end[i], at: (i) => end[i], length: Math.max(...end), spans: [500, 2000, 8000], chosen: 2000 }
    : { timed: false, from: (i) => (issued[i] >= 0 ? issued[i] : i), to: (i) => i + 1, at: (i) => i + 0.5, length: m.length, spans: [60, 120, 400], chosen: 120 };
  return m.axis;
}

const timelineView = {
  id: "timeline",
  controls({ m, T }) {
    const { timed, spans, chosen } = axisOf(m), unit = timed ? "timeline.clocks" : "timeline.steps";
    const options = [...spans.map((n) => [`${n}`, T(unit, { n: n.toLocaleString("en") })]), ["all", T("timeline.all")]];
    return [{ id: "span", label: T("timeline.span"), type: "select", value: `${chosen}`, options }];
  },
  lanes(m) {
    if (!m.lanes) {
      const found = new Map();
      for (let i = 0; i < m.length; i++) {
        const sm = m.columns.sm[i], agent = m.tables.agent[m.columns.agent[i]], key = `${sm} ${agent}`;
        if (!found.has(key)) found.set(key, { sm, agent, steps: [], bands: {} });
        const lane = found.get(key), name = this.bandOf(m, i);
        lane.steps.push(i);
        lane.bands[name] ??= { rows: 0, word: this.nameOf(m, i) };
        lane.bands[name].rows = Math.max(lane.bands[name].rows, m.columns.row[i] + 1);
      }
      for (const lane of found.values()) this.stack(lane);
      // A lane with one event, such as a barrier that all warps meet at, is named and not drawn.
      const used = [...found.values()].filter((l) => l.steps.length > 1);
      m.idle = [...found.values()].filter((l) => l.steps.length < 2);
      m.lanes = used.sort((a, b) => a.sm - b.sm || laneOrder(a.agent) - laneOrder(b.agent));
    }
    return m.lanes;
  },
  nameOf: (m, i) => category(m.tables.operation[m.columns.operation[i]]),
  bandOf(m, i) {
    const name = this.nameOf(m, i);
    return m.columns.issued[i] >= 0 && BANDS.includes(name) ? name : "other";
  },
  // Tops of a lane's bands, and the distance of their rows.
  stack(lane) {
    const { other, mma, commit } = lane.bands;
    let y = 0;
    for (const band of BANDS.map((name) => lane.bands[name]).filter(Boolean)) {
      const plain = band === other && band.rows < 2 && !mma && !commit;
      // A band beside others has room for its name.
      band.pitch = plain ? LANE : Math.max(11 / band.rows, band === commit ? 3 : Math.max(3, Math.min(6, STACK / band.rows)));
      Object.assign(band, { plain, top: y, high: plain ? LANE - 4 : band === commit ? 1.4 : Math.min(8, band.pitch - 1) });
      y += band.rows * band.pitch + 1;
    }
    lane.height = Math.max(LANE, y) + 2;
  },
  overlap({ m, T }) {
    if (!m.tables.operation.includes("tcgen05.mma")) return "";
    const number = (n) => n.toLocaleString("en"), schedule = m.header.meta.schedule;
    if (m.header.shares) return T("timeline.shares", m.header.shares);
    const words = T("timeline.overlap", { n: number(m.header.overlap), of: number(m.length) });
    return schedule ? `${T("timeline.schedule", { schedule })}: ${words}` : words;
  },
  draw(c) {
    const { m, step, width, T, id } = c, axis = axisOf(m), frame = this.frameOf(c), { left, plot, narrow, x } = frame;
    const ends = { from: Math.round(frame.from).toLocaleString("en"), to: Math.round(axis.timed ? frame.to : frame.to - 1).toLocaleString("en") };
    const head = [T(axis.timed ? "timeline.axis.clocks" : "timeline.axis", ends), this.overlap(c)].flatMap((words) => (words ? wrap(words, narrow ? width : plot) : []));
    const top = 28 + 14 * head.length, lanes = this.drawLanes(c, frame, top);
    const { key, end } = this.drawKey(c, lanes.bottom + 14), idle = wrap(this.idle(c), width);
    const svg = patternDefs(id) + this.drawOverview(c, frame) + paragraph(narrow ? 0 : left, 33, head, "small") + lanes.svg + this.drawBars(c, frame, lanes.at)
      + lineTo(x(axis.at(step)), top - 4, x(axis.at(step)), lanes.bottom, "cursor") + key + paragraph(0, end + 12, idle, "small");
    return { svg, width, height: Math.max(lanes.bottom + 40, end + 14 * idle.length + 4) };
  },
  // What is shown of the axis (`from` to `to`, not included), and where: `left` of the plot, `wide` a unit.
  frameOf({ m, step, ui, width }) {
    const axis = axisOf(m), n = axis.length, many = new Set(this.lanes(m).map((l) => l.sm)).size > 1;
    const narrow = width < 520, left = narrow ? (many ? 88 : 64) : 214, plot = width - left - 6;
    const span = ui.span === "all" ? n : Math.min(n, +ui.span);
    const from = Math.max(0, Math.min(n - span, Math.floor(axis.at(step)) - Math.floor(span / 2)));
    return { many, narrow, left, plot, span, from, to: from + span, wide: plot / span, x: (s) => left + ((s - from) / span) * plot };
  },
  // How much asynchronous work lands in each part of the run, and its first step.
  busy(m, bins) {
    if (m.busy?.length === bins) return m.busy;
    const axis = axisOf(m);
    m.busy = Array.from({ length: bins }, () => ({ landed: 0, first: 0 }));
    for (let i = m.length - 1; i >= 0; i--) {
      const bin = m.busy[Math.min(bins - 1, Math.floor((axis.at(i) / axis.length) * bins))];
      bin.first = i;
      bin.landed += m.columns.kind[i] === 2;
    }
    return m.busy;
  },
  binsOf: (m, plot) => Math.max(1, Math.min(Math.floor(axisOf(m).length), Math.floor(plot / 4))),
  // A click on the overview goes there: one shape, as it is drawn anew at every step.
  drawOverview({ m, T }, { left, plot, from, span }) {
    const n = axisOf(m).length, bins = this.binsOf(m, plot), busy = this.busy(m, bins), peak = Math.max(1, ...busy.map((b) => b.landed)), wide = Math.max(1, plot / bins - 1);
    const bars = busy.map(({ landed }, b) => `M${(left + (b / bins) * plot).toFixed(1)} 18h${wide.toFixed(1)}v${(-2 - (14 * landed) / peak).toFixed(1)}h${(-wide).toFixed(1)}z`).join("");
    return text(0, 14, T("timeline.whole"), "small") + `<path d="${bars}" class="f-c-note"/>` + rect(left, 1, plot, 18, "hit", { "data-grid": `${left},1,${plot},18` }) + rect(left + (from / n) * plot, 1, Math.max(3, (span / n) * plot), 18, "frame");
  },
  binAt(m, px, [left, , plot]) {
    const bins = this.binsOf(m, plot);
    return this.busy(m, bins)[Math.max(0, Math.min(bins - 1, Math.floor(((px - left) / plot) * bins)))];
  },
  stepAt({ m }, px, py, area) { return this.binAt(m, px, area).first; },
  hover({ m, T }, px, py, area) { const { first, landed } = this.binAt(m, px, area); return T("timeline.bin", { from: first, landed }); },
  // The lanes without their bars; `at` says where each is.
  drawLanes({ m, T }, { many, narrow, left, plot }, top) {
    const at = new Map();
    let svg = "", bottom = top;
    this.lanes(m).forEach((l, i) => {
      const y = bottom, name = this.laneName(m, l, T, narrow);
      svg += rect(left, y, plot, l.height - 2, i % 2 ? "lane odd" : "lane");
      svg += text(0, y + 12, fit((many ? `SM ${l.sm} ` : "") + name, left - 6), "small");
      const bands = Object.values(l.bands);
      if (!narrow && bands.length > 1)
        for (const b of bands) svg += text(left - 6, y + b.top + (b.rows * b.pitch) / 2 + 4, T(`category.${b.word}`), "end tiny");
      at.set(`${l.sm} ${l.agent}`, { y, lane: l });
      bottom += l.height;
    });
    return { svg, at, bottom };
  },
  // A warp has a number and a role; a unit is what its words say.
  laneName(m, { agent }, T, narrow) {
    const words = T(`role.${m.role(agent)}`);
    if (!agent.startsWith("warp")) return narrow ? agent : words;
    return narrow ? agent : T("timeline.warp", { n: agent.slice(4), role: words });
  },
  idle({ m, T }) {
    this.lanes(m);
    return m.idle.length ? T("timeline.unused", { lanes: m.idle.map((l) => `SM ${l.sm} ${this.laneName(m, l, T)}`).join(", ") }) : "";
  },
  // Events that the frame meets: those that end in it, and what is then still open.
  inFrame(m, { from, to }) {
    const axis = axisOf(m), all = Array.from({ length: m.length }, (_, i) => i);
    return axis.timed ? all.filter((i) => axis.to(i) >= from && axis.from(i) < to) : [...all.slice(from, to), ...m.openAt(to - 1).map((o) => o.to)];
  },
  drawBars({ m, id }, frame, at) {
    const { from, to, wide, x } = frame, axis = axisOf(m), bin = Math.max(1, Math.ceil(2 / wide)), taken = new Set();
    const layers = { commit: "", other: "", mma: "" }; // MMAs are drawn last
    for (const i of this.inFrame(m, frame)) {
      const e = { sm: m.columns.sm[i], agent: m.tables.agent[m.columns.agent[i]], operation: m.tables.operation[m.columns.operation[i]], kind: m.columns.kind[i] };
      const key = `${e.sm} ${e.agent}`;
      if (!at.has(key)) continue;
      const { y, lane } = at.get(key), name = category(e.operation), band = lane.bands[this.bandOf(m, i)];
      const begin = Math.max(from, axis.from(i)), end = Math.min(axis.to(i), to), tick = m.columns.issued[i] < 0 && (end - begin) * wide < 2;
      const length = Math.max(2, (end - begin) * wide - (wide > 4 ? 1 : 0));
      if (tick) {
        const cell = `${key} ${Math.floor(begin / bin)}`;
        if (taken.has(cell)) continue;
        taken.add(cell);
      }
      const more = { "data-step": i, "data-tip": `${i}: ${m.event(i).words}`, opacity: e.kind === 1 ? 0.55 : 1 };
      const left = x(tick ? Math.max(from, begin - (begin % bin)) : begin);
      const down = y + (band.plain ? 2 : band.top + m.columns.row[i] * band.pitch);
      layers[name in layers ? name : "other"] += band.plain ? box(id, name, left, down, length, band.high, more) : rect(left, down, length, band.high, `bar c-${name}`, { ...more, opacity: axis.timed && name !== "commit" ? 0.45 : more.opacity });
      // In flight from its issue; its unit is at work on it from here on.
      if (axis.timed && !band.plain && name !== "commit" && axis.work(i) < to)
        layers[name in layers ? name : "other"] += rect(x(Math.max(from, axis.work(i))), down, Math.max(1, (end - Math.max(from, axis.work(i))) * wide), band.high, `c-${name}`, { style: "pointer-events:none" });
    }
    return layers.commit + layers.other + layers.mma;
  },
  // What the colours and patterns mean, from `y` down to `end`.
  drawKey({ width, T, id }, y) {
    let key = "", x = 0;
    for (const name of ["wait", "barrier", "tma", "cp", "mma", "commit", "ld", "st", "clc", "note"]) {
      const word = T(`category.${name}`), w = 30 + word.length * 6.6;
      if (x + w > width) { x = 0; y += 15; }
      key += box(id, name, x, y - 9, 12, 10) + text(x + 16, y, word, "small");
      x += w;
    }
    return { key, end: y + 6 };
  },
  twin({ m, step, T }) {
    const open = m.openAt(step);
    const rows = this.lanes(m).map((l) => {
      const mine = open.filter((o) => o.event.sm === l.sm && o.event.agent === l.agent);
      const before = l.steps.filter((s) => s <= step).at(-1), after = l.steps.find((s) => s > step);
      const now = mine.length
        ? mine.map((o) => T(o.event.kind === "land" ? "timeline.flying" : "timeline.waits", { what: o.event.operation, since: o.from, label: o.event.barrier[0]?.label ?? barrierName(m, o.event) })).join("; ")
        : before === undefined ? T("timeline.idle") : T("timeline.last", { what: m.event(before).operation, at: before });
      return [`SM ${l.sm} ${l.agent}`, T(`role.${m.role(l.agent)}`), now, after === undefined ? T("timeline.end") : `${after}`];
    });
    return { intro: `${T("timeline.intro", { step })} ${this.overlap({ m, T })}`.trim(), caption: T("timeline.caption", { step }), columns: [T("col.lane"), T("col.role"), T("col.now"), T("col.next")], rows };
  },
};

// The label of the barrier that an event names by address.
function barrierName(m, event) {
  const address = event.operands.mbar;
  if (address === undefined) return event.operands.barrier !== undefined ? `bar ${event.operands.barrier}` : "";
  return m.barriers.find((b) => b.sm === event.sm && b.address === address)?.label ?? hex(address);
}
