// tensors: A, B and D as matrices: what is loaded and stored so far, the tile and k-tile of this step, and its scale atoms.

const tensorsView = {
  id: "tensors",
  controls: ({ T }) => [
    { id: "before", label: T("tensors.previous"), type: "button", key: "p", action: (c) => tensorsView.hop(c, -1) },
    { id: "after", label: T("tensors.next"), type: "button", key: "n", action: (c) => tensorsView.hop(c, 1) },
  ],
  hop({ m, step, go }, way) {
    const to = nextOf(this.boxes(m).map((b) => b.step), step, way);
    if (to !== undefined) go(to);
  },
  // Every box that lands: its tensor, first row and column in elements, size, step, and where its bytes are.
  boxes(m) {
    return (m.boxes ??= Array.from({ length: m.length }, (_, i) => i).filter((i) => m.columns.kind[i] === 2 && this.moves(m, i)).map((i) => {
      const e = m.event(i);
      return { ...this.boxOf(m, e.operands), step: i, sm: e.sm, bits: e.operands.bits, swizzle: e.operands.swizzle, at: m.columns.writes[i][0][1] };
    }));
  },
  moves(m, i) {
    const operation = m.tables.operation[m.columns.operation[i]], { tensor } = m.tables.operands[m.columns.operands[i]];
    if (operation.endsWith(".load")) return ["A", "B", "SFA", "SFB"].includes(tensor);
    return operation.endsWith(".store") && tensor === "D" && m.columns.writes[i].length > 0;
  },
  // Rows and columns of a box: of scales in atoms' elements, of 128 rows.
  boxOf(m, { tensor, coords, box }) {
    if (tensor.startsWith("SF")) return { tensor, row: coords[2] * 128, column: coords[1] * m.plan.sf_atom_k, rows: 128 * box[2], columns: box[1] * m.plan.sf_atom_k };
    return { tensor, row: coords[1], column: coords[0], rows: box[1], columns: box[0] };
  },
  // What each step acts on: parts of A, B and D, and the scale atoms; of others what their SM did last.
  acts(m) {
    if (m.acts) return m.acts;
    const loaded = new Map(), last = new Map();
    m.acts = Array.from({ length: m.length }, (_, i) => {
      const e = m.event(i), found = this.actOf(m, e, loaded);
      if (found) last.set(e.sm, { ...found, by: i });
      if (e.kind === "land" && e.operation.endsWith(".load"))
        for (const [space, start, nbytes] of e.writes) if (nbytes > 16 && this.moves(m, i)) loaded.set(`${space} ${this.buffer(m, space, start)}`, { ...this.boxOf(m, e.operands), start, bits: e.operands.bits });
      return last.get(e.sm) ?? {};
    });
    return m.acts;
  },
  // Offset of the buffer of shared memory that an address lies in.
  buffer(m, space, start) { const part = partAt(m, [space, start]); return part ? part.offset : -1; },
  at(m, e, desc, loaded) {
    const address = Number(BigInt(desc) & 0x3fffn) << 4, space = `smem${e.sm}`, box = loaded.get(`${space} ${this.buffer(m, space, address)}`);
    return box && { ...box, skip: address - box.start };
  },
  actOf(m, e, loaded) {
    const { operands, operation } = e;
    if (operation.endsWith(".load") && ["A", "B", "SFA", "SFB"].includes(operands.tensor)) return { [operands.tensor]: this.boxOf(m, operands) };
    if (operation.endsWith(".store") && operands.tensor === "D") return { D: this.boxOf(m, operands) };
    if (operation === "tcgen05.cp") {
      const box = this.at(m, e, operands.s_desc, loaded), k = m.plan.sf_atom_k;
      return box && { [box.tensor]: { ...box, rows: 128, column: box.column + (Math.floor(box.skip / 512) % (box.columns / k)) * k, columns: k } };
    }
    if (operation !== "tcgen05.mma") return null;
    const a = this.at(m, e, operands.a_desc, loaded), b = this.at(m, e, operands.b_desc, loaded);
    if (!a || !b) return null;
    const first = a.column + (a.skip * 8) / a.bits, kBlock = (row) => ({ row: row & ~127, rows: 128, column: first - (first % m.plan.sf_atom_k), columns: m.plan.sf_atom_k });
    const D = { row: a.row, rows: a.rows, column: b.row, columns: b.rows };
    return { A: a, B: b, D, k: { first, last: first + m.plan.mma_k - 1 }, ...("scales" in m.header ? { SFA: kBlock(a.row), SFB: kBlock(b.row) } : {}) };
  },
  // Where the matrices stand: A left of D, B above it with K downwards, scales beside their operand.
  layout({ m, width }) {
    const { m: M, n: N, k: K } = m.header.meta.shape, scales = "scales" in m.header, narrow = width < 520, left = 30, bar = 12;
    const sfa = scales ? Math.ceil(M / 128) * bar + 20 : 0, sfb = scales ? Math.ceil(N / 128) * bar + 10 : 0;
    const room = width - left - sfb - 34, kWide = room * 0.42, nWide = room - kWide, kHigh = narrow ? 170 : 190, mHigh = Math.max(90, Math.min(300, (nWide * M) / N));
    const top = 20, x2 = left + kWide + 34, y2 = top + kHigh + 26;
    return {
      K, M, N, sfb, bar, height: y2 + mHigh + sfa + 20, corner: { x: 0, y: top, width: left + kWide - 6 },
      A: { x: left, y: y2, w: kWide, h: mHigh, rows: M, columns: K }, B: { x: x2, y: top, w: nWide, h: kHigh, rows: N, columns: K, turned: true }, D: { x: x2, y: y2, w: nWide, h: mHigh, rows: M, columns: N },
      SFA: { x: left, y: y2 + mHigh + 20, w: kWide, h: Math.ceil(M / 128) * bar, rows: Math.ceil(M / 128) * 128, columns: K }, SFB: { x: x2 + nWide + 8, y: top, w: Math.ceil(N / 128) * bar, h: kHigh, rows: Math.ceil(N / 128) * 128, columns: K, turned: true },
    };
  },
  // The rectangle of a part of a matrix; what lies outside the matrix is cut off.
  place(p, { row, column, rows, columns }) {
    const [r0, r1] = [row, Math.min(p.rows, row + rows)].map((v) => v / p.rows), [c0, c1] = [column, Math.min(p.columns, column + columns)].map((v) => v / p.columns);
    return p.turned ? [p.x + r0 * p.w, p.y + c0 * p.h, (r1 - r0) * p.w, (c1 - c0) * p.h] : [p.x + c0 * p.w, p.y + r0 * p.h, (c1 - c0) * p.w, (r1 - r0) * p.h];
  },
  draw(c) {
    const { m, step, width, T, id } = c, at = this.layout(c), act = this.acts(m)[step], names = ["A", "B", "D", ...("scales" in m.header ? ["SFA", "SFB"] : [])];
    const kinds = { A: "tma", B: "tma", D: "st", SFA: "cp", SFB: "cp" };
    let out = patternDefs(id);
    for (const name of names) { const p = at[name]; out += rect(p.x, p.y, p.w, p.h, "cell", { "data-tip": T("tensors.tip", { tensor: name, rows: p.rows, columns: p.columns }) }); }
    const shown = new Set();
    for (const b of this.boxes(m)) {
      if (b.step > step) break;
      const key = `${b.tensor} ${b.row} ${b.column}`, [x, y, w, h] = this.place(at[b.tensor], b);
      if (shown.has(key) || !(b.tensor in at)) continue;
      shown.add(key);
      out += box(id, kinds[b.tensor], x, y, w, h, { "data-step": b.step, "data-grid": `${x},${y},${w},${h},${b.step}`, "data-tip": T("tensors.landed", { what: this.range(T, b.tensor, b), step: b.step }) });
    }
    // The atom's scales, and the elements that they scale, have one colour.
    for (const [scales, operand] of [["SFA", "A"], ["SFB", "B"]])
      if (act[scales]) for (const name of [scales, operand]) out += rect(...this.place(at[name], act[scales]), "atom", { style: "pointer-events:none" });
    for (const name of names) if (act[name]) { const [x, y, w, h] = this.place(at[name], act[name]); out += rect(x - 1, y - 1, w + 2, h + 2, "frame strong"); }
    out += this.labels(c, at) + paragraph(at.corner.x, at.corner.y + 8, this.legend(c, at.corner.width), "small");
    return { svg: out, width, height: at.height };
  },
  legend({ m, T }, width) { return wrap(m.header.scales ? T("tensors.legend") : T("tensors.legend.plain"), width, 7); },
  labels({ m, T, width }, at) {
    const { A, B, D, SFA, SFB } = at;
    let out = text(A.x, A.y - 5, `A ${at.M} × ${at.K}`, "small") + text(B.x, B.y - 5, `B ${at.N} × ${at.K}, K ↓`, "small") + text(D.x, D.y - 5, `D ${at.M} × ${at.N}`, "small");
    if ("scales" in m.header) out += text(SFA.x, SFA.y - 4, "SFA", "small") + text(Math.min(SFB.x, width - 26), SFB.y - 5, "SFB", "small");
    return out;
  },
  range: (T, tensor, { row, rows, column, columns }) => T(tensor === "D" ? "tensors.part.d" : "tensors.part", { tensor, r0: row, r1: row + rows - 1, c0: column, c1: column + columns - 1 }),
  // The element under the pointer, with its value where the box's bytes are kept.
  hover({ m, T, width }, px, py, [x, y, w, h, step]) {
    const b = this.boxes(m).find((each) => each.step === step), turned = ["B", "SFB"].includes(b.tensor), cut = this.layout({ m, width })[b.tensor];
    const fx = Math.max(0, Math.min(0.9999, (px - x) / w)), fy = Math.max(0, Math.min(0.9999, (py - y) / h));
    const rows = Math.min(b.rows, cut.rows - b.row), columns = Math.min(b.columns, cut.columns - b.column), r = Math.floor((turned ? fx : fy) * rows), k = Math.floor((turned ? fy : fx) * columns);
    return T("tensors.element", { tensor: b.tensor, row: b.row + r, column: b.column + k, step, value: this.value(m, T, b, r, k) });
  },
  value(m, T, b, r, k) {
    if (b.tensor === "D" || b.tensor.startsWith("SF")) return "";
    if (b.bits !== 4 || b.at < 0) return T("tensors.value", { value: T("known.2") });
    const at = swizzled((r * b.columns) / 2 + (k >> 1), b.swizzle), byte = m.payload[b.at + at];
    return T("tensors.value", { value: E2M1_HALVES[k & 1 ? byte >> 4 : byte & 15] / 2 });
  },
  twin(c) {
    const { m, step, T } = c, act = this.acts(m)[step], done = this.boxes(m).filter((b) => b.step <= step), names = ["A", "B", ...("scales" in m.header ? ["SFA", "SFB"] : []), "D"];
    const distinct = (boxes, name) => new Set(boxes.filter((b) => b.tensor === name).map((b) => `${b.row} ${b.column}`)).size;
    const rows = names.map((name) => [name, act[name] ? this.range(T, name, act[name]) : "-", T("tensors.count", { n: distinct(done, name), of: distinct(this.boxes(m), name) })]);
    const where = act.by === undefined ? T("tensors.none") : `${T("tensors.by", { step: act.by, words: m.event(act.by).words })}${act.k ? ` ${T("tensors.mma", { ...act.k, tile: act.A.column / act.A.columns })}` : ""}`;
    return { intro: `${T("tensors.intro", { step })} ${where}`, short: where, caption: T("tensors.caption", { step }), columns: ["tensor", "now", "landed"].map((k) => T(`tensors.col.${k}`)), rows };
  },
};
