// sides: the emulator's statement and bytes, the kernel's statement and bytes.

const sidesView = {
  id: "sides",
  controls: ({ T }) => [
    { id: "before", label: T("sides.previous"), type: "button", key: "p", action: (c) => sidesView.hop(c, -1) },
    { id: "after", label: T("sides.next"), type: "button", key: "n", action: (c) => sidesView.hop(c, 1) },
    { id: "first", label: T("sides.first"), type: "button", key: "d", action: (c) => { const at = c.m.header.sides.first; if (at >= 0) c.go(c.m.header.sides.pairs[at].step); } },
  ],
  index({ m, step }) {
    const pairs = m.header.sides.pairs;
    let found = 0;
    pairs.forEach((p, i) => { if (p.step >= 0 && p.step <= step) found = i; });
    return found;
  },
  hop(c, way) {
    const i = this.index(c), pairs = c.m.header.sides.pairs;
    for (let j = way > 0 && pairs[i].step > c.step ? i : i + way; j >= 0 && j < pairs.length; j += way) if (pairs[j].step >= 0) return c.go(pairs[j].step);
  },
  draw({ m, step, width, T, id }) {
    const { pairs, first } = m.header.sides, i = this.index({ m, step }), p = pairs[i], two = width >= 620, w = two ? width / 2 - 6 : width;
    let out = patternDefs(id);
    const strip = Math.max(1.5, width / pairs.length);
    pairs.forEach((q, k) => { out += rect((k / pairs.length) * width, 0, Math.max(0.8, strip - 0.4), 12, q.different ? "c-alert" : k <= i ? "c-mma" : "c-note", { "data-step": q.step < 0 ? undefined : q.step, "data-tip": `${q.key}: ${q.different ? T("sides.differ", { n: q.different, of: q.nbytes }) : T("sides.equal", { of: q.nbytes.toLocaleString("en") })}` }); });
    out += rect((i / pairs.length) * width - 1, -1, Math.max(3, strip + 2), 14, "frame");
    const head = wrap(T("sides.pair", { i: i + 1, of: pairs.length, key: p.key, frame: p.frame || "-" }), width * 0.85), y0 = 36 + 14 * head.length;
    out += paragraph(0, 30, head, "strong");
    const code = (line) => wrap(line || T("sides.absent"), w - 12, 7);
    const rows = Math.max(code(p.python[1]).length, two ? code(p.cuda[1]).length : 0);
    const column = (x, top, title, place, line, bytes) => {
      const lines = code(line), y = top + 14 * ((two ? rows : lines.length) - 1);
      out += text(x, top, fit(`${title}  ${place}`, w), "small") + rect(x, top + 5, w, y - top + 24, "lane") + paragraph(x + 6, top + 21, lines, "code");
      bytes.forEach((v, k) => {
        const per = Math.max(4, Math.floor(w / 24)), cx = x + (k % per) * 24, cy = y + 36 + Math.floor(k / per) * 18, other = (bytes === p.mine ? p.theirs : p.mine)[k];
        out += rect(cx, cy, 22, 16, v === other ? "cell" : "cell illegal") + text(cx + 11, cy + 12, v === null ? "--" : hex2(v), "mid tiny");
      });
      return y + 36 + Math.ceil(bytes.length / Math.max(4, Math.floor(w / 24))) * 18 + 10;
    };
    const y1 = column(0, y0, T("sides.python"), p.python[0], p.python[1], p.mine);
    const y2 = two ? column(w + 12, y0, T("sides.cuda"), p.cuda[0], p.cuda[1], p.theirs) : column(0, y1 + 10, T("sides.cuda"), p.cuda[0], p.cuda[1], p.theirs);
    const y = Math.max(y1, y2) + 8;
    out += text(0, y, fit(p.different ? T("sides.differ", { n: p.different, of: p.nbytes }) : T("sides.equal", { of: p.nbytes.toLocaleString("en") }), width, 12), p.different ? "strong alert" : "strong");
    out += text(0, y + 18, fit(first < 0 ? T("sides.allequal", { n: pairs.length }) : T("sides.firstis", { what: m.header.sides.difference }), width), first < 0 ? "small" : "small alert");
    return { svg: out, width, height: y + 26 };
  },
  twin({ m, step, T }) {
    const { pairs, first, difference } = m.header.sides, i = this.index({ m, step }), p = pairs[i];
    const show = (bytes) => bytes.map((v) => (v === null ? "--" : hex2(v))).join(" ");
    return {
      intro: `${T("sides.pair", { i: i + 1, of: pairs.length, key: p.key, frame: p.frame || "-" })}. ${p.different ? T("sides.differ", { n: p.different, of: p.nbytes }) : T("sides.equal", { of: p.nbytes.toLocaleString("en") })}. ${first < 0 ? T("sides.allequal", { n: pairs.length }) : T("sides.firstis", { what: difference })}`,
      caption: T("sides.caption"), columns: [T("col.side"), T("col.line"), T("col.statement"), T("col.bytesfrom", { at: p.from })],
      rows: [[T("sides.python"), p.python[0], p.python[1] || T("sides.absent"), show(p.mine)], [T("sides.cuda"), p.cuda[0], p.cuda[1] || T("sides.absent"), show(p.theirs)]],
    };
  },
};
