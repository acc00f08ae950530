// mma: one output element of one tcgen05.mma: sums, scales, aligned bits, the cut.

const mmaView = {
  id: "mma",
  controls({ m, T }) {
    if (m.header.microscope) return [];
    return [
      { id: "m", label: T("mma.row"), type: "number", value: 0, min: 0, max: this.shape(m).rows - 1 },
      { id: "n", label: T("mma.column"), type: "number", value: 0, min: 0, max: this.shape(m).columns - 1 },
      { id: "before", label: T("mma.previous"), type: "button", key: "p", action: (c) => this.hop(c, -1) },
      { id: "after", label: T("mma.next"), type: "button", key: "n", action: (c) => this.hop(c, 1) },
    ];
  },
  landings(m) {
    if (!m.mmas) {
      m.mmas = [];
      for (let i = 0; i < m.length; i++)
        if (m.columns.kind[i] === 2 && m.tables.operation[m.columns.operation[i]] === "tcgen05.mma" && m.columns.writes[i].some(([, at]) => at === COMPUTED)) m.mmas.push(i);
    }
    return m.mmas;
  },
  // Rows and columns of the accumulator that the first MMA writes; one element without one.
  shape(m) {
    const first = this.landings(m)[0], [, , nbytes, rows] = first === undefined ? [0, 0, 4, 1] : m.event(first).writes[0];
    return { rows, columns: nbytes / 4 };
  },
  hop({ m, step, go }, way) {
    const to = way > 0 ? this.landings(m).find((s) => s > step) : this.landings(m).filter((s) => s < step).at(-1);
    if (to !== undefined) go(to);
  },
  element({ m, step, ui }) {
    let a, b, sfa, sfb, c, format, at = -1;
    if (m.header.microscope) {
      const x = m.header.microscope;
      [a, b] = [x.a, x.b].map((codes) => codes.map((code) => E2M1_HALVES[code]));
      ({ sfa, sfb, c } = x); format = x.format ?? "UE4M3";
    } else {
      at = this.landings(m).filter((s) => s <= step).at(-1);
      if (at === undefined) return null;
      m.probe ??= new Machine(m.header, m.payload);
      m.probe.results = m.results;
      m.probe.seek(at - 1);
      const key = `${at}`;
      if (m.probeKey !== key) { m.probeOperands = m.probe.operands(m.probe.event(at)); m.probeKey = key; }
      const o = m.probeOperands;
      if (!o) return null;
      const i = +ui.m, j = +ui.n;
      a = [...o.a.subarray(i * MMA_K, (i + 1) * MMA_K)]; b = [...o.b.subarray(j * MMA_K, (j + 1) * MMA_K)];
      sfa = [...o.sfa.subarray(i * GROUPS, (i + 1) * GROUPS)]; sfb = [...o.sfb.subarray(j * GROUPS, (j + 1) * GROUPS)];
      c = o.c ? o.c[i * o.columns + j] : 0; format = o.format;
    }
    const groups = Array.from({ length: GROUPS }, (_, g) => {
      const products = Array.from({ length: SF_VEC }, (_, k) => a[g * SF_VEC + k] * b[g * SF_VEC + k]);
      const [sa, ea] = scaleParts(sfa[g], format), [sb, eb] = scaleParts(sfb[g], format);
      return { products, sum: products.reduce((x, y) => x + y, 0), live: products.some((p) => p !== 0), sa, ea, sb, eb, codeA: sfa[g], codeB: sfb[g] };
    });
    return { at, a, b, c, format, groups, ...dotElement(groups, c) };
  },
  half: (n) => ((n || 0) / 2).toLocaleString("en", { maximumFractionDigits: 1 }),
  quarter: (n) => ((n || 0) / 4).toLocaleString("en", { maximumFractionDigits: 2 }),
  // Exact bits of a term as [position relative to eMax, 0 or 1].
  bits(value, shift) {
    let magnitude = BigInt(Math.abs(value)), out = [];
    for (let i = 0; magnitude; i++, magnitude >>= 1n) if (magnitude & 1n) out.push(i - FRACTION_BITS - shift);
    return out;
  },
  draw({ m, step, ui, width, T, id }) {
    const e = this.element({ m, step, ui });
    if (!e) { const none = wrap(T("mma.none"), width); return { svg: paragraph(0, 16, none, "small"), width, height: 12 + 14 * none.length }; }
    let out = patternDefs(id) + text(0, 12, e.at >= 0 ? T("mma.head", { step: e.at, m: ui.m, n: ui.n }) : T("mma.alone"), "small");
    // A product under its factors; where sixteen do not fit beside the sum, eight a line.
    const narrow = (width - 330) / SF_VEC < 42, perLine = narrow ? SF_VEC / 2 : SF_VEC, pw = (narrow ? width : width - 330) / perLine;
    let y = 26;
    e.groups.forEach((g, i) => {
      out += text(0, y + 10, T("mma.group", { g: i, from: i * SF_VEC, to: (i + 1) * SF_VEC - 1 }), "strong");
      y += 15;
      g.products.forEach((p, k) => {
        const at = i * SF_VEC + k;
        const x = (k % perLine) * pw, top = y + Math.floor(k / perLine) * 52;
        out += rect(x, top, pw - 1, 49, "cell", { "data-tip": T("mma.product", { k: at, a: e.a[at] / 2, b: e.b[at] / 2, p: p / 4 }) });
        out += text(x + pw / 2, top + 14, this.half(e.a[at]), "mid tiny") + text(x + pw / 2, top + 28, `× ${this.half(e.b[at])}`, "mid tiny");
        out += text(x + pw / 2, top + 43, this.quarter(p), "mid strong");
      });
      const words = T("mma.sum", { sum: this.quarter(g.sum), a: this.number(scaleValue(g.codeA, e.format)), b: this.number(scaleValue(g.codeB, e.format)), value: this.number((g.sum / 4) * (g.sa / 8) * (g.sb / 8) * pow2(g.ea + g.eb)), e: g.ea + g.eb });
      const lines = wrap(words, narrow ? width : 322);
      if (narrow) { y += 104; out += paragraph(0, y + 10, lines, "small"); y += 14 * lines.length + 6; }
      else { out += paragraph(SF_VEC * pw + 8, y + 13, lines, "small"); y += 56; }
    });
    // aligned bits: 12 above e_max, 35 kept below it, then what is cut
    const above = 13, below = FRACTION_BITS, cut = 14, total = above + below + 1 + cut, left = narrow ? 84 : 112, bw = (width - left) / total;
    const x = (position) => left + (above - position) * bw;
    y += 18;
    const bits = wrap(T("mma.bits", { e: e.eMax }), width);
    out += paragraph(0, y - 4, bits, "small");
    y += 14 * (bits.length - 1) + 22;
    out += this.ruler(e, x, bw, y - 4, narrow);
    const rows = [["C", e.terms[0], e.distances[0]], ...e.groups.map((g, i) => [narrow ? `g${i}` : `${T("mma.g")}${i}`, e.terms[i + 1], e.distances[i + 1]])];
    const strip = (name, ones, negative, y, tip) => {
      out += text(0, y + 11, negative ? `${name} ${T("mma.negative")}` : name, "small");
      out += rect(left, y, (above + below + 1) * bw, 14, "cell") + rect(x(-below - 1), y, cut * bw, 14, "cutoff", { fill: `url(#${id}-wait)`, "data-tip": T("mma.cut") });
      for (const p of ones) if (p <= above && p >= -below - cut) out += rect(x(p), y + 1, Math.max(1, bw - 0.6), 12, p < -below ? "bit lost" : "bit on", { "data-tip": tip(p) });
    };
    for (const [name, value, distance] of rows) {
      strip(name, this.bits(value, distance), value < 0, y, (p) => T(p < -below ? "mma.lostbit" : "mma.keptbit", { p, e: e.eMax + p }));
      y += 17;
    }
    strip("Σ", this.bits(e.total, 0), e.total < 0, y, (p) => T("mma.keptbit", { p, e: e.eMax + p }));
    out += lineTo(x(-below - 1), y - rows.length * 17, x(-below - 1), y + 14, "cursor");
    y += 34;
    const d = floatOf(e.d);
    const result = wrap(T("mma.result", { value: this.number(d), bits: hex(e.d, 8), c: this.number(floatOf(e.c)) }), width * 0.85);
    out += paragraph(0, y, result, "strong");
    y += 14 * (result.length - 1);
    if (e.at >= 0) { const words = wrap(T(m.wrong.includes(e.at) ? "mma.differs" : "mma.same"), width); y += 17; out += paragraph(0, y, words, m.wrong.includes(e.at) ? "small alert" : "small"); y += 14 * (words.length - 1); }
    return { svg: out, width, height: y + 8 };
  },
  // What a bit's place is worth: powers of two above the rows.
  ruler(e, x, bw, y, narrow) {
    return [11, 0, -12, -24, -35].filter((p) => !narrow || p !== 0).map((p) => {
      const at = x(p) + bw / 2;
      return lineTo(at, y, at, y + 4, "axis") + text(at, y - 3, `2^${e.eMax + p}`, "mid tiny");
    }).join("");
  },
  number: (v) => (Number.isNaN(v) ? "NaN" : v === 0 ? "0" : Math.abs(v) >= 1e6 || Math.abs(v) < 1e-4 ? v.toExponential(6) : String(+v.toPrecision(9))),
  scale(code, format) { return `${this.number(scaleValue(code, format))} (${hex(code, 2)})`; },
  lost: (value, distance) => value - truncateShift(value, distance) * pow2(distance),
  twin({ m, step, ui, T }) {
    const e = this.element({ m, step, ui });
    if (!e) return { intro: T("mma.none"), caption: "", columns: [], rows: [] };
    const row = (name, value, distance, sum, scales) => [name, sum, scales, this.number(value * pow2(e.eMax - FRACTION_BITS - distance)), String(distance), truncateShift(value, distance).toLocaleString("en"), this.lost(value, distance) ? T("yes") : T("no")];
    const rows = [row("C", e.terms[0], e.distances[0], "-", "-"), ...e.groups.map((g, i) => row(`${T("mma.g")}${i}`, e.terms[i + 1], e.distances[i + 1], this.quarter(g.sum), `${this.scale(g.codeA, e.format)} x ${this.scale(g.codeB, e.format)}`))];
    return {
      intro: T("mma.intro", { where: e.at >= 0 ? T("mma.head", { step: e.at, m: ui.m, n: ui.n }) : T("mma.alone"), e: e.eMax, total: e.total.toLocaleString("en"), unit: e.eMax - FRACTION_BITS, sum: this.number(e.total * pow2(e.eMax - FRACTION_BITS)), value: this.number(floatOf(e.d)), bits: hex(e.d, 8) }),
      caption: T("mma.caption"), columns: ["col.term", "col.sum", "col.scales", "col.value", "col.shift", "col.aligned", "col.cut"].map((k) => T(k)), rows,
    };
  },
};
