// timeline: a lane for each warp and unit; what runs, flies and waits around a step.

const ROLE_ORDER = ["warp0", "warp1", "warp2", "warp3", "warp4", "warp5", "warp6", "warp7", "tma", "tma.read", "tcgen05", "tmem", "clc"];

const timelineView = {
  id: "timeline",
  controls: ({ T }) => [
    { id: "span", label: T("timeline.span"), type: "select", value: "120", options: [["60", T("timeline.steps", { n: 60 })], ["120", T("timeline.steps", { n: 120 })], ["400", T("timeline.steps", { n: 400 })], ["all", T("timeline.all")]] },
  ],
  lanes(m) {
    if (!m.lanes) {
      const found = new Map();
      for (let i = 0; i < m.length; i++) {
        const sm = m.columns.sm[i], agent = m.tables.agent[m.columns.agent[i]], key = `${sm} ${agent}`;
        if (!found.has(key)) found.set(key, { sm, agent, steps: [] });
        found.get(key).steps.push(i);
      }
      const order = (a) => (ROLE_ORDER.indexOf(a.agent) + 99) % 99;
      m.lanes = [...found.values()].sort((a, b) => a.sm - b.sm || order(a) - order(b));
    }
    return m.lanes;
  },
  draw({ m, step, ui, width, T, id }) {
    const lanes = this.lanes(m), n = m.length, many = new Set(lanes.map((l) => l.sm)).size > 1;
    const left = width < 520 ? 74 : 200, plot = width - left - 6, row = 18, top = 40;
    const span = ui.span === "all" ? n : Math.min(n, +ui.span);
    const from = Math.max(0, Math.min(n - span, step - Math.floor(span / 2))), to = from + span;
    const x = (s) => left + ((s - from) / span) * plot, wide = plot / span;
    let out = patternDefs(id);
    // overview: how busy each part of the run is; click to go there
    const bins = Math.min(n, Math.floor(plot / 4)), most = n / bins;
    const busy = Array.from({ length: bins }, (_, b) => m.columns.kind.slice(Math.floor(b * most), Math.floor((b + 1) * most)).filter((k) => k === 2).length);
    const peak = Math.max(1, ...busy);
    out += text(0, 14, T("timeline.whole"), "small");
    busy.forEach((v, b) => {
      const h = 2 + (14 * v) / peak;
      out += rect(left + (b / bins) * plot, 18 - h, Math.max(1, plot / bins - 1), h, "c-note", { "data-step": Math.floor(b * most), "data-tip": T("timeline.bin", { from: Math.floor(b * most), landed: v }) });
    });
    out += rect(left + (from / n) * plot, 1, Math.max(3, (span / n) * plot), 18, "frame");
    out += text(width < 520 ? 0 : left, 33, fit(T("timeline.axis", { from, to: to - 1 }), width < 520 ? width : plot, 11.4), "small");
    const at = new Map(lanes.map((l, i) => [`${l.sm} ${l.agent}`, top + i * row]));
    lanes.forEach((l, i) => {
      const y = top + i * row, name = width < 520 ? l.agent : `${l.agent}  ${T(`role.${l.agent}`)}`;
      out += rect(left, y, plot, row - 2, i % 2 ? "lane odd" : "lane");
      out += text(0, y + 12, fit((many ? `SM ${l.sm} ` : "") + name, left - 6), "small");
    });
    const bin = Math.max(1, Math.ceil(2 / wide)), taken = new Set();
    const open = m.openAt(to - 1).map((o) => o.to);
    for (const i of [...Array.from({ length: to - from }, (_, k) => from + k), ...open]) {
      const e = { sm: m.columns.sm[i], agent: m.tables.agent[m.columns.agent[i]], operation: m.tables.operation[m.columns.operation[i]], kind: m.columns.kind[i], issued: m.columns.issued[i] };
      const key = `${e.sm} ${e.agent}`, y = at.get(key), name = category(e.operation);
      const begin = e.issued >= 0 ? Math.max(from, e.issued) : i;
      const length = Math.max(2, (Math.min(i, to - 1) - begin + 1) * wide - (wide > 4 ? 1 : 0));
      if (bin > 1 && begin === i) {
        const cell = `${key} ${Math.floor(i / bin)}`;
        if (taken.has(cell)) continue;
        taken.add(cell);
      }
      out += box(id, name, x(begin), y + 2, length, row - 6, { "data-step": i, "data-tip": `${i}: ${e.agent} ${e.operation}`, opacity: e.kind === 1 ? 0.55 : 1 });
    }
    const height = top + lanes.length * row + 40;
    out += lineTo(x(step) + wide / 2, top - 4, x(step) + wide / 2, top + lanes.length * row, "cursor");
    let lx = 0, ly = height - 26;
    for (const name of ["wait", "barrier", "tma", "cp", "mma", "commit", "ld", "st", "clc", "note"]) {
      const word = T(`category.${name}`), w = 30 + word.length * 6.6;
      if (lx + w > width) { lx = 0; ly += 15; }
      out += box(id, name, lx, ly - 9, 12, 10) + text(lx + 16, ly, word, "small");
      lx += w;
    }
    return { svg: out, width, height: Math.max(height, ly + 6) };
  },
  twin({ m, step, T }) {
    const open = m.openAt(step);
    const rows = this.lanes(m).map((l) => {
      const mine = open.filter((o) => o.event.sm === l.sm && o.event.agent === l.agent);
      const before = l.steps.filter((s) => s <= step).at(-1), after = l.steps.find((s) => s > step);
      const now = mine.length
        ? mine.map((o) => T(o.event.kind === "land" ? "timeline.flying" : "timeline.waits", { what: o.event.operation, since: o.from, label: o.event.barrier[0]?.label ?? barrierName(m, o.event) })).join("; ")
        : before === undefined ? T("timeline.idle") : T("timeline.last", { what: m.event(before).operation, at: before });
      return [`SM ${l.sm} ${l.agent}`, T(`role.${l.agent}`), now, after === undefined ? T("timeline.end") : `${after}`];
    });
    return { intro: T("timeline.intro", { step }), caption: T("timeline.caption", { step }), columns: [T("col.lane"), T("col.role"), T("col.now"), T("col.next")], rows };
  },
};

// The label of the barrier that an event names by address.
function barrierName(m, event) {
  const address = event.operands.mbar;
  if (address === undefined) return event.operands.barrier !== undefined ? `bar ${event.operands.barrier}` : "";
  return m.barriers.find((b) => b.sm === event.sm && b.address === address)?.label ?? hex(address);
}
