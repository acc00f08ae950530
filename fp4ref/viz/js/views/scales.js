// scales: one scale byte in four places: row-major, 128x4 atom, shared memory, TMEM.

const scalesView = {
  id: "scales",
  controls({ m, T }) {
    const s = m.header.scales, first = s[Object.keys(s)[0]];
    return [
      { id: "operand", label: T("scales.operand"), type: "select", value: Object.keys(s)[0], options: Object.keys(s).map((k) => [k, k]) },
      { id: "row", label: T("scales.row"), type: "number", value: Math.min(37, first.rows_in_all - 1, first.rows - 1), min: 0, max: first.rows - 1 },
      { id: "group", label: T("scales.group"), type: "number", value: Math.min(10, first.groups_in_all - 1, first.groups - 1), min: 0, max: first.groups - 1 },
      ...(m.length ? [{ id: "stage", label: T("smem.stage"), type: "select", value: "auto", options: [["auto", T("scales.auto")], ...Array.from({ length: smemView.stages(m) }, (_, i) => [String(i), String(i)])] }] : []),
    ];
  },
  place(m, ui) {
    const s = m.header.scales[ui.operand], i = +ui.row * s.groups + +ui.group;
    return { s, i, gmem: s.gmem[i], smem: s.smem[i], lane: s.lane[i], column: s.column[i], byte: s.byte[i] };
  },
  // The last copy into a TMEM cell: its step and the shared address it read.
  lastCopy(m, space, at) {
    for (let i = m.step; i >= 0; i--) {
      if (m.columns.kind[i] !== 2 || m.tables.operation[m.columns.operation[i]] !== "tcgen05.cp") continue;
      const e = m.event(i), [s, start, nbytes] = e.writes[0] ?? [];
      if (s === space && at >= start && at < start + nbytes) return { step: i, from: e.reads[0][1] };
    }
    return null;
  },
  live(m, ui, T) {
    if (!m.length) return {};
    const name = Object.keys(m.spaces).find((s) => s.startsWith("smem")), smem = m.spaces[name];
    const p = this.place(m, ui), out = {};
    const buffers = m.header.maps.tmem.filter((x) => x.name.startsWith(ui.operand)), space = name.replace("smem", "tmem"), tmem = m.spaces[space];
    const copies = buffers.map((b) => ({ b, copy: this.lastCopy(m, space, (b.column + p.column) * 4) }));
    const { b: buffer, copy } = copies.reduce((x, y) => ((y.copy?.step ?? -1) > (x.copy?.step ?? -1) ? y : x));
    const parts = m.header.maps.smem.filter((x) => x.name === ui.operand), base = smem.base;
    const copied = copy ? parts.find((x) => copy.from - base >= x.offset && copy.from - base < x.offset + x.nbytes) : null;
    const part = ui.stage === "auto" ? copied ?? parts[0] : parts.find((x) => x.stage === +ui.stage);
    const at = part.offset + p.smem, cell = p.lane * 2048 + (buffer.column + p.column) * 4 + p.byte;
    out.stage = part.stage;
    out.smemAddress = base + at;
    out.column = buffer.column + p.column;
    out.tmem = tmem.known[cell] === KNOWN ? hex2(tmem.bytes[cell]) : T(`known.${tmem.known[cell]}`);
    out.smem = smem.known[at] === KNOWN ? hex2(smem.bytes[at]) : T(`known.${smem.known[at]}`);
    if (ui.stage === "auto" && copy && m.writersOf(name, base + at).some((s) => s > copy.step && s <= m.step)) out.smem = T("scales.refilled", { value: out.smem });
    return out;
  },
  panels(m, ui, T) {
    const p = this.place(m, ui), live = this.live(m, ui, T), atom = Math.floor(p.smem / 512), inAtom = p.smem % 512;
    const outside = +ui.row >= p.s.rows_in_all || +ui.group >= p.s.groups_in_all;
    return { p, live, atom, inAtom, words: [
      [T("scales.p1"), outside ? T("scales.outside") : T("scales.w1", { row: ui.row, group: ui.group, byte: +ui.row * p.s.groups_in_all + +ui.group, k0: +ui.group * p.s.vec, k1: (+ui.group + 1) * p.s.vec - 1 })],
      [T("scales.p2"), p.gmem === null ? T("scales.outside") : T("scales.w2", { atom, line: Math.floor(inAtom / 16), byte: inAtom % 16, offset: p.gmem })],
      [T("scales.p3"), T("scales.w3", { stage: live.stage ?? "-", offset: p.smem, address: live.smemAddress ? hex(live.smemAddress) : "-", value: live.smem ?? "-" })],
      [T("scales.p4"), T("scales.w4", { lanes: [0, 32, 64, 96].map((q) => p.lane + q).join(", "), column: live.column ?? p.column, byte: p.byte, value: live.tmem ?? "-" })],
    ] };
  },
  draw({ m, ui, width, T, id }) {
    const { p, words, atom, inAtom } = this.panels(m, ui, T), { s } = p;
    const across = width < 560 ? 1 : 2, pw = width / across - 10, ph = 184;
    let out = patternDefs(id);
    const panel = (k, body) => {
      const x = (k % across) * (pw + 10), y = Math.floor(k / across) * ph;
      out += group(text(0, 13, fit(words[k][0], pw - 20, 12), "strong") + arrow(k) + body + text(0, ph - 26, T(`scales.axes${k + 1}`), "small") + text(0, ph - 12, fit(words[k][1], pw), "small"), { transform: `translate(${x} ${y})` });
    };
    // The order of the journey, and what runs along each picture.
    const arrow = (k) => (across === 2 && k % 2 === 0 ? text(pw - 14, 13, "→", "strong") : k < 3 ? text(pw - 14, 13, across === 2 && k === 1 ? "↙" : "↓", "strong") : "");
    const cell = (x, y, w, h, on, more, dim) => rect(x, y, w, h, on ? "cell picked lit" : dim ? "cell column" : "cell", more);
    // 1: rows x groups, in bands of one row
    const gw = Math.min(22, pw / s.groups), gh = 126 / s.rows;
    let body = rect(0, 20, gw * s.groups, 126, "cell", { "data-area": `0,20,${gw * s.groups},126,0` });
    for (let g = 4; g < s.groups; g += 4) body += lineTo(g * gw, 20, g * gw, 146, "grid");
    for (let r = 32; r < s.rows; r += 32) body += lineTo(0, 20 + r * gh, gw * s.groups, 20 + r * gh, "grid");
    for (const [x, y, w, h] of [[s.groups_in_all * gw, 20, (s.groups - s.groups_in_all) * gw, 126], [0, 20 + s.rows_in_all * gh, gw * s.groups, (s.rows - s.rows_in_all) * gh]]) if (w > 0 && h > 0) body += rect(x, y, w, h, "plate") + rect(x, y, w, h, "ink", { fill: `url(#${id}-wait)`, style: "pointer-events:none" });
    body += rect((+ui.group & ~3) * gw, 20, 4 * gw, 126, "column") + cell(+ui.group * gw, 20 + +ui.row * gh - 1, gw, Math.max(4, gh + 2), true);
    panel(0, body);
    // 2: the atom: 32 lines of 16 bytes = 4 row groups x 4 scales
    const aw = Math.min(22, pw / 16), ah = 126 / 32;
    body = rect(0, 20, aw * 16, 126, "cell", { "data-area": `0,20,${aw * 16},126,1` });
    for (let b = 4; b < 16; b += 4) body += lineTo(b * aw, 20, b * aw, 146, "grid");
    body += rect(0, 20 + Math.floor(inAtom / 16) * ah, aw * 16, ah, "column") + cell((inAtom % 16) * aw, 20 + Math.floor(inAtom / 16) * ah - 1, aw, ah + 2, true);
    for (let q = 0; q < 4; q++) body += text(q * 4 * aw + 2 * aw, 30, fit(T("scales.rows", { from: 32 * q, to: 32 * q + 31 }), 4 * aw - 4), "mid tiny");
    panel(1, body);
    // 3: the stage: atoms one after another along K
    const atoms = s.nbytes / 512, sw = (pw - 4) / atoms;
    body = "";
    for (let a = 0; a < atoms; a++) {
      body += rect(a * sw, 20, sw - 2, 126, a === atom ? "cell column" : "cell", { "data-area": `${a * sw},20,${sw - 2},126,2,${a}` }) + text(a * sw + sw / 2, 34, fit(T("scales.atom", { a, from: a * 512 }), sw - 8), "mid tiny");
      if (a === atom) body += cell(a * sw + ((inAtom % 16) / 16) * (sw - 2), 20 + (Math.floor(inAtom / 16) / 32) * 126 - 1, Math.max(4, (sw - 2) / 16), 126 / 32 + 2, true);
    }
    panel(2, body);
    // 4: TMEM: four lane quarters, the columns of this operand
    const columns = s.columns, tw = Math.min(30, pw / columns), th = 126 / 128;
    body = rect(0, 20, tw * columns, 126, "cell", { "data-area": `0,20,${tw * columns},126,3` });
    for (let c = 4; c < columns; c += 4) body += lineTo(c * tw, 20, c * tw, 146, "grid");
    for (let q = 0; q < 4; q++) {
      if (q) body += lineTo(0, 20 + q * 32 * th, tw * columns, 20 + q * 32 * th, "grid");
      body += cell(p.column * tw + (p.byte / 4) * tw, 20 + (q * 32 + p.lane) * th - 1.5, Math.max(4, tw / 4), 4, true);
    }
    panel(3, body);
    return { svg: out, width, height: Math.ceil(4 / across) * ph };
  },
  // A click in one of the four pictures: fractions across and down to a scale.
  area({ m, ui }, [panel, atom], fx, fy) {
    const s = m.header.scales[ui.operand], p = this.place(m, ui), at = (n, f) => Math.max(0, Math.min(n - 1, Math.floor(f * n)));
    const hit = (test) => s.smem.findIndex((_, i) => test(i));
    let i;
    if (panel === 0) i = at(s.rows, fy) * s.groups + at(s.groups, fx);
    else if (panel === 3) { const cell = at(s.columns * 4, fx), lane = at(128, fy) % 32; i = hit((k) => s.lane[k] === lane && s.column[k] * 4 + s.byte[k] === cell); }
    else { const from = (panel === 2 ? atom : Math.floor(p.smem / 512)) * 512 + at(32, fy) * 16 + at(16, fx); i = hit((k) => s.smem[k] === from); }
    return `row=${Math.floor(i / s.groups)};group=${i % s.groups}`;
  },
  twin({ m, ui, T }) {
    const { words } = this.panels(m, ui, T);
    return { intro: T("scales.intro", { operand: ui.operand, row: ui.row, group: ui.group }), caption: T("scales.caption"), columns: [T("col.place"), T("col.where")], rows: words };
  },
};
