// tiles: the output grid: which CTA works which tile, and what launch control answered.

const tilesView = {
  id: "tiles",
  controls: ({ T, m }) => [
    { id: "before", label: T("tiles.previous"), type: "button", key: "p", action: (c) => tilesView.hop(c, -1) },
    { id: "after", label: T("tiles.next"), type: "button", key: "n", action: (c) => tilesView.hop(c, 1) },
  ],
  works(m) {
    if (m.works) return m.works;
    m.works = []; m.stores = []; m.cancels = [];
    m.phases = { k_tile_count: new Map(), accumulate: new Map(), "mma.exit": new Map() };
    for (let i = 0; i < m.length; i++) {
      const op = m.tables.operation[m.columns.operation[i]];
      if (op in m.phases && (op !== "accumulate" || m.event(i).operands.value === "zero")) {
        const sm = m.columns.sm[i];
        m.phases[op].set(sm, [...(m.phases[op].get(sm) ?? []), i]);
      }
      if (op.startsWith("tile_scheduler") || op.startsWith("clusterlaunch") || (op.endsWith(".store") && m.columns.kind[i] === 2)) {
        const e = m.event(i);
        if (op.startsWith("tile_scheduler")) m.works.push({ step: i, sm: e.sm, cta: e.cta, agent: e.agent, ...e.operands });
        else if (op.endsWith(".store")) { if (e.writes.length && e.operands.tensor === "D") m.stores.push({ step: i, sm: e.sm, m: e.operands.coords[1], n: e.operands.coords[0] }); }
        else m.cancels.push({ step: i, sm: e.sm, kind: e.kind, event: e });
      }
    }
    return m.works;
  },
  isTileScheduler: (m, work) => m.role(work.agent) === "SCHEDULER",
  hop({ m, step, go }, way) {
    this.works(m);
    const steps = [...new Set([...m.works.filter((w) => this.isTileScheduler(m, w)).map((w) => w.step), ...m.cancels.map((c) => c.step)])].sort((a, b) => a - b);
    const to = way > 0 ? steps.find((s) => s > step) : steps.filter((s) => s < step).at(-1);
    if (to !== undefined) go(to);
  },
  grid(m) {
    const { shape } = m.header.meta, { tile_m: tm, tile_n: tn } = m.plan;
    return { rows: Math.ceil(shape.m / tm), columns: Math.ceil(shape.n / tn), tm, tn, m: shape.m, n: shape.n };
  },
  // What has become of a tile: each SM loads, multiplies and stores in the order it learned.
  state(m, step, i, j, T) {
    const learned = this.works(m).filter((w) => this.isTileScheduler(m, w) && w.valid);
    const mine = learned.find((w) => w.m === i && w.n === j && w.step <= step), g = this.grid(m);
    if (!mine) return { kind: "note", word: T("tiles.waiting"), sm: null };
    const sm = mine.sm, nth = learned.filter((w) => w.sm === sm).indexOf(mine);
    const reached = (phase) => (m.phases[phase].get(sm)?.[nth] ?? Infinity) <= step;
    const of = Math.ceil(Math.min(g.tn, g.n - j * g.tn) / m.plan.subtile_n);
    const n = new Set(m.stores.filter((s) => s.step <= step && Math.floor(s.m / g.tm) === i && Math.floor(s.n / g.tn) === j).map((s) => s.n)).size;
    if (n >= of) return { kind: "st", word: T("tiles.done"), sm };
    if (n) return { kind: "ld", word: T("tiles.storing", { n, of }), sm };
    if (reached("mma.exit")) return { kind: "commit", word: T("tiles.summed"), sm };
    if (reached("accumulate")) return { kind: "mma", word: T("tiles.running"), sm };
    if (reached("k_tile_count")) return { kind: "tma", word: T("tiles.loading"), sm };
    return { kind: "clc", word: T("tiles.known"), sm };
  },
  answers(m, step, T) {
    const learned = this.works(m).filter((w) => this.isTileScheduler(m, w) && w.step <= step).map((w) => [w.step, `SM ${w.sm}`, `(${w.cta.join(", ")})`, w.valid ? T("tiles.got", { m: w.m, n: w.n }) : T("tiles.nothing")]);
    const landed = m.cancels.filter((c) => c.step <= step).map((c) => [c.step, `SM ${c.sm}`, `(${c.event.cta.join(", ")})`, T(c.kind === "land" ? "tiles.landed" : "tiles.asked")]);
    return [...learned, ...landed].sort((a, b) => a[0] - b[0]).map((r) => r.map(String));
  },
  draw({ m, step, width, T, id }) {
    // As D is written: rows m go down, columns n to the right.
    const g = this.grid(m), cell = Math.max(24, (width - 52) / g.columns), high = Math.max(22, Math.min(54, cell));
    let out = patternDefs(id) + text(0, 12, T("tiles.head", { m: g.m, n: g.n, across: g.rows, down: g.columns, tm: g.tm, tn: g.tn }), "small");
    out += text(0, 28, "m ↓ n →", "tiny");
    for (let i = 0; i < g.rows; i++) {
      out += text(4, 52 + i * high, i, "small");
      for (let j = 0; j < g.columns; j++) {
        if (!i) out += text(48 + j * cell + cell / 2, 28, j, "mid small");
        const s = this.state(m, step, i, j, T), x = 48 + j * cell, y = 32 + i * high;
        out += box(id, s.kind, x + 1, y, cell - 2, high - 2, { "data-tile": `${i},${j}`, "data-tip": T("tiles.tip", { m: i, n: j, word: s.word, sm: s.sm ?? "-" }) });
        if (s.sm !== null) out += rect(x + 4, y + 3, 34, 14, "plate") + text(x + 7, y + 13, `SM ${s.sm}`, "tiny");
        if (cell > 60) out += rect(x + 4, y + high - 20, Math.min(cell - 10, 7 * s.word.length + 8), 15, "plate") + text(x + 7, y + high - 9, fit(s.word, cell - 14), "tiny");
      }
    }
    let y = 32 + g.rows * high + 18;
    out += text(0, y, T("tiles.answers"), "strong");
    const rows = this.answers(m, step, T);
    for (const r of rows.slice(-8)) { y += 16; out += text(0, y, fit(`${r[0]}: ${r[1]} CTA ${r[2]}: ${r[3]}`, width), "small"); }
    return { svg: out, width, height: y + 8 };
  },
  twin({ m, step, T }) {
    const g = this.grid(m), rows = [];
    for (let i = 0; i < g.rows; i++) for (let j = 0; j < g.columns; j++) { const s = this.state(m, step, i, j, T); rows.push([`(${i}, ${j})`, s.word, s.sm === null ? "-" : `SM ${s.sm}`]); }
    const answers = this.answers(m, step, T), head = T("tiles.head", { m: g.m, n: g.n, across: g.rows, down: g.columns, tm: g.tm, tn: g.tn });
    for (const [at, sm, cta, words] of answers) rows.push([T("tiles.answer", { step: at }), words, `${sm} CTA ${cta}`]);
    return { intro: `${head} ${T("tiles.count", { n: answers.length })}`, short: head, caption: T("tiles.caption", { step }), columns: [T("col.tile"), T("col.state"), "SM"], rows };
  },
};
