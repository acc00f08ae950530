// fault: what went wrong, the rule, the remedy, and who waits for whom.

const faultView = {
  id: "fault",
  available: (m) => !!m.header.fault,
  controls: () => [],
  draw({ m, width, T, id }) {
    const f = m.header.fault;
    let y = 16, out = patternDefs(id) + text(0, y, fit(`${f.type}: ${f.what}`, width, 13), "strong alert");
    for (const k of ["who", "where", "rule", "remedy"]) if (f[k]) { for (const l of wrap(`${T(`fault.${k}`)}: ${f[k]}`, width)) { y += 17; out += text(0, y, l, "small"); } }
    if (f.edges.length) {
      y += 24; out += text(0, y, T("fault.graph"), "strong");
      const w = Math.min(250, (width - 60) / 2), x2 = width - w - 1, barriers = [...new Set(f.edges.map((e) => e[1]))], waiters = [...new Set(f.edges.map((e) => e[0]))], row = 44;
      const top = y + 10, yw = (i) => top + i * row, yb = (i) => top + i * row;
      const lineOf = (s) => fit(s, w - 10, 10);
      waiters.forEach((n, i) => { out += box(id, "wait", 1, yw(i), w, 34, { "data-tip": n }) + rect(4, yw(i) + 9, w - 6, 16, "plate") + text(6, yw(i) + 21, lineOf(n), "tiny"); });
      barriers.forEach((n, i) => { out += rect(x2, yb(i), w, 34, "card stuck", { "data-tip": n }) + text(x2 + 6, yb(i) + 21, lineOf(n), "tiny"); });
      f.edges.forEach(([a, b, by]) => {
        const from = yw(waiters.indexOf(a)) + 12, to = yb(barriers.indexOf(b)) + 12;
        out += lineTo(w + 1, from, x2 - 8, to, "arrow", { "data-tip": T("fault.edge", { a, b, by }) }) + `<path d="M${x2 - 8} ${to - 4}L${x2} ${to}L${x2 - 8} ${to + 4}Z" class="arrowhead"/>`;
        const back = waiters.findIndex((n) => by.includes(n));
        if (back >= 0) out += lineTo(x2, yb(barriers.indexOf(b)) + 24, w + 8, yw(back) + 26, "arrow back", { "data-tip": T("fault.by", { b, by }) });
      });
      y = top + Math.max(waiters.length, barriers.length) * row;
      out += text(0, y + 8, fit(T("fault.legend"), width), "tiny");
      y += 12;
    }
    return { svg: out, width, height: y + 10 };
  },
  twin({ m, T }) {
    const f = m.header.fault;
    return { intro: [`${f.type}: ${f.what}`, ...["who", "where", "rule", "remedy"].filter((k) => f[k]).map((k) => `${T(`fault.${k}`)}: ${f[k]}`)].join(". "), caption: T("fault.graph"), columns: [T("col.waiter"), T("col.waitsfor"), T("col.releasedby")], rows: f.edges };
  },
};
