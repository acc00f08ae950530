// swizzle: the pattern of one mode alone: 8 rows, and where each 16-byte chunk goes.

const swizzleView = {
  id: "swizzle",
  controls: ({ m, T }) => [
    { id: "mode", label: T("swizzle.mode"), type: "select", value: m.header.swizzle.mode, options: Object.keys(m.header.swizzle.modes).map((k) => [k, k]) },
    { id: "row", label: T("smem.row"), type: "number", value: 1, min: 0, max: 7 },
    { id: "chunk", label: T("smem.chunk"), type: "number", value: 0, min: 0, max: 7 },
  ],
  // modes[mode].address[row][chunk]: where the package puts the chunk.
  draw({ m, ui, width, T }) {
    const mode = m.header.swizzle.modes[ui.mode], rows = 8, chunks = mode.span / 16, row = +ui.row, chunk = Math.min(chunks - 1, +ui.chunk);
    const left = 50, cw = (width - left) / 8, ch = 26, lines = (rows * mode.span) / 128;
    const head = wrap(T("swizzle.head", { mode: ui.mode, span: mode.span }), width), y0 = 14 * (head.length - 1);
    let out = paragraph(0, 13, head, "small");
    for (let p = 0; p < 8; p++) out += text(left + p * cw + cw / 2, y0 + 30, width < 520 ? 4 * p : T("smem.banks", { from: 4 * p, to: 4 * p + 3 }), "mid small");
    for (let r = 0; r < rows; r++)
      for (let c = 0; c < chunks; c++) {
        const at = mode.address[r][c], line = Math.floor(at / 128), p = (at % 128) / 16, mine = r === row && c === chunk;
        out += rect(left + p * cw + 1, y0 + 38 + line * ch, cw - 2, ch - 2, `cell bank${p}${c === chunk ? " chosen" : ""}${mine ? " picked" : ""}`, { "data-ui": `row=${r};chunk=${c}`, "data-tip": T("swizzle.tip", { r, c, linear: hex(r * mode.span + c * 16), at: hex(at) }) });
        out += text(left + p * cw + cw / 2, y0 + 38 + line * ch + 16, `${r}.${c}`, "mid small");
      }
    for (let l = 0; l < lines; l++) out += text(0, y0 + 38 + l * ch + 16, hex(l * 128, 3), "small");
    const y = y0 + 38 + lines * ch + 18, f = this.formula(mode, row, chunk);
    out += text(0, y, T("swizzle.formula", { linear: f.linear, mask: f.mask, at: f.at }), "code");
    const foot = wrap(T("swizzle.conflicts", { before: f.before, after: f.after, chunk }), width);
    out += paragraph(0, y + 18, foot, "small");
    return { svg: out, width, height: y + 12 + 14 * foot.length };
  },
  formula(mode, row, chunk) {
    const bits = (n) => n.toString(2).padStart(10, "0"), linear = row * mode.span + chunk * 16, at = mode.address[row][chunk];
    const worst = (places) => Math.max(...Object.values(places.reduce((a, p) => ({ ...a, [p]: (a[p] ?? 0) + 1 }), {})));
    const rows = [...Array(8).keys()];
    return { linear: bits(linear), mask: bits(linear ^ at), at: bits(at), before: worst(rows.map((r) => (r * mode.span + chunk * 16) % 128)), after: worst(rows.map((r) => mode.address[r][chunk] % 128)) };
  },
  twin({ m, ui, T }) {
    const mode = m.header.swizzle.modes[ui.mode], chunks = mode.span / 16, chunk = Math.min(chunks - 1, +ui.chunk), f = this.formula(mode, +ui.row, chunk);
    return {
      intro: `${T("swizzle.head", { mode: ui.mode, span: mode.span })} ${T("swizzle.tip", { r: ui.row, c: chunk, linear: hex(+ui.row * mode.span + chunk * 16), at: hex(mode.address[+ui.row][chunk]) })} ${T("swizzle.conflicts", { before: f.before, after: f.after, chunk })}`,
      caption: T("swizzle.caption"), columns: [T("col.row"), ...Array.from({ length: chunks }, (_, c) => T("swizzle.chunk", { c }))],
      rows: mode.address.map((r, i) => [String(i), ...r.map((a) => hex(a, 3))]),
    };
  },
};
