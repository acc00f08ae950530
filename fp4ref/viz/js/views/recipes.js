// recipes: the same values through every recipe; those that store the same bytes stand together.

// Scale format, and how many elements share one.
const SCALE_KINDS = { UE4M3: "recipes.kind.ue4m3", "UE8M0 16": "recipes.kind.ue8m0.16", "UE8M0 32": "recipes.kind.ue8m0.32" };
const kindOf = (way) => (way.scale === "UE4M3" ? "UE4M3" : `UE8M0 ${way.vec}`);

const recipesView = {
  id: "recipes",
  keys: quantiserKeys,
  controls: (c) => quantiserControls(c, "recipes.beside"),
  changed: quantiserChanged,
  // Ways with the same bytes, by kind and in the order of the recipes.
  groups({ m, ui }) {
    const values = quantiserValues({ m }), found = new Map();
    for (const way of m.header.quantiser.ways) {
      const q = quantiseWay(values, way, m.header.quantiser, +ui.power);
      const key = [kindOf(way), q.encode.toPrecision(5), ...q.parts.map((p) => p.scale), ...q.codes].join();
      if (!found.has(key)) found.set(key, { kind: kindOf(way), q, ways: [] });
      found.get(key).ways.push(way);
    }
    const order = Object.keys(SCALE_KINDS), groups = [...found.values()].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
    return groups.map((g, i) => ({ ...g, letter: String.fromCharCode(65 + i) }));
  },
  chosen: (groups, ui) => groups.find((g) => g.ways.some((w) => w.name === ui.way)),
  // Elements and blocks in which a group is not as the chosen one.
  differs(g, chosen) {
    const scaleAt = (x, i) => x.q.parts[Math.floor(i / x.ways[0].vec)].scale;
    return {
      codes: g.q.codes.map((code, i) => code !== chosen.q.codes[i]),
      scales: g.q.codes.map((_, i) => g.kind.split(" ")[0] === chosen.kind.split(" ")[0] && scaleAt(g, i) !== scaleAt(chosen, i)),
    };
  },
  draw(c) {
    const { m, ui, width, T } = c, groups = this.groups(c), chosen = this.chosen(groups, ui), pick = +ui.element, n = brief;
    let y = 0, out = "";
    const say = (words, cls = "small", w = width) => { for (const l of wrap(words, w, cls === "strong" ? 7.5 : 7)) { y += 15; out += text(0, y, l, cls); } };
    say(T("recipes.legend"));
    const per = width < 520 ? 8 : 16, left = 62, bw = (width - left) / per, h = 32;
    for (const [kind, words] of Object.entries(SCALE_KINDS)) {
      const mine = groups.filter((g) => g.kind === kind);
      if (!mine.length) continue;
      y += 10;
      say(T(words), "strong");
      for (const g of mine) {
        y += 5;
        say(`${g.letter}  ${g.ways.map((w) => w.name).join(", ")}: ${T("recipes.error", { error: percent(g.q.error) })}`, g === chosen ? "strong" : "small");
        y += 5;
        const off = this.differs(g, chosen), { vec } = g.ways[0];
        for (let i = 0; i < g.q.codes.length; i += per) {
          const part = g.q.parts[Math.floor(i / vec)], first = i % 16 === 0;
          if (first) {
            out += rect(0, y, left - 6, h - 2, off.scales[i] ? "cell differs" : "cell", { "data-ui": `way=${g.ways[0].name}`, "data-tip": T("recipes.scaletip", { amax: n(part.amax), wanted: n(part.wanted), scale: hex(part.scale, 2), decoded: n(part.decoded) }) });
            out += text((left - 6) / 2, y + 13, hex2(part.scale), "mid code") + text((left - 6) / 2, y + 25, fit(n(part.decoded), left - 8, 10), "mid tiny");
          }
          for (let k = i; k < Math.min(i + per, g.q.codes.length); k++) {
            const x = left + (k - i) * bw, s = g.q.scaled[k];
            out += rect(x, y, bw - 2, h - 2, `cell${off.codes[k] ? " differs" : ""}${k === pick ? " picked" : ""}`, { "data-ui": `element=${k};way=${g.ways[0].name}`, "data-tip": `${g.letter}: ${elementWords(c, g.q, k)}` });
            out += text(x + bw / 2 - 1, y + 13, levelOf(g.q.codes[k]), "mid small");
            const mark = isTie(s) ? "recipes.tie" : isCut(s) ? "recipes.cut" : "";
            if (mark) out += text(x + bw / 2 - 1, y + 25, T(mark), "mid tiny");
          }
          y += h;
        }
      }
    }
    y += 8;
    say(T("recipes.element", { i: pick, z: n(chosen.q.z[pick]) }), "strong");
    for (const g of groups) {
      const s = g.q.scaled[pick], part = g.q.parts[Math.floor(pick / g.ways[0].vec)];
      say(T("recipes.line", { letter: g.letter, wanted: n(part.wanted), scale: hex(part.scale, 2), s: n(s), level: levelOf(g.q.codes[pick]), back: n(g.q.back[pick]), off: n(g.q.back[pick] - g.q.z[pick]), mark: isTie(s) ? T("quantiser.istie") : isCut(s) ? T("quantiser.iscut") : "" }));
    }
    return { svg: out, width, height: y + 8 };
  },
  counts({ m, ui, T }, groups, chosen) {
    const best = groups.reduce((a, g) => (g.q.error < a.q.error ? g : a));
    const unlike = groups.filter((g) => g.kind === chosen.kind && g !== chosen).flatMap((g) => g.ways.map((w) => w.name));
    return T(unlike.length ? "recipes.counts" : "recipes.alike", { ways: m.header.quantiser.ways.length, groups: groups.length, way: ui.way, others: unlike.join(", "), best: best.ways[0].name, error: percent(best.q.error) });
  },
  twin(c) {
    const { ui, T } = c, groups = this.groups(c), chosen = this.chosen(groups, ui), n = brief;
    const rows = groups.flatMap((g) => {
      const off = this.differs(g, chosen), where = (test) => g.q.codes.map((_, i) => i).filter(test).join(" ") || T("no");
      const scales = g.q.parts.map((p) => `${n(p.wanted)} > ${hex(p.scale, 2)} = ${n(p.decoded)}`).join("; ");
      return g.ways.map((w) => [w.name, g.letter, scales, g.q.codes.map((v) => v.toString(16).toUpperCase()).join(""), percent(g.q.error), where((i) => off.codes[i]), where((i) => isTie(g.q.scaled[i])), where((i) => isCut(g.q.scaled[i]))]);
    });
    return { intro: this.counts(c, groups, chosen), caption: T("recipes.caption", { way: ui.way }), columns: ["recipes.col.recipe", "recipes.col.bytes", "recipes.col.scales", "recipes.col.codes", "recipes.col.error", "recipes.col.differs", "recipes.col.ties", "recipes.col.cut"].map((k) => T(k)), rows };
  },
};
