// smem: the ring of stages, and the swizzle of one operand's tile.

const RING = ["A", "B", "SFA", "SFB"];

const smemView = {
  id: "smem",
  parts: (m) => m.header.maps.smem,
  bits: (m) => SWIZZLE_BITS[m.plan.operand_swizzle],
  rows: (m, operand) => (operand === "A" ? m.plan.tile_m : m.plan.tile_n),
  row(m, ui) { return Math.min(+ui.row, this.rows(m, ui.operand) - 1); },
  stages(m) { return Math.max(...this.parts(m).filter((p) => p.name === "A").map((p) => p.stage)) + 1; },
  controls({ m, T }) {
    const names = [...new Set(this.parts(m).map((p) => p.name))].filter((n) => ["A", "B"].includes(n));
    const sms = Object.keys(m.spaces).filter((s) => s.startsWith("smem")).map((s) => s.slice(4));
    return [
      ...(sms.length > 1 ? [{ id: "sm", label: "SM", type: "select", value: sms[0], options: sms.map((s) => [s, s]) }] : []),
      { id: "operand", label: T("smem.operand"), type: "select", value: "A", options: names.map((n) => [n, n]) },
      { id: "stage", label: T("smem.stage"), type: "select", value: "0", options: Array.from({ length: this.stages(m) }, (_, i) => [String(i), String(i)]) },
      { id: "row", label: T("smem.row"), type: "number", value: 3, min: 0, max: Math.max(m.plan.tile_m, m.plan.tile_n) - 1 },
      { id: "chunk", label: T("smem.chunk"), type: "number", value: 0, min: 0, max: swizzleSpan(this.bits(m)) / CHUNK - 1 },
    ];
  },
  sm(m, ui) { return +(ui.sm ?? Object.keys(m.spaces).find((s) => s.startsWith("smem")).slice(4)); },
  barrier: (m, sm, label) => m.barriers.find((b) => b.sm === sm && b.label === label),
  stageState(m, sm, i, T) {
    const full = this.barrier(m, sm, `mainloop.full[${i}]`), empty = this.barrier(m, sm, `mainloop.empty[${i}]`);
    if (!full?.live) return ["note", T("smem.unused")];
    if (full.tx || full.pending === 0) return ["tma", T("smem.filling", { n: full.tx.toLocaleString("en") })];
    const fills = full.flips, frees = empty?.flips ?? 0;
    if (fills > frees) return ["mma", T("smem.full", { fill: fills })];
    return fills ? ["wait", T("smem.free", { fill: fills })] : ["note", T("smem.unused")];
  },
  find(m, ui) {
    const part = this.parts(m).find((p) => p.name === ui.operand && p.stage === +ui.stage);
    const sm = this.sm(m, ui), space = m.spaces[`smem${sm}`];
    return { part, sm, space, start: space.base + part.offset };
  },
  draw({ m, step, ui, width, T, id }) {
    const sm = this.sm(m, ui), stages = this.stages(m);
    const nbytes = this.parts(m).filter((p) => RING.includes(p.name) && p.stage === 0).reduce((a, p) => a + p.nbytes, 0);
    const head = wrap(T("smem.ring", { stages, bytes: nbytes.toLocaleString("en") }), width), y0 = 14 * (head.length - 1);
    let out = patternDefs(id) + paragraph(0, 12, head, "small");
    const w = width / stages, touched = m.event(step);
    for (let i = 0; i < stages; i++) {
      const [kind, words] = this.stageState(m, sm, i, T), x = i * w + 2;
      out += box(id, kind, x, y0 + 20, w - 4, 16, { "data-ui": `stage=${i}`, "data-tip": `${T("smem.stage")} ${i}: ${words}` });
      out += text(x + 4, y0 + 50, fit(`${i}: ${words}`, w - 8), "small");
      RING.forEach((name, r) => {
        const part = this.parts(m).find((p) => p.name === name && p.stage === i);
        if (!part) return;
        const at = m.spaces[`smem${sm}`].base + part.offset, y = y0 + 56 + r * 17;
        const hit = (list) => touched?.[list].some(([s, a, n]) => s === `smem${sm}` && a < at + part.nbytes && a + n > at);
        const cls = hit("writes") ? "cell written" : hit("reads") ? "cell readby" : "cell";
        const known = m.spaces[`smem${sm}`].known[part.offset];
        out += rect(x, y, w - 4, 15, cls, { "data-ui": RING.indexOf(name) < 2 ? `operand=${name};stage=${i}` : undefined, "data-tip": `${name} ${T("smem.stage")} ${i}: ${hex(at)}, ${part.nbytes.toLocaleString("en")} B, ${T(`known.${known}`)}` });
        out += text(x + 4, y + 11, fit(`${name}${hit("writes") ? " ←" : hit("reads") ? " →" : ""}${known === KNOWN ? "" : known ? " ·" : " ?"}`, w - 8), "small");
      });
    }
    const { space, start, part } = this.find(m, ui), row = this.row(m, ui), bits = this.bits(m), line = swizzleSpan(bits), chunks = line / CHUNK, first = row - (row % GROUP_ROWS);
    const title = wrap(T("smem.grid", { operand: ui.operand, stage: ui.stage, from: first, to: first + GROUP_ROWS - 1, at: hex(start + first * line) }), width), top = y0 + 150 + 14 * (title.length - 1);
    out += paragraph(0, y0 + 142, title, "small");
    const left = 46, cw = (width - left) / chunks, ch = 24;
    for (let p = 0; p < chunks; p++) out += text(left + p * cw + cw / 2, top + 8, width < 640 ? `${4 * p}` : T("smem.banks", { from: 4 * p, to: 4 * p + 3 }), "mid small");
    for (let r = 0; r < GROUP_ROWS; r++) {
      const y = top + 14 + r * ch;
      out += text(0, y + 16, T("smem.rowname", { row: first + r }), "small");
      for (let p = 0; p < chunks; p++) {
        const at = part.offset + (first + r) * line + p * CHUNK, chunk = (swizzled(space.base + at, bits) % line) / CHUNK, known = space.known[at];
        const bytes = [...space.bytes.subarray(at, at + CHUNK)].map(hex2).join(" ");
        const mine = r === row % GROUP_ROWS && chunk === +ui.chunk, column = chunk === +ui.chunk;
        out += rect(left + p * cw + 1, y, cw - 2, ch - 2, `cell bank${p}${column ? " chosen" : ""}${mine ? " picked" : ""}`, { "data-ui": `row=${first + r};chunk=${chunk}`, "data-tip": `${hex(space.base + at)}: ${known === KNOWN ? bytes : T(`known.${known}`)}` });
        out += text(left + p * cw + cw / 2, y + 15, chunk, "mid strong");
        if (cw > 78 && known === KNOWN) out += text(left + p * cw + cw - 4, y + 15, [...space.bytes.subarray(at, at + 2)].map(hex2).join(" "), "end tiny");
      }
    }
    const f = this.formula(m, start, row, +ui.chunk), y = top + 14 + GROUP_ROWS * ch + 16;
    out += text(0, y, T("smem.formula1", { linear: hex(f.linear), ...f.names, b79: f.row3, b46: f.chunk3 }), "code") + text(0, y + 16, T("smem.formula2", { ...f.names, b46: f.chunk3, b79: f.row3, out: f.out3, address: hex(f.address) }), "code");
    const foot = wrap(T("smem.conflicts"), width);
    out += paragraph(0, y + 34, foot, "small");
    return { svg: out, width, height: y + 28 + 14 * foot.length };
  },
  formula(m, start, row, chunk) {
    const bits = this.bits(m), mask = (1 << bits) - 1, linear = start + row * swizzleSpan(bits) + chunk * CHUNK;
    const shown = (n) => n.toString(2).padStart(bits, "0"), b79 = (linear >> 7) & mask, b46 = (linear >> 4) & mask;
    return { linear, names: { read: `${bits + 6}-7`, changed: `${bits + 3}-4` }, row3: shown(b79), chunk3: shown(b46), out3: shown(b79 ^ b46), address: swizzled(linear, bits) };
  },
  twin({ m, ui, T, step }) {
    const sm = this.sm(m, ui), { start, space, part } = this.find(m, ui), row = this.row(m, ui), f = this.formula(m, start, row, +ui.chunk);
    const at = f.address - space.base, known = space.known[at];
    const rows = Array.from({ length: this.stages(m) }, (_, i) => [String(i), this.stageState(m, sm, i, T)[1], ...RING.map((name) => {
      const p = this.parts(m).find((q) => q.name === name && q.stage === i);
      return p ? T(`known.${space.known[p.offset]}`) : "-";
    })]);
    return {
      intro: T("smem.intro", { step, sm, operand: ui.operand, stage: ui.stage, row, chunk: ui.chunk, ...f.names, linear: hex(f.linear), address: hex(f.address), b46: f.chunk3, b79: f.row3, out: f.out3, bytes: known === KNOWN ? [...space.bytes.subarray(at, at + CHUNK)].map(hex2).join(" ") : T(`known.${known}`) }),
      caption: T("smem.caption", { step }), columns: [T("smem.stage"), T("col.state"), ...RING], rows,
    };
  },
};
