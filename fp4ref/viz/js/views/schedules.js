// schedules: loads and MMAs in flight under each schedule, and where each does what is done at this step.

const schedulesView = {
  id: "schedules",
  controls: () => [],
  // Stretches of the axis with loads, or MMAs, in flight, as merged pairs of ends.
  stretches(m, sm, which) {
    const axis = axisOf(m), found = [];
    for (let i = 0; i < m.length; i++) if (m.columns.sm[i] === sm && which(m, i)) found.push([axis.from(i), axis.to(i)]);
    const merged = [];
    for (const [from, to] of found.sort((a, b) => a[0] - b[0]))
      if (merged.length && from <= merged.at(-1)[1]) merged.at(-1)[1] = Math.max(to, merged.at(-1)[1]);
      else merged.push([from, to]);
    return merged;
  },
  // What two lists of stretches have in common.
  common(a, b) {
    return a.flatMap(([from, to]) => b.map(([x, y]) => [Math.max(from, x), Math.min(to, y)])).filter(([x, y]) => x < y);
  },
  lanes(m) {
    m.flights ??= [...new Set(m.columns.sm)].sort().map((sm) => {
      const loads = this.stretches(m, sm, isLoad), mmas = this.stretches(m, sm, isMma);
      return { sm, loads, mmas, both: this.common(loads, mmas) };
    });
    return m.flights;
  },
  // A schedule beside the one shown: where it does the same, and what is in flight there.
  beside({ step, schedules, schedule }, name) {
    const m = schedules.machine(name), at = name === schedule ? step : schedules.step(schedule, name, step);
    return { name, m, at, loads: inFlight(m, at, isLoad), mmas: inFlight(m, at, isMma), overlap: m.header.overlap };
  },
  words: ({ T }, { name, m, at, loads, mmas, overlap }) => T("schedules.row", { name, at, last: m.length - 1, loads, mmas, n: overlap.toLocaleString("en"), of: m.length.toLocaleString("en") }),
  same({ T, schedules: { names, same } }) {
    const values = { n: same.events.toLocaleString("en"), bytes: same.nbytes.toLocaleString("en"), schedules: names.length, different: same.different.toLocaleString("en") };
    return T(same.different ? "schedules.differ" : "schedules.same", values);
  },
  // Which hardware event a step is taken for.
  event({ T, step, schedules, schedule }) {
    const key = schedules.keys[schedules.eventAt(schedule, step)];
    return key ? T("schedules.event", { step, schedule, key }) : T("schedules.before", { step, schedule });
  },
  draw(c) {
    const { width, T, id, schedules, schedule } = c, left = width < 520 ? 92 : 120, plot = width - left - 4;
    let y = 0, out = patternDefs(id);
    const say = (words, cls, pixels = width) => { const lines = wrap(words, pixels, cls === "strong" ? 7.4 : 6.6); out += paragraph(0, y + 14, lines, cls); y += 14 * lines.length + 4; };
    say(this.same(c), schedules.same.different ? "strong alert" : "strong");
    say(T("schedules.head"), "small");
    say(this.event(c), "small");
    for (const name of schedules.names) {
      const row = this.beside(c, name), { m, at } = row, axis = axisOf(m), x = (v) => left + (v / axis.length) * plot, lanes = this.lanes(m), more = { "data-schedule": name, "data-tip": T("schedules.tip", { name }) };
      y += 10;
      say(this.words(c, row), name === schedule ? "strong" : "", width - 8);
      y += 4;
      const top = y;
      for (const { sm, loads, mmas, both } of lanes) {
        [["loads", loads, "tma"], ["mmas", mmas, "mma"], ["both", both, "barrier"]].forEach(([word, stretches, kind], k) => {
          const high = k === 2 ? 6 : 12;
          out += rect(left, y, plot, high, k % 2 ? "lane odd" : "lane", more);
          if (k < 2) out += text(left - 6, y + 10, `${lanes.length > 1 ? `SM ${sm} ` : ""}${T(`schedules.${word}`)}`, "end small");
          for (const [from, to] of stretches) out += k === 2 ? rect(x(from), y, Math.max(1, x(to) - x(from)), high, "c-alert", more) : box(id, kind, x(from), y, Math.max(1, x(to) - x(from)), high, more);
          y += high + (k === 2 ? 6 : 2);
        });
      }
      out += lineTo(x(axis.at(at)), top - 3, x(axis.at(at)), y, "cursor");
    }
    return { svg: out, width, height: y + 8 };
  },
  twin(c) {
    const { T, schedules, step, schedule } = c, rows = schedules.names.map((name) => this.beside(c, name));
    return {
      intro: `${this.same(c)} ${this.event(c)}`, short: T("schedules.hint"), caption: T("schedules.caption", { step, schedule }),
      columns: ["schedule", "at", "loads", "mmas", "overlap", "steps"].map((k) => T(`schedules.col.${k}`)),
      rows: rows.map(({ name, m, at, loads, mmas, overlap }) => [name, at, loads, mmas, overlap, m.length].map(String)),
    };
  },
};
