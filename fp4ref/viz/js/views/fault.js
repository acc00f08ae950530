// fault: what went wrong, whose it is, and the picture: who waits for whom, or which bytes two accesses meet at.

const faultView = {
  id: "fault",
  controls({ m, T }) {
    const f = m.header.fault, button = (id, label, step, key) => ({ id, label, type: "button", key, action: (c) => c.go(step) });
    if (f.root?.step >= 0) return [button("root", T("fault.goto"), f.root.step, "g")];
    return (f.met?.sides ?? []).map((s, i) => [s, i]).filter(([s]) => s.step >= 0).map(([s, i]) => button(`side${i}`, T("fault.side", { how: s.how, step: s.step }), s.step, "gh"[i]));
  },
  // What is said above the picture, as [words, class]; what is missing and whose it is comes first.
  said({ m, T }) {
    const f = m.header.fault, line = (k) => (f[k] ? [[T("fault.line", { name: T(`fault.${k}`), words: f[k] }), "small"]] : []);
    const head = [`${f.type}: ${f.what}`, "strong alert"];
    if (!f.root) return [head, ...["who", "where", "rule", "remedy"].flatMap(line)];
    return [head, [f.graph.sentence, "strong alert"], [T("fault.line", { name: T("fault.remedy"), words: f.root.remedy }), "strong"], [T("fault.root", { barrier: f.root.where, what: f.root.what }), "small"], ...line("rule")];
  },
  draw(c) {
    const { m, width, id } = c, f = m.header.fault;
    let y = 2, out = patternDefs(id);
    for (const [words, cls] of this.said(c)) {
      const lines = wrap(words, width, cls === "small" ? 6.6 : 7.4);
      out += paragraph(0, y + 14, lines, cls);
      y += 14 * lines.length + 4;
    }
    const part = f.edges.length ? this.graph(c, y + 20) : f.met ? drawMeeting(c, y + 20) : { svg: "", end: y };
    return { svg: out + part.svg, width, height: part.end + 10 };
  },
  // Waiters at the left, in the order of what they wait for, which stands beside the first of them.
  graph({ m, width, T, id }, y) {
    const { waiters, things } = m.header.fault.graph, narrow = width < 620;
    const w1 = narrow ? width * 0.36 : 200, w2 = narrow ? width * 0.5 : 440, x2 = width - w2 - 3, order = [...things.keys()].sort((a, b) => things[b].root - things[a].root);
    let svg = text(0, y, T("fault.graph"), "strong"), top = y + 12;
    const left = [], right = [];
    for (const i of order) {
      const t = things[i], lines = [...(t.root ? [[T("fault.broke"), "strong alert"]] : []), [t.name, "strong"], [t.state, "small"], [`${T("col.releasedby")}: ${t.by}`, "small"]].flatMap(([words, cls]) => wrap(words, w2 - 14, cls === "small" ? 6.6 : 7.4).map((l) => [l, cls]));
      const high = 10 + 14 * lines.length;
      let down = top;
      for (const k of waiters.keys())
        if (waiters[k].on === i) {
          const words = [...wrap(waiters[k].name, w1 - 18, 7.4).map((l) => [l, "strong"]), ...wrapPath(waiters[k].place, w1 - 18, 7.4).map((l) => [l, "small"])];
          left[k] = { y: down, h: 12 + 14 * words.length, words };
          down += left[k].h + 8;
        }
      right[i] = { y: top, h: high, lines };
      top = Math.max(down, top + high + 8);
    }
    const mid = (b) => b.y + b.h / 2;
    things.forEach((t, i) => {
      const b = right[i];
      svg += rect(x2, b.y, w2, b.h, t.root ? "card stuck root" : "card stuck", { "data-tip": `${t.name}: ${t.state}; ${T("col.releasedby")} ${t.by}` });
      b.lines.forEach(([l, cls], k) => { svg += text(x2 + 7, b.y + 16 + 14 * k, l, cls); });
      for (const k of t.releases) svg += lineTo(x2, mid(b) + 8, w1 + 2, mid(left[k]) + 6, "arrow back", { "data-tip": T("fault.by", { b: t.name, by: waiters[k].name }) });
    });
    waiters.forEach((a, k) => {
      const b = left[k], to = mid(right[a.on]) - 4;
      svg += box(id, "wait", 1, b.y, w1, b.h, { "data-tip": `${a.name} (${a.who}): ${a.place}` }) + rect(5, b.y + 4, w1 - 8, b.h - 8, "plate");
      b.words.forEach(([l, cls], i) => { svg += text(9, b.y + 17 + 14 * i, l, cls); });
      svg += lineTo(w1 + 1, mid(b), x2 - 8, to, "arrow", { "data-tip": T("fault.edge", { a: a.name, b: things[a.on].name, by: things[a.on].by }) }) + `<path d="M${x2 - 8} ${to - 4}L${x2} ${to}L${x2 - 8} ${to + 4}Z" class="f-arrowhead"/>`;
    });
    const legend = wrap(T("fault.legend"), width);
    return { svg: svg + paragraph(0, top + 10, legend, "small"), end: top + 14 * legend.length };
  },
  twin(c) {
    const f = c.m.header.fault, { T } = c, intro = this.said(c).map(([words]) => words.replace(/\.$/, "")).join(". ");
    const short = T(f.edges.length ? "fault.hint" : "fault.click");
    if (f.edges.length) return { intro, short, caption: T("fault.graph"), columns: [T("col.waiter"), T("col.waitsfor"), T("col.releasedby")], rows: f.edges };
    return { intro, short, caption: T("fault.meets"), columns: ["col.side", "col.role", "col.does", "col.statement", "col.step"].map((k) => T(k)), rows: (f.met?.sides ?? []).map((s) => [s.how, s.who, s.words, s.statement, s.step < 0 ? "-" : String(s.step)]) };
  },
};

// Two accesses, and the bytes at which they meet.
function drawMeeting({ m, width, T, id }, y) {
  const { met } = m.header.fault, narrow = width < 620, gap = 12, w = narrow ? width - 2 : (width - gap) / 2 - 1;
  let svg = text(0, y, T("fault.meets"), "strong"), top = y + 10, end = top;
  met.sides.forEach((s, i) => {
    const x = narrow ? 1 : 1 + i * (w + gap), step = s.step >= 0 ? T("fault.atstep", { step: s.step }) : "";
    const lines = [[s.how, "strong"], [s.who, "strong"], [s.words, "small"], [s.statement, "code"], [step, "small"]].filter(([words]) => words)
      .flatMap(([words, cls]) => wrapPath(words, w - 16, cls === "small" ? 6.6 : 7.4).map((l) => [l, cls]));
    const down = narrow ? end + (i ? 8 : 0) : top, high = 12 + 14 * lines.length;
    svg += rect(x, down, w, high, i === met.sides.length - 1 ? "card stuck" : "card", { "data-tip": `${s.how}: ${s.who}. ${s.words}`, ...(s.step >= 0 ? { "data-step": s.step } : {}) });
    lines.forEach(([l, cls], k) => { svg += text(x + 8, down + 17 + 14 * k, l, cls); });
    end = Math.max(end, down + high);
  });
  const picture = met.cells ? drawCells : met.place?.window.length ? drawBytes : null;
  if (!picture) return { svg, end };
  const drawn = picture({ m, width, T, id }, end + 24);
  return { svg: svg + drawn.svg, end: drawn.end };
}
// Words broken into lines, a path too.
const wrapPath = (words, width, letter) => wrap(words, width, letter).flatMap((l) => l.match(new RegExp(`.{1,${Math.max(12, Math.floor(width / letter))}}`, "g")) ?? [""]);

// TMEM: 128 lanes in quarters, the cells that the fault names, the quarter that the warp may touch.
function drawCells({ m, width, T, id }, y) {
  const { cells, own, where } = m.header.fault.met, left = 34, plot = width - left - 3, high = 128, line = (l) => y + 8 + (l / 128) * high, x = (c) => left + (c / 512) * plot;
  const words = wrap(`${where || T("view.tmem")}: ${T(own ? "fault.lanes" : "fault.cells", { first: cells.lane, last: cells.lane + cells.lanes - 1, from: cells.column, to: cells.column + cells.columns - 1 })}`, width);
  let svg = paragraph(0, y, words, "strong");
  y += 14 * (words.length - 1);
  svg += rect(left, line(0), plot, high, "cell");
  if (own) svg += rect(left, line(own[0]), plot, line(own[1] + 1) - line(own[0]), "lit") + rect(left, line(own[0]), plot, line(own[1] + 1) - line(own[0]), "frame");
  for (let q = 0; q < 4; q++) svg += text(left - 4, line(32 * q) + 12, 32 * q, "end tiny") + (q ? lineTo(left, line(32 * q), left + plot, line(32 * q), "grid") : "");
  // A warp's columns are the same in all the lanes that it names.
  const from = own ? 0 : cells.column, wide = own ? 512 : cells.columns;
  svg += rect(x(from), line(cells.lane), Math.max(5, x(from + wide) - x(from)), Math.max(5, line(cells.lanes) - line(0)), "illegal");
  const legend = wrap(T(own ? "fault.own" : "fault.marked", own ? { first: own[0], last: own[1] } : {}), width);
  return { svg: svg + paragraph(0, line(128) + 16, legend, "small"), end: line(128) + 16 + 14 * legend.length };
}

// A stretch of memory, its parts, and the bytes that the fault names.
function drawBytes({ m, width, T }, y) {
  const { place, where } = m.header.fault.met, [first, last] = [Math.min(place.window[0], place.start), Math.max(place.window[1], place.start + place.nbytes)];
  const x = (at) => 1 + ((at - first) / (last - first)) * (width - 2), words = wrap(where.includes("bytes") ? where : T("fault.bytes", { where, n: place.nbytes.toLocaleString("en") }), width);
  let svg = paragraph(0, y, words, "strong");
  y += 14 * words.length - 4;
  svg += rect(1, y, width - 2, 34, "cell");
  const base = Object.entries(m.spaces).find(([s]) => s.startsWith("smem"))?.[1].base;
  for (const p of place.space.startsWith("smem") && base !== undefined ? m.header.maps?.smem ?? [] : []) {
    const from = x(base + p.offset), wide = x(base + p.offset + p.nbytes) - from, name = `${p.name}[${p.stage}]`;
    svg += rect(from, y, wide, 34, "owner", { "data-tip": name }) + (wide > 7 * name.length + 6 ? text(from + 3, y + 14, name, "tiny") : "");
  }
  svg += rect(x(place.start) - 1, y - 2, Math.max(5, x(place.start + place.nbytes) - x(place.start)), 38, "illegal");
  const ends = [T("fault.from", { at: hex(first) }), T("fault.to", { at: hex(last) })], legend = wrap(T("fault.marked"), width);
  svg += text(0, y + 50, ends[0], "small") + text(width, y + 50, ends[1], "end small") + paragraph(0, y + 66, legend, "small");
  return { svg, end: y + 66 + 14 * legend.length };
}
