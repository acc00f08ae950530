// barriers: a card for each mbarrier: phase, arrivals left, bytes left, who waits.

const barriersView = {
  id: "barriers",
  list: (m) => m.barriers.map((b, id) => ({ ...b, id })),
  many: (m) => new Set(m.barriers.map((b) => b.sm)).size > 1,
  name(m, b) { return (this.many(m) ? `SM ${b.sm} ` : "") + b.label; },
  controls({ m, T }) {
    const sms = [...new Set(m.barriers.map((b) => b.sm))];
    return [
      ...(sms.length > 1 ? [{ id: "sm", label: T("barriers.sm"), type: "select", value: String(sms[0]), options: sms.map((s) => [String(s), String(s)]) }] : []),
      { id: "barrier", label: T("barriers.pick"), type: "select", value: "0", options: this.list(m).map((b) => [String(b.id), this.name(m, b)]) },
      { id: "before", label: T("barriers.previous"), type: "button", key: "p", action: (c) => this.hop(c, -1) },
      { id: "after", label: T("barriers.next"), type: "button", key: "n", action: (c) => this.hop(c, 1) },
    ];
  },
  hop({ m, step, ui, go }, way) {
    const steps = m.stepsOfBarrier(+ui.barrier);
    const to = way > 0 ? steps.find((s) => s > step) : steps.filter((s) => s < step).at(-1);
    if (to !== undefined) go(to);
  },
  // Who waits on each barrier: [agent, since, line].
  waiters(m, step) {
    const found = new Map();
    const add = (id, who) => found.set(id, [...(found.get(id) ?? []), who]);
    for (const { from, event } of m.openAt(step)) {
      if (event.kind !== "sync" || event.operands.mbar === undefined) continue;
      const id = m.barriers.findIndex((b) => b.sm === event.sm && b.address === event.operands.mbar);
      add(id, { agent: event.agent, since: from, line: event.source, parity: event.operands.parity });
    }
    if (step === m.length - 1)
      for (const [waiter, on] of m.header.fault?.edges ?? []) {
        const [, space, address] = /mbarrier (\S+) (0x[0-9a-fA-F]+)/.exec(on) ?? [];
        const id = m.barriers.findIndex((b) => b.space === space && b.address === Number(address));
        if (id >= 0) add(id, { agent: waiter.split(" at ")[0].split(") ").at(-1), since: step, line: waiter.split(" at ")[1] ?? "", stuck: true });
      }
    return found;
  },
  draw({ m, step, ui, width, T, id }) {
    const cards = this.list(m).filter((b) => ui.sm === undefined || b.sm === +ui.sm), waiters = this.waiters(m, step);
    const across = Math.max(1, Math.floor(width / 172)), w = width / across, h = 92;
    let out = patternDefs(id);
    cards.forEach((b, i) => {
      const x = (i % across) * w + 3, y = Math.floor(i / across) * h + 3, who = waiters.get(b.id) ?? [];
      const stuck = who.some((x) => x.stuck), fresh = b.since === step && step >= 0;
      out += rect(x, y, w - 6, h - 6, `card${fresh ? " fresh" : ""}${+ui.barrier === b.id ? " picked" : ""}${stuck ? " stuck" : ""}`, { "data-ui": `barrier=${b.id}`, "data-tip": this.sentence(m, b, who, T) });
      out += text(x + 8, y + 16, fit(b.label, w - 46, 13.4), "strong");
      if (!b.live) { out += text(x + 8, y + 34, T("barriers.unborn"), "small"); return; }
      out += rect(x + w - 34, y + 5, 20, 16, b.phase ? "bit on" : "bit") + text(x + w - 24, y + 17, b.phase, "mid");
      out += text(x + 8, y + 33, T("barriers.arrivals", { n: b.pending }), "small");
      out += text(x + 8, y + 47, b.tx ? T("barriers.bytes", { n: b.tx.toLocaleString("en") }) : T("barriers.nobytes"), "small");
      out += text(x + 8, y + 61, fit(who.length ? T(stuck ? "barriers.stuck" : "barriers.waiting", { who: [...new Set(who.map((x) => x.agent))].join(", "), since: who[0].since }) : T("barriers.nobody"), w - 18, who.length ? 14 : 12), who.length ? "small alert" : "small");
      const line = who.find((x) => x.line)?.line;
      if (line) out += text(x + 8, y + 76, fit(line.split("/").at(-1), w - 18), "small");
    });
    return { svg: out, width, height: Math.ceil(cards.length / across) * h + 4 };
  },
  sentence(m, b, who, T) {
    if (!b.live) return `${this.name(m, b)}: ${T("barriers.unborn")}`;
    const waits = who.map((x) => `${x.agent} ${x.line ? `(${x.line})` : ""}`).join(", ");
    return `${this.name(m, b)}: ${T("barriers.sentence", { phase: b.phase, pending: b.pending, tx: b.tx, flips: b.flips })}${waits ? "; " + T("barriers.waiting", { who: waits, since: who[0].since }) : ""}`;
  },
  // For what each agent waits, and what is missing there.
  why(m, waiters, T) {
    return this.list(m).flatMap((b) => (waiters.get(b.id) ?? []).map((who) => T("barriers.why", {
      who: `${this.many(m) ? `SM ${b.sm} ` : ""}${who.agent}`, role: T(`role.${m.role(who.agent)}`), barrier: b.label, since: who.since,
      missing: b.tx ? T("barriers.bytes", { n: b.tx.toLocaleString("en") }) : T("barriers.arrivals", { n: b.pending }),
    }))).join(" ");
  },
  changed({ m, ui }, what) { if (what === "barrier" && ui.sm !== undefined) ui.sm = String(m.barriers[+ui.barrier].sm); },
  twin({ m, step, T }) {
    const waiters = this.waiters(m, step);
    const rows = this.list(m).map((b) => [
      this.name(m, b), b.live ? b.phase : "-", b.live ? b.pending : "-", b.live ? b.tx : "-", b.live ? b.flips : "-",
      (waiters.get(b.id) ?? []).map((x) => `${x.agent} ${T("since", { step: x.since })} ${x.line}`).join("; ") || T("nobody"),
    ]);
    return { intro: T("barriers.intro", { step }), short: this.why(m, waiters, T) || T("barriers.intro", { step }), caption: T("barriers.caption", { step }), columns: ["col.barrier", "col.phase", "col.pending", "col.bytes", "col.flips", "col.waits"].map((k) => T(k)), rows };
  },
};
