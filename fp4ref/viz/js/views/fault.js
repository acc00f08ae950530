// fault: what went wrong, the rule, the remedy, and who waits for whom.

const faultView = {
  id: "fault",
  controls: ({ m, T }) => (m.header.fault.root?.step >= 0 ? [{ id: "root", label: T("fault.goto"), type: "button", key: "g", action: (c) => c.go(m.header.fault.root.step) }] : []),
  // Root first: what is wrong, who should have signalled, and the remedy.
  root: (f, T) => (f.root ? [T("fault.root", { barrier: f.root.where, what: f.root.what }), ...(f.root.by ? [T(f.root.statement ? "fault.signalled" : "fault.signaller", { by: f.root.by, at: f.root.statement })] : []), f.root.remedy] : []),
  draw({ m, width, T, id }) {
    const f = m.header.fault;
    const head = wrap(`${f.type}: ${f.what}`, width * 0.85);
    let y = 16 + 14 * (head.length - 1), out = patternDefs(id) + paragraph(0, 16, head, "strong alert");
    for (const k of ["who", "where", "rule", "remedy"]) if (f[k]) { for (const l of wrap(`${T(`fault.${k}`)}: ${f[k]}`, width)) { y += 17; out += text(0, y, l, "small"); } }
    for (const [i, words] of this.root(f, T).entries()) for (const [j, l] of wrap(words, i ? width : width * 0.75).entries()) { y += i || j ? 15 : 22; out += text(0, y, l, i ? "small" : "strong alert"); }
    if (f.edges.length) {
      y += 24; out += text(0, y, T("fault.graph"), "strong");
      const narrow = width < 620, row = 56, h = 46, w1 = narrow ? width * 0.36 : 190, w2 = narrow ? width * 0.5 : 430, x2 = width - w2 - 1, top = y + 12;
      const waiters = [...new Set(f.edges.map((e) => e[0]))], barriers = [...new Map(f.edges.map((e) => [e[1], e[2]])).entries()];
      const manySms = new Set(f.edges.map((e) => /mbarrier smem(\d+)/.exec(e[1])?.[1])).size > 1;
      const y1 = (i) => top + i * row, who = (name) => name.split(" at ")[0];
      waiters.forEach((name, i) => {
        const [agent, place] = name.split(" at ");
        out += box(id, "wait", 1, y1(i), w1, h, { "data-tip": name }) + rect(5, y1(i) + 5, w1 - 10, h - 10, "plate");
        out += text(9, y1(i) + 20, fit(agent, w1 - 16, 12), "strong") + text(9, y1(i) + 35, fit((place ?? "").split("/").at(-1), w1 - 16), "small");
      });
      barriers.forEach(([on, by], i) => {
        const [, sm, label, rest] = /mbarrier smem(\d+) \S+ \((.+?)\) (.+)$/.exec(on) ?? [on, "", on, ""];
        const parts = [on, sm && manySms ? `SM ${sm} ${label}` : label, rest];
        const isRoot = f.root && on.includes(f.root.where);
        out += rect(x2, y1(i), w2, h, isRoot ? "card stuck root" : "card stuck", { "data-tip": isRoot ? `${on}. ${this.root(f, T).join(" ")}` : on });
        out += text(x2 + 7, y1(i) + 15, fit(parts[1], w2 - 12, 12), "strong") + text(x2 + 7, y1(i) + 28, fit(parts[2], w2 - 12, 10.4), "tiny") + text(x2 + 7, y1(i) + 41, fit(`${T("col.releasedby")}: ${by}`, w2 - 12, 10.4), "tiny");
        waiters.forEach((name, k) => {
          if ((by.match(/cta \([^)]*\) warp\d+/g) ?? []).includes(who(name))) out += lineTo(x2, y1(i) + 36, w1 + 2, y1(k) + 34, "arrow back", { "data-tip": T("fault.by", { b: parts[1], by: who(name) }) });
        });
      });
      for (const [a, b, by] of f.edges) {
        const from = y1(waiters.indexOf(a)) + 16, to = y1(barriers.findIndex(([on]) => on === b)) + 16;
        out += lineTo(w1 + 1, from, x2 - 8, to, "arrow", { "data-tip": T("fault.edge", { a: who(a), b, by }) }) + `<path d="M${x2 - 8} ${to - 4}L${x2} ${to}L${x2 - 8} ${to + 4}Z" class="f-arrowhead"/>`;
      }
      y = top + Math.max(waiters.length, barriers.length) * row + 8;
      for (const words of wrap(T("fault.legend"), width)) { out += text(0, y, words, "small"); y += 14; }
    }
    return { svg: out, width, height: y + 10 };
  },
  twin({ m, T }) {
    const f = m.header.fault;
    return { intro: [`${f.type}: ${f.what}`, ...["who", "where", "rule", "remedy"].filter((k) => f[k]).map((k) => `${T(`fault.${k}`)}: ${f[k]}`), ...this.root(f, T)].join(". "), caption: T("fault.graph"), columns: [T("col.waiter"), T("col.waitsfor"), T("col.releasedby")], rows: f.edges };
  },
};
