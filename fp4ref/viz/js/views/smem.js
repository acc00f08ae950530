// smem: the ring of stages, and the swizzle of one operand's tile.

const RING = ["A", "B", "SFA", "SFB"];

const smemView = {
  id: "smem",
  parts: (m) => m.header.maps.smem,
  stages(m) { return Math.max(...this.parts(m).filter((p) => p.name === "A").map((p) => p.stage)) + 1; },
  controls({ m, T }) {
    const names = [...new Set(this.parts(m).map((p) => p.name))].filter((n) => ["A", "B"].includes(n));
    const sms = Object.keys(m.spaces).filter((s) => s.startsWith("smem")).map((s) => s.slice(4));
    return [
      ...(sms.length > 1 ? [{ id: "sm", label: "SM", type: "select", value: sms[0], options: sms.map((s) => [s, s]) }] : []),
      { id: "operand", label: T("smem.operand"), type: "select", value: "A", options: names.map((n) => [n, n]) },
      { id: "stage", label: T("smem.stage"), type: "select", value: "0", options: Array.from({ length: this.stages(m) }, (_, i) => [String(i), String(i)]) },
      { id: "row", label: T("smem.row"), type: "number", value: 3, min: 0, max: 127 },
      { id: "chunk", label: T("smem.chunk"), type: "number", value: 0, min: 0, max: 7 },
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
    const { space, start, part } = this.find(m, ui), row = +ui.row, group8 = row >> 3;
    const title = wrap(T("smem.grid", { operand: ui.operand, stage: ui.stage, from: group8 * 8, to: group8 * 8 + 7, at: hex(start + group8 * 1024) }), width), top = y0 + 150 + 14 * (title.length - 1);
    out += paragraph(0, y0 + 142, title, "small");
    const left = 46, cw = (width - left) / 8, ch = 24;
    for (let p = 0; p < 8; p++) out += text(left + p * cw + cw / 2, top + 8, width < 520 ? `${4 * p}` : T("smem.banks", { from: 4 * p, to: 4 * p + 3 }), "mid small");
    for (let r = 0; r < 8; r++) {
      const y = top + 14 + r * ch;
      out += text(0, y + 16, T("smem.rowname", { row: group8 * 8 + r }), "small");
      for (let p = 0; p < 8; p++) {
        const chunk = p ^ r, at = part.offset + group8 * 1024 + r * 128 + p * 16, known = space.known[at];
        const bytes = [...space.bytes.subarray(at, at + 16)].map(hex2).join(" ");
        const mine = r === (row & 7) && chunk === +ui.chunk, column = chunk === +ui.chunk;
        out += rect(left + p * cw + 1, y, cw - 2, ch - 2, `cell bank${p}${column ? " chosen" : ""}${mine ? " picked" : ""}`, { "data-ui": `row=${group8 * 8 + r};chunk=${chunk}`, "data-tip": `${hex(space.base + at)}: ${known === KNOWN ? bytes : T(`known.${known}`)}` });
        out += text(left + p * cw + cw / 2, y + 15, chunk, "mid strong");
        if (cw > 78 && known === KNOWN) out += text(left + p * cw + cw - 4, y + 15, [...space.bytes.subarray(at, at + 2)].map(hex2).join(" "), "end tiny");
      }
    }
    const f = this.formula(start, row, +ui.chunk), y = top + 14 + 8 * ch + 16;
    out += text(0, y, T("smem.formula1", { linear: hex(f.linear), b79: f.row3, b46: f.chunk3 }), "code") + text(0, y + 16, T("smem.formula2", { b46: f.chunk3, b79: f.row3, out: f.out3, address: hex(f.address) }), "code");
    const foot = wrap(T("smem.conflicts"), width);
    out += paragraph(0, y + 34, foot, "small");
    return { svg: out, width, height: y + 28 + 14 * foot.length };
  },
  formula(start, row, chunk) {
    const linear = start + (row >> 3) * 1024 + (row & 7) * 128 + chunk * 16;
    const bits = (n) => n.toString(2).padStart(3, "0"), b79 = (linear >> 7) & 7, b46 = (linear >> 4) & 7;
    return { linear, row3: bits(b79), chunk3: bits(b46), out3: bits(b79 ^ b46), address: linear ^ (b79 << 4) };
  },
  twin({ m, ui, T, step }) {
    const sm = this.sm(m, ui), { start, space, part } = this.find(m, ui), f = this.formula(start, +ui.row, +ui.chunk);
    const at = f.address - space.base, known = space.known[at];
    const rows = Array.from({ length: this.stages(m) }, (_, i) => [String(i), this.stageState(m, sm, i, T)[1], ...RING.map((name) => {
      const p = this.parts(m).find((q) => q.name === name && q.stage === i);
      return p ? T(`known.${space.known[p.offset]}`) : "-";
    })]);
    return {
      intro: T("smem.intro", { step, sm, operand: ui.operand, stage: ui.stage, row: ui.row, chunk: ui.chunk, linear: hex(f.linear), address: hex(f.address), b46: f.chunk3, b79: f.row3, out: f.out3, bytes: known === KNOWN ? [...space.bytes.subarray(at, at + 16)].map(hex2).join(" ") : T(`known.${known}`) }),
      caption: T("smem.caption", { step }), columns: [T("smem.stage"), T("col.state"), ...RING], rows,
    };
  },
};
