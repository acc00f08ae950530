// cluster: the CTAs of one cluster; whose memory one operation read and wrote, which barriers it told.

const LANDS = KINDS.indexOf("land");
const spaceSm = (space) => (/^[st]mem\d/.test(space) ? +space.slice(4) : -1);

const clusterView = {
  id: "cluster",
  controls: ({ T }) => [
    { id: "before", label: T("cluster.previous"), type: "button", key: "p", action: (c) => clusterView.hop(c, -1) },
    { id: "after", label: T("cluster.next"), type: "button", key: "n", action: (c) => clusterView.hop(c, 1) },
  ],
  // Whose shared memory, TMEM and barriers an event touches, by SM.
  touched(m, i) {
    const { reads, writes, barrier } = m.columns, { range, barrier: labels } = m.tables;
    const spaces = [...reads[i].map((r) => range[r][0]), ...writes[i].map(([r]) => range[r][0]), ...barrier[i].map(([b]) => labels[b][0])];
    return new Set(spaces.map(spaceSm).filter((sm) => sm >= 0));
  },
  // The landings of an operation, by the step of its issue: a multicast has one for each CTA.
  landings(m) {
    if (!m.landings) {
      m.landings = new Map();
      for (let i = 0; i < m.length; i++)
        if (m.columns.kind[i] === LANDS) m.landings.set(m.columns.issued[i], [...(m.landings.get(m.columns.issued[i]) ?? []), i]);
    }
    return m.landings;
  },
  // An event with the other landings of its operation, as far as they are in the trace.
  parts(m, e) {
    const of = e.kind === "land" ? e.issued : e.step;
    return [...new Set([e.step, ...(e.kind === "sync" || e.kind === "note" ? [] : this.landings(m).get(of) ?? [])])];
  },
  // Steps at which an operation reaches a CTA that did not issue it.
  crossings(m) {
    m.crossings ??= Array.from({ length: m.length }, (_, i) => i).filter((i) => this.parts(m, m.event(i)).some((j) => [...this.touched(m, j)].some((sm) => sm !== m.columns.sm[i])));
    return m.crossings;
  },
  hop({ m, step, go }, way) {
    const steps = this.crossings(m), to = way > 0 ? steps.find((s) => s > step) : steps.filter((s) => s < step).at(-1);
    if (to !== undefined) go(to);
  },
  // The last such event, or the first if none has come.
  shown(m, step) {
    const steps = this.crossings(m), at = steps.filter((s) => s <= step).at(-1) ?? steps[0];
    return at === undefined ? m.event(step) : m.event(at);
  },
  // Which CTA an SM has at a step: an SM has several, one after the other.
  ctaOn(m, sm, step) {
    if (!m.ctas) {
      m.ctas = new Map();
      for (let i = 0; i < m.length; i++) {
        const list = m.ctas.get(m.columns.sm[i]) ?? [], cta = m.columns.cta[i];
        if (list.at(-1)?.cta !== cta) list.push({ step: i, cta });
        m.ctas.set(m.columns.sm[i], list);
      }
    }
    const list = m.ctas.get(sm) ?? [], found = list.filter((x) => x.step <= step).at(-1) ?? list[0];
    return found ? m.tables.cta[found.cta] : null;
  },
  origin: (m, cta) => cta.map((at, i) => at - (at % m.header.meta.cluster[i])),
  // The CTAs of the cluster that an event belongs to, by rank.
  members(m, e) {
    const [cx, cy] = m.header.meta.cluster, origin = this.origin(m, e.cta), found = [];
    this.ctaOn(m, e.sm, e.step);
    for (const sm of m.ctas.keys()) {
      const cta = this.ctaOn(m, sm, e.step);
      if (this.origin(m, cta).some((at, i) => at !== origin[i])) continue;
      const [x, y, z] = cta.map((at, i) => at - origin[i]);
      found.push({ sm, cta, x, y: y + cy * z, rank: x + cx * (y + cy * z) });
    }
    return found.sort((a, b) => a.rank - b.rank);
  },
  // What the operation does in the CTA on one SM: [kind, words].
  facts(m, e, sm, T) {
    return [
      ...(sm === e.sm ? [["issuer", e.kind === "sync" ? T("cluster.acts", { who: e.agent }) : T("cluster.issued")]] : []),
      ...this.parts(m, e).flatMap((i) => this.factsAt(m, m.event(i), e.step, sm, T)),
    ];
  },
  factsAt(m, e, step, sm, T) {
    const inSm = ([space]) => spaceSm(space) === sm, told = e.barrier.filter((b) => b.sm === sm);
    const data = e.writes.filter((w) => inSm(w) && !told.some((b) => b.space === w[0] && b.address === w[1]));
    const when = e.step > step ? "cluster.later" : e.step < step ? "cluster.earlier" : "";
    const say = (key, [space, start, nbytes, rows]) => T(key, { n: (nbytes * rows).toLocaleString("en"), where: `${space.slice(0, 4).toUpperCase()} ${hex(start)}` });
    const found = [
      ...e.reads.filter(inSm).map((r) => ["read", say("cluster.reads", r)]),
      ...data.map((w) => ["write", say("cluster.gets", w)]),
      ...told.map((b) => ["told", T("cluster.told", { label: b.label || hex(b.address), pending: b.pending, tx: b.tx.toLocaleString("en") })]),
    ];
    return found.map(([kind, words]) => [kind, when ? T(when, { words, step: e.step }) : words]);
  },
  mark: (e, rank, T) => (e.operands.cta_group === 2 ? ` ${T(rank % 2 ? "cluster.peer" : "cluster.leader")}` : ""),
  head(m, e, T) {
    const reached = this.members(m, e).filter((c) => c.sm !== e.sm && this.facts(m, e, c.sm, T).length).map((c) => c.rank);
    const tensor = e.operands.tensor ? ` ${e.operands.tensor} {${(e.operands.coords ?? []).join(", ")}}` : "";
    const own = this.members(m, e).find((c) => c.sm === e.sm)?.rank ?? 0;
    return T(reached.length ? "cluster.head" : "cluster.alone", { step: e.step, what: `${e.operation}${tensor}`, kind: T(`kind.${e.kind}`), own, ranks: reached.join(", ") });
  },
  draw({ m, step, width, T, id }) {
    const e = this.shown(m, step), all = this.members(m, e), across = m.header.meta.cluster[0], gap = 26;
    const w = Math.max(70, (width - gap * (across - 1) - 2) / across), facts = all.map((c) => this.facts(m, e, c.sm, T));
    const lines = facts.map((f) => f.flatMap(([kind, words]) => wrap(words, w - 12).map((l) => [kind, l])));
    const h = 40 + 14 * Math.max(1, ...lines.map((l) => l.length)), head = wrap(this.head(m, e, T), width);
    const top = 12 + 14 * head.length, at = (c) => ({ x: 1 + c.x * (w + gap), y: top + c.y * (h + gap) });
    const from = all.find((c) => c.sm === e.sm), arrows = [], boxes = [];
    all.forEach((c, i) => {
      const { x, y } = at(c), busy = facts[i].some(([kind]) => kind !== "issuer");
      if (from && c !== from && busy) arrows.push(this.arrow(at(from), { x, y }, w, h));
      boxes.push(busy ? box(id, category(e.operation), x, y, w, h) + rect(x + 3, y + 3, w - 6, h - 6, "plate") : rect(x, y, w, h, "card"));
      if (c === from) boxes.push(rect(x, y, w, h, "frame"));
      boxes.push(text(x + 7, y + 16, fit(T("cluster.cta", { rank: c.rank, cta: c.cta.join(", ") }) + this.mark(e, c.rank, T), w - 12, 12.6), "strong"));
      boxes.push(text(x + 7, y + 30, `SM ${c.sm}`, "tiny"));
      lines[i].forEach(([kind, l], k) => boxes.push(text(x + 7, y + 44 + 14 * k, fit(l, w - 10), kind === "told" ? "small strong" : "small")));
    });
    const rows = Math.max(0, ...all.map((c) => c.y)) + 1;
    return { svg: patternDefs(id) + paragraph(0, 12, head, "small") + arrows.join("") + boxes.join(""), width, height: top + rows * (h + gap) };
  },
  // From the issuer's box to the edge of another; the boxes are drawn over its rest.
  arrow(a, b, w, h) {
    const [x1, y1, x2, y2] = [a.x + w / 2, a.y + h / 2, b.x + w / 2, b.y + h / 2], [dx, dy] = [x1 - x2, y1 - y2];
    const t = Math.min(w / 2 / Math.abs(dx || 1e-9), h / 2 / Math.abs(dy || 1e-9)), turn = (Math.atan2(-dy, -dx) * 180) / Math.PI;
    const [x, y] = [x2 + dx * t, y2 + dy * t];
    return lineTo(x1, y1, x, y, "arrow picked") + `<path d="M0 0L-9 -5L-9 5Z" transform="translate(${x.toFixed(1)} ${y.toFixed(1)}) rotate(${turn.toFixed(1)})" class="f-arrowhead"/>`;
  },
  twin({ m, step, T }) {
    const e = this.shown(m, step);
    const rows = this.members(m, e).map((c) => [T("cluster.cta", { rank: c.rank, cta: c.cta.join(", ") }) + this.mark(e, c.rank, T), `SM ${c.sm}`, this.facts(m, e, c.sm, T).map(([, words]) => words).join("; ") || T("cluster.nothing")]);
    return { intro: this.head(m, e, T), caption: T("cluster.caption", { step: e.step }), columns: ["CTA", "SM", T("col.does")], rows };
  },
};
