// stages: a row for each fill of a stage: loaded, full, copied, multiplied, given back, and who waited.

const FILL_COLUMNS = [["load", "tma"], ["full", "barrier"], ["copy", "cp"], ["mma", "mma"], ["done", "mma"], ["empty", "commit"]];
const FILL_WAITS = ["load_waits", "mma_waits"];

const stagesView = {
  id: "stages",
  controls({ m }) {
    const sms = [...new Set(m.header.stages.map((f) => f.sm))];
    return sms.length > 1 ? [{ id: "sm", label: "SM", type: "select", value: String(sms[0]), options: sms.map((s) => [String(s), String(s)]) }] : [];
  },
  rows(m, ui) {
    const all = m.header.stages.map((f, at) => ({ ...f, at }));
    return all.filter((f) => ui.sm === undefined || f.sm === +ui.sm).map((f, k) => ({ ...f, k }));
  },
  // A step as the axis counts: its clock, or the step itself.
  when: (m, step) => (step < 0 ? "" : axisOf(m).timed ? Math.round(axisOf(m).at(step)).toLocaleString("en") : `${step}`),
  waited(m, [from, to] = []) {
    if (from === undefined) return 0;
    const axis = axisOf(m);
    return axis.timed ? Math.max(0, Math.round(axis.to(to) - axis.from(to))) : to - from;
  },
  // The oldest fill that is not given back yet; after the last one, the last one.
  current(rows, step) {
    const open = rows.findIndex((f) => f.empty < 0 || f.empty >= step);
    return open < 0 ? rows.length - 1 : open;
  },
  name: (f, T) => T("stages.row", { k: f.k, stage: f.stage }),
  draw({ m, step, ui, width, T }) {
    const narrow = width < 720, waits = narrow ? FILL_WAITS.slice(1) : FILL_WAITS; // a phone has room for four
    const columns = FILL_COLUMNS.filter(([name]) => !narrow || ["full", "mma", "empty"].includes(name)), rows = this.rows(m, ui), now = this.current(rows, step), most = 14, first = Math.max(0, Math.min(rows.length - most, now - 4));
    const head = wrap(T(axisOf(m).timed ? "stages.head.clocks" : "stages.head"), width), left = 130;
    const wide = (width - left) / (columns.length + waits.length), top = 30 + 14 * head.length;
    let out = paragraph(0, 12, head, "small");
    [...waits, ...columns.map(([name]) => name)].forEach((name, c) => { out += text(left + c * wide + 2, top - 8, fit(T(narrow ? `stages.short.${name}` : `stages.${name}`), wide - 4), "small"); });
    rows.slice(first, first + most).forEach((f, i) => {
      const y = top + i * 24;
      if (f.k === now) out += rect(0, y - 2, width, 24, "lane");
      out += text(2, y + 14, fit(this.name(f, T), left - 4, 12), f.k === now ? "strong" : "");
      waits.forEach((name, c) => {
        const n = this.waited(m, f[name]), x = left + c * wide;
        if (n) out += rect(x, y, wide - 4, 19, "c-wait", { "data-step": f[name][1], "data-tip": T("stages.tip", { what: T(`stages.${name}`), n: n.toLocaleString("en") }) });
        out += text(x + 4, y + 14, n ? n.toLocaleString("en") : "0", n ? "" : "small");
      });
      columns.forEach(([name, kind], c) => {
        const at = f[name], x = left + (c + waits.length) * wide;
        if (at < 0) return;
        const tip = { "data-step": at, "data-tip": `${at}: ${m.event(at).words}` };
        out += at <= step ? rect(x, y, wide - 4, 19, `c-${kind}`, tip) : rect(x, y, wide - 4, 19, "cell", tip);
        out += text(x + 4, y + 14, this.when(m, at), "small");
      });
    });
    return { svg: out, width, height: top + Math.min(most, rows.length) * 24 + 6 };
  },
  twin({ m, step, ui, T }) {
    const rows = this.rows(m, ui), now = rows[this.current(rows, step)];
    const intro = now ? T("stages.intro", { row: this.name(now, T), rows: rows.length }) : T("nobody");
    const columns = [T("stages.column"), ...FILL_WAITS.map((n) => T(`stages.${n}`)), ...FILL_COLUMNS.map(([n]) => T(`stages.${n}`))];
    return { intro, caption: T("stages.caption", { step }), columns, rows: rows.map((f) => [this.name(f, T), ...FILL_WAITS.map((n) => this.waited(m, f[n]).toLocaleString("en")), ...FILL_COLUMNS.map(([n]) => this.when(m, f[n]))]) };
  },
};
