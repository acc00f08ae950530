// tmem: 128 lanes x 512 columns: who owns them, what they hold, values of one corner.

const tmemView = {
  id: "tmem",
  controls({ m, T }) {
    const sms = Object.keys(m.spaces).filter((s) => s.startsWith("tmem")).map((s) => s.slice(4));
    return [
      ...(sms.length > 1 ? [{ id: "sm", label: "SM", type: "select", value: sms[0], options: sms.map((s) => [s, s]) }] : []),
      { id: "lane", label: T("tmem.lane"), type: "number", value: 0, min: 0, max: 127 },
      { id: "column", label: T("tmem.column"), type: "number", value: 0, min: 0, max: 511 },
      { id: "writer", label: T("tmem.writer"), type: "button", key: "w", action: (c) => this.lastWriter(c) },
    ];
  },
  space(m, ui) { const n = ui.sm ?? Object.keys(m.spaces).find((s) => s.startsWith("tmem")).slice(4); return [`tmem${n}`, m.spaces[`tmem${n}`]]; },
  lastWriter({ m, step, ui, go }) {
    const steps = m.writersOf(this.space(m, ui)[0], +ui.lane * 2048 + +ui.column * 4).filter((s) => s < step);
    if (steps.length) go(steps.at(-1));
  },
  owner: (m, column) => m.header.maps?.tmem?.find((p) => column >= p.column && column < p.column + p.columns),
  allocated(m, sm, step) {
    let columns = 0;
    for (let i = 0; i <= step; i++) {
      if (m.columns.sm[i] !== sm) continue;
      const op = m.tables.operation[m.columns.operation[i]];
      if (op === "tcgen05.alloc") columns = m.tables.operands[m.columns.operands[i]].columns;
      else if (op === "tcgen05.dealloc") columns = 0;
    }
    return columns;
  },
  cell(m, space, lane, column, T) {
    const at = lane * 2048 + column * 4, known = space.known[at];
    if (known !== KNOWN) return T(`known.${known}`);
    const b = space.bytes.subarray(at, at + 4), word = (b[0] | (b[1] << 8) | (b[2] << 16) | (b[3] << 24)) >>> 0;
    const owner = this.owner(m, column);
    if (owner && owner.kind !== "accumulator") return [...b].map(hex2).join(" ");
    return this.short(floatOf(word));
  },
  short: (v) => (Number.isNaN(v) ? "NaN" : Math.abs(v) >= 1e5 || (v && Math.abs(v) < 1e-3) ? v.toExponential(2) : v.toPrecision(5).replace(/\.?0+$/, "")),
  heat(m, space) {
    const scales = (c) => (m.header.maps?.tmem ?? []).some((p) => p.kind !== "accumulator" && c >= p.column && c < p.column + p.columns);
    const ofScales = Array.from({ length: 512 }, (_, c) => scales(c));
    // Scales of a matrix are close to each other: the range that is there has all the shades.
    let low = 127, high = 0;
    ofScales.forEach((is, c) => {
      for (let lane = 0; is && lane < 32; lane++) {
        const at = lane * 2048 + c * 4, code = space.bytes[at] & 127;
        if (space.known[at] === KNOWN) { low = Math.min(low, code); high = Math.max(high, code); }
      }
    });
    const canvas = document.createElement("canvas");
    canvas.width = 512; canvas.height = 128;
    const pen = canvas.getContext("2d"), image = pen.createImageData(512, 128);
    for (let lane = 0; lane < 128; lane++)
      for (let c = 0; c < 512; c++) {
        const at = lane * 2048 + c * 4, p = (lane * 512 + c) * 4, known = space.known[at];
        let rgb = [0, 0, 0, 0];
        if (known === LOST) rgb = (lane + c) % 4 ? [128, 128, 128, 90] : [128, 128, 128, 200];
        else if (known === KNOWN) {
          const word = (space.bytes[at] | (space.bytes[at + 1] << 8) | (space.bytes[at + 2] << 16) | (space.bytes[at + 3] << 24)) >>> 0;
          const e = ((word >>> 23) & 255) - 127, mag = Math.max(0.12, Math.min(1, (e + 4) / 24));
          if (ofScales[c]) rgb = [136, 60, 170, 255 * (0.15 + (0.85 * ((word & 127) - low)) / Math.max(1, high - low))]; // the first of the cell's four
          else rgb = word >>> 31 ? [213, 94, 0, 255 * mag] : [0, 114, 178, 255 * mag];
        }
        image.data.set(rgb, p);
      }
    pen.putImageData(image, 0, 0);
    return canvas.toDataURL();
  },
  draw({ m, step, ui, width, T, id }) {
    const [name, space] = this.space(m, ui), sm = +name.slice(4), lane = +ui.lane, column = +ui.column;
    const left = 34, plot = width - left - 2, x = (c) => left + (c / 512) * plot, allocated = this.allocated(m, sm, step), head = wrap(T(allocated ? "tmem.head" : "tmem.none", { columns: allocated, step }), width), hue = wrap(T("tmem.hue"), plot), top = 20 + 14 * head.length, tall = Math.max(128, Math.min(220, plot / 4)), y = (l) => top + (l / 128) * tall;
    const event = m.event(step);
    let out = patternDefs(id) + paragraph(0, 12, head, "small");
    out += rect(left, top, plot, tall, "cell");
    out += `<image x="${left}" y="${top}" width="${plot}" height="${tall}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${this.heat(m, space)}"/>`;
    for (const p of m.header.maps?.tmem ?? []) {
      out += rect(x(p.column), top, (p.columns / 512) * plot, tall, `owner ${p.kind}`, { "data-cell": "" });
      if ((p.columns / 512) * plot > 30) out += text(x(p.column) + 3, top - 4, fit(p.name, (p.columns / 512) * plot), "small");
      else if (p.kind === "sfa") out += text(x(p.column), top - 4, "SF", "tiny");
    }
    if (allocated < 512) { out += rect(x(allocated), top, plot - (allocated / 512) * plot, tall, "ink", { fill: `url(#${id}-wait)`, opacity: 0.35 }); }
    for (let q = 0; q <= 4; q++) out += text(left - 4, y(q * 32) + (q ? 4 : 8), q * 32, "end tiny") + (q && q < 4 ? lineTo(left, y(q * 32), left + plot, y(q * 32), "grid") : "");
    for (const list of ["reads", "writes"])
      for (const [s, start, nbytes, rows, pitch] of event?.[list] ?? []) {
        if (s !== name) continue;
        const l = Math.floor(start / 2048), c = (start % 2048) / 4;
        out += rect(x(c), y(l), (nbytes / 4 / 512) * plot, (rows / 128) * tall, list === "writes" ? "mark written" : "mark readby");
      }
    const bad = step === m.length - 1 ? m.header.fault?.tmem : null;
    if (bad) out += rect(x(bad.column) - 1, y(bad.lane) - 1, Math.max(4, ((bad.columns ?? 1) / 512) * plot), Math.max(4, ((bad.lanes ?? 1) / 128) * tall), "mark illegal") + text(x(bad.column) + 4, y(bad.lane) + 12, T("tmem.illegal"), "strong alert");
    out += rect(left, top, plot, tall, "hit", { "data-grid": `${left},${top},${plot},${tall}` });
    out += rect(x(column) - 2, y(lane) - 2, 5, 5, "frame");
    out += paragraph(left, top + tall + 14, hue, "tiny");
    // values around the chosen cell
    const across = Math.max(2, Math.min(8, Math.floor((width - 44) / 78))), down = 8, l0 = Math.min(128 - down, lane & ~7), c0 = Math.min(512 - across, column - (column % across)), gy = top + tall + 26 + 14 * hue.length, cw = (width - 44) / across;
    for (let j = 0; j < across; j++) out += text(44 + j * cw + cw / 2, gy - 4, c0 + j, "mid tiny");
    for (let i = 0; i < down; i++) {
      out += text(38, gy + i * 20 + 14, l0 + i, "end tiny");
      for (let j = 0; j < across; j++) {
        const here = l0 + i === lane && c0 + j === column;
        out += rect(44 + j * cw + 1, gy + i * 20, cw - 2, 18, here ? "cell picked" : "cell", { "data-ui": `lane=${l0 + i};column=${c0 + j}` });
        out += text(44 + j * cw + cw / 2, gy + i * 20 + 13, fit(this.cell(m, space, l0 + i, c0 + j, T), cw - 4), "mid tiny");
      }
    }
    return { svg: out, width, height: gy + down * 20 + 4 };
  },
  // A click on the map: pixels to lane and column.
  pick(px, py, [left, top, plot, tall]) {
    return `lane=${Math.max(0, Math.min(127, Math.floor(((py - top) / tall) * 128)))};column=${Math.max(0, Math.min(511, Math.floor(((px - left) / plot) * 512)))}`;
  },
  hover({ m, ui, T }, px, py, area) {
    const [lane, column] = this.pick(px, py, area).match(/\d+/g).map(Number), owner = this.owner(m, column);
    return T("tmem.hover", { lane, column, owner: owner?.name ?? T("tmem.free"), value: this.cell(m, this.space(m, ui)[1], lane, column, T) });
  },
  twin({ m, step, ui, T }) {
    const [name, space] = this.space(m, ui), sm = +name.slice(4), lane = +ui.lane, column = +ui.column, owner = this.owner(m, column);
    const writers = m.writersOf(name, lane * 2048 + column * 4).filter((s) => s <= step);
    const rows = (m.header.maps?.tmem ?? []).map((p) => {
      const at = p.column * 4, wrote = m.writersOf(name, at).filter((s) => s <= step).at(-1);
      return [p.name, `${p.column}..${p.column + p.columns - 1}`, hex(p.column, 8), T(`known.${space.known[at]}`), wrote === undefined ? T("never") : `${wrote}: ${m.event(wrote).operation}`, this.cell(m, space, 0, p.column, T)];
    });
    return {
      intro: T("tmem.intro", { step, allocated: this.allocated(m, sm, step), lane, column, taddr: hex(lane * 65536 + column, 8), owner: owner?.name ?? T("tmem.free"), value: this.cell(m, space, lane, column, T), writer: writers.length ? T("tmem.by", { step: writers.at(-1), what: m.event(writers.at(-1)).operation }) : T("never") }),
      caption: T("tmem.caption", { step }), columns: ["col.part", "col.columns", "col.taddr", "col.state", "col.writer", "col.first"].map((k) => T(k)), rows,
    };
  },
};
